"""Whether labels can be right as a whole: the alarm and the words."""

from __future__ import annotations

from dataclasses import replace

import anndata
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import rankdata

from example_model import telling_model, telling_pair
from expression_files import write_h5ad
from optirank._util.numbers import STANDARDISED
from optirank._util.words import collected_notes
from optirank.panel.further import Agreement
from optirank.tl import annotate
from optirank.verbs.checks import ALARM_BELOW, UNLIKELY, Checks
from optirank.verbs.label_files import predict_file
from optirank.verbs.options import PredictOptions
from profiles import changed, label_profiles

CLASSES = ["b cell", "t cell", "monocyte"]


def compared(*agreements, n_genes=2000):
    """An agreement with about these values by label."""
    rng = np.random.default_rng(0)
    reference = rng.normal(size=(len(agreements), n_genes))
    noise = rng.normal(size=reference.shape)
    r = np.array(agreements, dtype=float).reshape(-1, 1)
    query = r * reference + np.sqrt(1 - r**2) * noise
    return Agreement(np.arange(len(agreements)), reference, query)


def say(*agreements, likeness=0.9, missing=0.0, none=False, **options):
    """What is said of labels with these agreements: notes and warnings."""
    compared_genes = None if none else compared(*agreements, **options)
    checks = Checks(CLASSES, 40, compared_genes, likeness, missing)
    with collected_notes() as said:
        checks.say()
    return said.notes, said.warnings


def test_little_agreement_is_an_alarm_however_alike_samples_are():
    _, (alarm,) = say(0.1, 0.1, 0.1, likeness=1.0)
    assert "do not look like the training data" in alarm
    assert "(agreement 0.1" in alarm
    assert not say(0.7, 0.7, 0.7, likeness=1.0)[1]


def test_where_agreement_is_in_doubt_likeness_decides():
    assert not say(0.35, 0.35, likeness=0.8)[1]
    assert say(0.35, 0.35, likeness=0.5)[1]
    assert not say(0.7, 0.7, likeness=0.3)[1]


def test_labels_that_cannot_be_checked_say_why_and_likeness_decides():
    (note,), (alarm,) = say(likeness=0.4)
    assert "two labels with at least 3 samples each; the query has 40 samples" in note
    assert alarm == UNLIKELY
    assert not say(likeness=0.7)[1]
    (note,), alarms = say(n_genes=7, likeness=0.7)
    assert not alarms
    assert "the query has 7 of those" in note
    assert "a check takes 50" in note
    (note,), alarms = say(none=True, likeness=np.nan)
    assert not alarms
    assert "the model stores none, because its training data" in note


def test_labels_of_less_than_half_a_panel_that_nothing_checks_are_an_alarm():
    _, (alarm,) = say(n_genes=7, missing=0.93)
    assert alarm.startswith("93% of the panel's genes are missing, and nothing else")
    assert not say(n_genes=7, missing=0.5)[1]
    assert not say(0.7, 0.7, missing=0.93)[1]
    assert len(say(likeness=0.4, missing=0.93)[1]) == 2


def test_labels_of_low_agreement_are_named_where_there_is_no_alarm():
    notes, _ = say(0.8, 0.1, 0.9)
    assert "1 label agrees little" in notes[1]
    assert "t cell 0." in notes[1]
    assert len(say(0.8, 0.8, 0.9)[0]) == 1
    assert len(say(0.1, 0.1, 0.1)[0]) == 1


def scrambled(query):
    """The query with the values of each sample in an order of its own."""
    rng = np.random.default_rng(0)
    X = np.array([rng.permutation(row) for row in query.X.toarray()])
    return changed(query, X=csr_matrix(X))


def test_a_threshold_withholds_the_same_whatever_the_query_is_like():
    model, query = telling_model(), telling_pair()[1]
    for samples in (query, scrambled(query)):
        given = label_profiles(samples, model, PredictOptions(threshold=0.8))
        np.testing.assert_array_equal(given.withheld, given.confidence < 0.8)
        assert not label_profiles(samples, model).withheld.any()


