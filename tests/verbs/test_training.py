"""From labelled profiles to a model: what is used, what is refused, and the same
every time.
"""

import numpy as np
import pandas as pd
import pytest
from anndata import AnnData
from scipy import sparse

from optirank._util.numbers import STANDARDISED
from optirank.datasets import DataError
from optirank.datasets.example import make_example
from optirank.model import save
from optirank.verbs.samples import labelled_samples
from optirank.verbs.training import TrainingOptions
from profiles import (
    changed,
    evaluate_profiles,
    label_profiles,
    made,
    take_genes,
    take_samples,
    train,
)


@pytest.fixture(scope="module")
def cells() -> AnnData:
    return make_example(150, 20)[0]


@pytest.fixture(scope="module")
def result(cells):
    return train(cells, TrainingOptions(label="cell_type", name="cells"))


def as_array(X):
    return X.toarray() if sparse.issparse(X) else X


def with_obs(data, **columns):
    return changed(data, obs=data.obs.assign(**columns))


def test_a_model_with_all_that_prediction_needs(result, cells):
    model = result.model
    card = model.card
    assert card.balanced_accuracy > 0.8
    assert len(model.genes) == model.n_genes
    assert card.n_samples == cells.n_obs
    assert sum(card.class_counts.values()) == cells.n_obs
    assert model.panel.calibration.n_samples == len(result.held_out)
    assert model.panel.likeness.profiles.shape == (len(model.classes), model.n_genes)
    assert [share for share, _ in model.panel.missing] == [0.0, 0.1, 0.3, 0.5, 0.7]
    assert card.name == "cells"
    assert set(card.versions) >= {"optirank", "numpy", "scikit-learn"}
    assert result.curve["chosen"].sum() == 1
    assert result.performance.n_samples == len(result.held_out)


def test_held_out_tables_count_held_out_samples_alone(result, cells):
    truth = cells.obs["cell_type"].to_numpy()
    held_out = result.held_out
    assert not held_out["sample"].duplicated().any()
    assert result.performance.per_class["n"].sum() == len(held_out) <= cells.n_obs
    place = {name: k for k, name in enumerate(cells.obs_names)}
    assert (
        truth[[place[name] for name in held_out["sample"]]] == held_out["label"]
    ).all()
    assert set(held_out["fold"]) == {1, 2, 3, 4, 5}


@pytest.mark.slow
def test_the_same_file_every_time(result, cells, tmp_path):
    options = TrainingOptions(label="cell_type", name="cells", n_genes="auto", n_jobs=2)
    again = train(cells, options)
    dense = train(
        changed(cells, X=cells.X.toarray() if sparse.issparse(cells.X) else cells.X),
        options,
    )
    save(result.model, tmp_path / "one.optirank")
    save(again.model, tmp_path / "two.optirank")
    assert (tmp_path / "one.optirank").read_bytes() == (
        tmp_path / "two.optirank"
    ).read_bytes()
    assert np.array_equal(dense.model.panel.coef, result.model.panel.coef)


def test_a_size_a_list_and_genes_in_and_out(cells, tmp_path):
    names = list(cells.var_names)
    path = tmp_path / "genes.txt"
    path.write_text("\n".join([*names[:80], "NOWHERE"]))
    options = TrainingOptions(
        label="cell_type",
        n_genes=20,
        include=(path, names[70]),
        exclude=names[0],
    )
    found = train(cells, options)
    assert len(found.model.genes) == 20
    assert names[70] in found.model.genes
    assert names[0] not in found.model.genes
    assert set(found.model.genes) <= set(names[:80])
    text = " ".join(found.notes)
    assert "2 of the 81 genes of the list are not in" in text
    assert "1 gene excluded" in text
    scored = train(cells, TrainingOptions(label="cell_type", include=path)).model
    assert set(scored.genes) == set(names[:80])
    larger = train(cells, TrainingOptions(label="cell_type", include=path, n_genes=90))
    assert set(names[:80]) < set(larger.model.genes)


def test_genes_of_the_query_are_found_as_in_prediction(cells):
    query = [name.lower() for name in cells.var_names[:60]]
    found = train(
        cells, TrainingOptions(label="cell_type", n_genes=20, query_genes=query)
    )
    assert {gene.lower() for gene in found.model.genes} <= set(query)
    assert any("60 of" in note for note in found.notes)


def test_sources_are_left_out_whole(cells):
    donor = np.array([f"d{k % 3}" for k in range(cells.n_obs)])
    found = train(
        with_obs(cells, donor=donor),
        TrainingOptions(label="cell_type", batch="donor", n_genes=20),
    )
    by_fold = found.held_out.groupby("fold")["source"].nunique()
    assert (by_fold == 1).all()
    assert len(by_fold) == 3


@pytest.mark.parametrize("method", ["panel", "optirank"])
def test_a_source_in_which_a_class_is_frequent_is_not_learned_in_its_place(method):
    rng = np.random.default_rng(0)
    source, y = (
        np.repeat(["one", "two"], 100),
        np.repeat(["a", "b", "a", "b"], (90, 10, 10, 90)),
    )
    X = rng.normal(size=(200, 60))
    X[:, :10] += 1.2 * (y == "b")[:, None]  # what tells the classes apart
    X[:, 10:40] += (
        3.0 * (source == "two")[:, None]
    )  # what tells the sources apart, and the classes
    names = np.array([f"s{k}" for k in range(200)], dtype=object)
    obs = pd.DataFrame({"y": y, "source": source}, index=names)
    data = made(X, [f"g{k}" for k in range(60)], obs)
    options = TrainingOptions(label="y", batch="source", method=method)
    weights = labelled_samples(obs, options, "two").weights
    for label in ("a", "b"):
        sums = [weights[(y == label) & (source == one)].sum() for one in ("one", "two")]
        assert max(sums) < 2 * min(sums)  # the numbers of samples are 90 and 10
        assert sum(sums) == pytest.approx(100)
    labels = train(data, options).model.predict(pd.DataFrame(X, names, data.var_names))
    for one in ("one", "two"):
        rare = (source == one) & (y == ("b" if one == "one" else "a"))
        assert (labels == y)[rare].mean() >= 0.8


