"""Models with a tree of labels, from training to evaluation."""

from __future__ import annotations

from dataclasses import replace

import anndata
import numpy as np
import pytest

from example_model import as_anndata
from optirank import load, save, tl
from optirank.data.genes import join_profiles
from optirank.data.objects import profiles_of
from optirank.datasets import DataError
from optirank.datasets.example import make_example
from optirank.model.tree import SURE, fit_tree_control
from optirank.report import write_page
from optirank.verbs.cards import model_card
from optirank.verbs.label_files import predict_file
from optirank.verbs.labelling import PredictOptions
from optirank.verbs.labels import ID_COLUMN
from optirank.verbs.training import TrainingOptions
from profiles import changed, evaluate_profiles, label_profiles, train

LYMPHOID = ("b cell", "t cell", "nk cell")
LEAVES = (*LYMPHOID, "monocyte", "dendritic cell")
PARENTS = {name: "lymphoid" if name in LYMPHOID else "myeloid" for name in LEAVES}
TERMS = {"b cell": "CL:0000236", "t cell": "CL:0000084", "monocyte": "CL:0000576"}


def options(**asked) -> TrainingOptions:
    return TrainingOptions(**{"label": "cell_type", "n_genes": 20, "n_jobs": 1} | asked)


def with_lineage(data):
    lineage = [PARENTS[name] for name in data.obs["cell_type"]]
    return changed(data, obs=data.obs.assign(lineage=lineage))


@pytest.fixture(scope="module")
def sets():
    reference, query = make_example(250, 150)
    return with_lineage(reference), with_lineage(query)


@pytest.fixture(scope="module")
def flat(sets):
    return train(sets[0], options()).model


@pytest.fixture(scope="module")
def result(sets):
    return train(sets[0], options(tree=PARENTS, ontology=TERMS))


@pytest.fixture(scope="module")
def model(result):
    return result.model


def test_a_tree_changes_neither_panels_nor_probabilities(flat, model, sets):
    assert model.genes.tolist() == flat.genes.tolist()
    assert (model.panel.coef == flat.panel.coef).all()
    assert model.panel.calibration == flat.panel.calibration
    labels = [label_profiles(sets[1], one) for one in (flat, model)]
    assert (labels[0].probabilities == labels[1].probabilities).all()


def test_without_a_tree_labels_are_the_most_probable_class_and_have_no_new_column(
    flat, sets
):
    labels = label_profiles(sets[1], flat)
    assert flat.tree is None
    assert not flat.terms
    best = labels.classes[labels.probabilities.argmax(axis=1)]
    assert (labels.labels == best).all()
    probabilities = [f"probability_{name}" for name in labels.classes]
    columns = ["sample", "label", "confidence", *probabilities, "likeness"]
    assert labels.samples.columns.tolist() == [*columns, "withheld_because"]


def test_columns_from_coarse_to_fine_are_the_tree_of_a_table(model, sets):
    columns = train(sets[0], options(label=["lineage", "cell_type"])).model
    assert columns.tree.parents == model.tree.parents
    assert columns.tree.levels == ("lineage", "cell_type")
    assert columns.card.label == "lineage, cell_type"
    control, other = columns.panel.error_control, model.panel.error_control
    assert np.allclose(control.thresholds, other.thresholds)


def test_the_error_control_is_that_of_all_levels(result, model):
    table = result.held_out
    names = [str(name) for name in model.classes]
    scores = table[[f"score_{name}" for name in names]].to_numpy()
    probabilities = model.panel.calibration.probabilities(scores)
    control = fit_tree_control(model.tree, probabilities, names, table["label"])
    assert (control.errors == model.panel.error_control.errors).all()


def test_the_reason_of_a_threshold_speaks_of_the_finest_label(model, sets):
    labels = label_profiles(sets[1], model, PredictOptions(target_error=0.2))
    text = " ".join(labels.notes)
    assert "keep their finest label" in text or "the query's own confidences" in text
    _, reason = model.panel.error_control.at(0.2, by_level=True)
    assert "keep their finest label" in reason
    assert "all labels given, coarse and fine" in reason


@pytest.mark.parametrize("threshold", [None, 0.9])
def test_a_sample_gets_the_deepest_label_that_is_sure(model, sets, threshold):
    labels = label_profiles(sets[1], model, PredictOptions(threshold=threshold))
    way = model.tree.descend(labels.probabilities, model.classes)
    words = np.array([*model.tree.labels, None], dtype=object)
    place, confidence = way.label(threshold or SURE)
    given = np.where(labels.withheld, None, labels.labels)
    assert (given == words[place]).all()
    assert np.allclose(labels.confidence, confidence)
    table = labels.samples
    assert (table["leaf"] == words[way.leaf]).all()


def test_ids_are_written_beside_the_labels(model, sets, tmp_path):
    adata = as_anndata(sets[1])
    adata.write_h5ad(tmp_path / "query.h5ad")
    predict_file(tmp_path / "query.h5ad", model, tmp_path / "out.h5ad")
    tl.annotate(adata, model, verbose=False)
    column = f"optirank_{ID_COLUMN}"
    for label, term in zip(adata.obs["optirank"], adata.obs[column], strict=True):
        assert term == TERMS.get(label, "unknown")
    written = anndata.read_h5ad(tmp_path / "out.h5ad")
    assert written.obs[column].tolist() == adata.obs[column].tolist()
    tl.annotate(adata, replace(model, tree=None, terms={}), verbose=False)
    assert column not in adata.obs
    assert "optirank_leaf" not in adata.obs