def test_agreement_is_measured_in_the_pass_that_labels_by_genes_outside_the_panel():
    model, query = telling_model(), telling_pair()[1]
    labels = label_profiles(query, model)
    record = labels.record
    assert record["agreement"] > 0.6
    assert set(record["agreement_by_label"]) == {"a", "b", "c"}
    assert not labels.warnings
    assert "alarm" not in labels.samples
    assert any(note.startswith("agreement of other genes 0.") for note in labels.notes)
    # By hand: the labels given, over the further genes that are not of the panel
    genes, means = model.further.found_among(query.var_names, model.genes)
    assert not set(model.genes).intersection(query.var_names[genes])
    ranks = rankdata(query.X.toarray()[:, genes], axis=1) / len(genes)
    own = np.array([ranks[labels.chosen == k].mean(axis=0) for k in range(3)])
    pairs = [(one - one.mean(axis=0)).ravel() for one in (means, own)]
    np.testing.assert_allclose(record["agreement"], np.corrcoef(pairs)[0, 1])


def test_labels_do_not_depend_on_the_genes_that_check_them():
    model, query = telling_model(), telling_pair()[1]
    plain = label_profiles(query, replace(model, further=None))
    checked = label_profiles(query, model)
    np.testing.assert_array_equal(plain.probabilities, checked.probabilities)
    assert plain.record["agreement"] is None


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".h5ad", ".zarr"])
def test_an_alarm_is_a_column_of_every_table_of_labels(suffix, tmp_path):
    model = telling_model()
    write_h5ad(scrambled(telling_pair()[1]), tmp_path / "query.h5ad")
    labels = predict_file(tmp_path / "query.h5ad", model, tmp_path / f"out{suffix}")
    assert labels.record["agreement"] < ALARM_BELOW
    assert not any("adapt=True" in note for note in labels.notes)
    (alarm,) = labels.warnings
    assert "may all be wrong" in alarm
    if suffix == ".csv":
        written = pd.read_csv(tmp_path / "out.csv")["alarm"]
    elif suffix == ".parquet":
        written = pd.read_parquet(tmp_path / "out.parquet")["alarm"]
    else:
        read = anndata.read_h5ad if suffix == ".h5ad" else anndata.read_zarr
        adata = read(tmp_path / f"out{suffix}")
        written = adata.obs["optirank_alarm"]
        assert adata.uns["optirank"]["agreement"] == labels.record["agreement"]
    assert set(written) == {alarm}


def with_genes(query, model, n_panel, n_others):
    """The query with some genes of the panel, and some that check its labels."""
    others = [gene for gene in model.further.genes if gene in query.var_names]
    return query[:, [*model.genes[:n_panel], *others[:n_others]]].copy()


def test_a_query_without_most_of_the_panel_is_an_alarm_unless_other_genes_agree():
    model, query = telling_model(), telling_pair()[1]
    for wrong, n_others in ((query, 0), (scrambled(query), 30), (query[:5], 40)):
        labels = label_profiles(with_genes(wrong, model, 13, n_others), model)
        assert labels.record["agreement"] is None
        assert any("% of the panel's genes are missing" in w for w in labels.warnings)
        assert (labels.samples["alarm"] != "").all()
    assert not label_profiles(with_genes(query, model, 13, 30), model).warnings
    assert not label_profiles(with_genes(query, model, 20, 0), model).warnings


def test_values_scaled_per_gene_are_named_and_raw_too():
    model, query = telling_model(), telling_pair()[1]
    counts = np.random.default_rng(0).poisson(0.1 * query.X.toarray())
    spread = counts.std(axis=0)
    spread[spread == 0] = 1
    scaled = query.copy()
    scaled.raw = query
    scaled.X = (counts - counts.mean(axis=0)) / spread
    notes = annotate(scaled, model, verbose=False).notes
    assert STANDARDISED in notes
    assert "raw may have the values before: layer='raw' reads it" in notes