@pytest.mark.slow
def test_single_samples_of_many_sources_do_not_outweigh_a_large_one():
    reference, query = make_example(500, 300)
    label = reference.obs["cell_type"].astype(object).to_numpy().copy()
    donor = np.full(500, "large", dtype=object)
    others = np.random.default_rng(0).permutation(np.flatnonzero(label != "b cell"))
    for k in range(6):  # each of six donors has one cell with a wrong label
        donor[others[20 * k : 20 * k + 20]] = f"small {k}"
        label[others[20 * k]] = "b cell"
    data = with_obs(reference, cell_type=label, donor=donor)
    model = train(
        data, TrainingOptions(label="cell_type", batch="donor", n_genes=100)
    ).model
    found = evaluate_profiles(query, model, "cell_type").performance
    assert found.per_class["sensitivity"]["b cell"] > 0.75
    names = [judged.name for judged in model.card.judged]
    assert names == [
        f"donor {k}" for k in range(1, 8)
    ]  # donors are not named in a model file


def test_what_cannot_be_used_is_left_out_and_said(cells):
    label = cells.obs["cell_type"].astype(object).to_numpy().copy()
    label[0], label[1], label[2:4], label[4] = np.nan, "", "rare", "Unknown"
    label[5:7] = "Unknown"
    X = cells.X.tolil() if sparse.issparse(cells.X) else cells.X.copy()
    X[10] = 0
    data = changed(with_obs(cells, cell_type=label), X=sparse.csr_matrix(X))
    found = train(data, TrainingOptions(label="cell_type", n_genes=20))
    text = " ".join(found.notes)
    assert "2 samples are left out: no label" in text
    assert "rare (2)" in text
    assert "1 sample is left out: every gene has the same value" in text
    assert "'Unknown'" in text
    assert found.model.card.n_samples == cells.n_obs - 5


def test_counts_of_genes_that_share_a_name_are_summed(cells):
    names = cells.var_names.to_numpy().copy()
    names[1] = names[0]
    found = train(
        changed(cells, genes=names), TrainingOptions(label="cell_type", n_genes=20)
    )
    assert any(
        "1 gene name occurs more than once, their counts are summed" in note
        for note in found.notes
    )


def test_a_model_of_noise_is_called_one():
    rng = np.random.default_rng(0)
    samples = np.array([f"s{k}" for k in range(60)], dtype=object)
    obs = pd.DataFrame({"kind": np.repeat(["a", "b"], 30)}, index=samples)
    genes = np.array([f"g{k}" for k in range(150)], dtype=object)
    data = made(rng.normal(size=(60, 150)), genes, obs)
    found = train(data, TrainingOptions(label="kind", n_genes=20))
    assert any("cannot be told from chance" in note for note in found.warnings)


def test_the_method_of_the_paper(cells):
    data = take_genes(cells, np.arange(40))  # a grid of settings, twice
    options = TrainingOptions(label="cell_type", method="optirank")
    first, again = (train(data, options) for _ in range(2))
    assert first.model.card.balanced_accuracy > 0.7
    assert np.array_equal(first.model.panel.coef, again.model.panel.coef)
    assert len(first.model.genes) == first.model.n_genes
    assert not first.model.votes
    assert any("setting chosen among" in note for note in first.notes)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"label": "nothing"}, "no column 'nothing'"),
        ({"n_genes": 1}, "1 genes: give at least 2"),
        ({"n_genes": 100_000}, "ask for another number"),
        ({"method": "forest"}, "use one of panel, optirank"),
        ({"method": "optirank", "n_genes": 30}, "chooses its genes itself"),
        ({"exclude": "*"}, "0 of .* genes are left"),
        ({"include": ("NOWHERE",)}, "lacks 1 of the genes asked for.*NOWHERE"),
        ({"query_genes": ["x", "y"]}, "shares 0 genes"),
        ({"tree": "nowhere.csv"}, "nowhere.csv does not exist"),
        ({"batch": "one"}, "single value"),
        ({"label": "one"}, "one class"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(cells, changes, said):
    data = with_obs(cells, one="same")
    with pytest.raises((ValueError, OSError), match=said):
        train(data, TrainingOptions(**{"label": "cell_type"} | changes))


def test_values_that_are_no_numbers_are_refused(cells):
    X = as_array(cells.X).astype(float)
    X[3, 4] = np.nan
    with pytest.raises(DataError, match="missing or infinite"):
        train(changed(cells, X=X), TrainingOptions(label="cell_type"))
    with pytest.raises(DataError, match="no sample is left"):
        train(changed(cells, X=np.ones_like(X)), TrainingOptions(label="cell_type"))


def test_standardised_values_are_a_warning_of_training_and_a_note_of_labels(cells):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, cells.n_obs, 600)  # more than are looked at for the scale
    many = take_samples(cells, rows)
    X = np.log1p(as_array(many.X).astype(float)) + rng.normal(0, 0.01, many.X.shape)
    scaled = changed(many, X=(X - X.mean(axis=0)) / X.std(axis=0))
    options = TrainingOptions(label="cell_type", n_genes=20, n_jobs=1)
    result = train(scaled, options)
    assert STANDARDISED in result.warnings
    assert STANDARDISED in label_profiles(scaled, result.model).notes