def test_a_model_with_a_tree_is_read_as_it_was_saved(model, tmp_path):
    save(model, tmp_path / "m.optirank")
    again = load(tmp_path / "m.optirank")
    assert (again.tree, again.terms) == (model.tree, model.terms)
    card = dict(model_card(again))
    assert "lymphoid: " in card["tree of labels"]
    assert card["ids"] == "of 3 labels"


def test_a_sample_whose_finest_label_is_sure_has_no_note_on_coarse_labels(model, sets):
    """The note named a share of 0.0 % of labels coarser than a class."""
    labels = label_profiles(sets[1], model)
    sure = int(np.asarray(labels.confidence).argmax())
    alone = label_profiles(sets[1][[sure]], model)
    assert repr(alone).startswith(f"Labels of {alone.source}: 1 sample: ")
    (note,) = [note for note in alone.notes if "withheld" in note]
    assert note.startswith("0 of 1 labels (0.0 %) are withheld: a label of the tree")


def test_the_page_of_an_evaluation_says_that_coarse_labels_count_as_withheld(
    model, sets, tmp_path
):
    asked = PredictOptions(threshold=0.95)
    found = evaluate_profiles(sets[1], model, "cell_type", asked)
    assert (found.samples["withheld"] & (found.samples["label"] != "unassigned")).any()
    write_page(found, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "withheld or coarser, of" in page
    assert "<th>withheld or coarser</th>" in page


def test_evaluate_counts_a_label_above_the_truth_as_right_but_coarse(
    model, sets, tmp_path
):
    asked = PredictOptions(threshold=0.95)
    found = evaluate_profiles(sets[1], model, "cell_type", asked)
    levels = found.levels.set_index("level")
    assert levels["n_samples"].sum() == sets[1].n_obs
    assert levels["coarse"].sum() > 0
    judged = found.performance
    assert judged.classes == model.tree.leaves
    fine = found.levels[["right", "wrong"]].sum().sum()
    assert judged.n_given <= fine
    assert found.tables["levels"] is found.levels
    page = write_page(found, tmp_path / "page.html").read_text("utf-8")
    assert "right but coarse" in page


def test_evaluate_by_coarse_labels_alone_compares_coarse_labels(model, sets):
    found = evaluate_profiles(sets[1], model, "lineage")
    assert set(found.performance.classes) == {"lymphoid", "myeloid"}
    assert found.performance.n_samples == sets[1].n_obs
    assert found.performance.balanced_accuracy > 0.8


def test_a_truth_that_is_coarse_is_in_the_tables_of_levels_alone(model, sets):
    obs = sets[1].obs.copy()
    obs["mixed"] = obs["cell_type"].astype(object)
    obs.loc[obs.index[:10], "mixed"] = obs["lineage"].iloc[:10]
    found = evaluate_profiles(changed(sets[1], obs=obs), model, "mixed")
    assert found.performance.n_samples == len(obs) - 10
    assert found.levels["n_samples"].sum() == len(obs)
    assert any("10 samples are known to a coarser label" in n for n in found.notes)


def test_the_page_of_labels_draws_the_tree(model, flat, sets, tmp_path):
    pages = [
        write_page(label_profiles(sets[1], one), tmp_path / f"{k}.html").read_text(
            "utf-8"
        )
        for k, one in enumerate((model, flat))
    ]
    assert "The tree of labels" in pages[0]
    assert "The tree of labels" not in pages[1]


def test_samples_of_inner_labels_have_no_part_in_training(sets):
    obs = sets[0].obs.copy()
    obs["mixed"] = obs["cell_type"].astype(object)
    obs.loc[obs.index[:7], "mixed"] = "lymphoid"
    data = changed(sets[0], obs=obs)
    found = train(data, options(label="mixed", tree=PARENTS))
    assert found.model.card.n_samples == len(obs) - 7
    assert any("known to a coarser label alone" in note for note in found.notes)
    assert any("lymphoid (7)" in note for note in found.notes)


def test_a_small_class_goes_from_the_tree_too(sets):
    obs = sets[0].obs.copy()
    rare = np.flatnonzero(obs["cell_type"] == "dendritic cell")[2:]
    obs["kind"] = obs["cell_type"].astype(object)
    obs.iloc[rare, obs.columns.get_loc("kind")] = None
    found = train(changed(sets[0], obs=obs), options(label="kind", tree=PARENTS)).model
    assert "dendritic cell" not in found.tree.labels
    assert "myeloid" in found.tree.labels


def test_a_tree_and_several_columns_are_refused_together():
    with pytest.raises(ValueError, match="are a tree of labels already"):
        options(label=["a", "b"], tree="t.csv")


def test_tl_takes_columns_a_mapping_and_labels_apart(sets):
    adata = as_anndata(sets[0])
    asked = {"n_genes": 20, "n_jobs": 1, "verbose": False}
    by_columns = tl.train(adata, ["lineage", "cell_type"], **asked).model
    assert by_columns.tree.levels == ("lineage", "cell_type")
    apart = tl.train(adata, adata.obs["cell_type"].tolist(), **asked).model
    assert apart.tree is None


def test_sources_without_a_common_class_are_refused_with_the_remedy(sets):
    reference, _ = sets
    other = reference.copy()
    other.obs["cell_type"] = [f"{label}s" for label in other.obs["cell_type"]]
    sets = [profiles_of(reference), profiles_of(other)]
    both = join_profiles(sets, ["one", "two"])
    asked = options(label="cell_type", batch="file")
    with pytest.raises(DataError, match=r"no class is in two sources .* mapping="):
        train(both, asked)
