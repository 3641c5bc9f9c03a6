"""Panels for assays: chosen, extended and scored lists, their tables, and bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import optirank
from design_cases import chosen, run, scored
from example_model import LABEL, as_anndata, reference_set
from optirank.datasets import DataError
from optirank.verbs.options import DesignOptions
from profiles import changed, design, take_samples


def test_a_panel_has_as_many_genes_as_asked_and_the_required_ones():
    result = chosen()
    assert result.kind == "chosen"
    assert len(result.genes) == result.model.n_genes == 20
    assert set(result.genes["gene"]) == set(result.model.genes)
    origin = result.genes.set_index("gene")["origin"]
    assert origin["CD3E"] == "required"
    assert (origin.drop("CD3E") == "chosen").all()


def test_the_table_says_what_each_gene_is_for():
    table = chosen().genes
    assert table["rank"].tolist() == list(range(1, 21))
    assert table["path"].is_monotonic_increasing
    assert set(table["path"]) == {10, 20}
    assert (table["weight"] > 0).all()
    classes = [str(name) for name in chosen().model.classes]
    means = table[[f"mean_{name}" for name in classes]]
    np.testing.assert_allclose(means.max(axis=1), table["highest_mean"])
    shares = table[[f"share_{name}" for name in classes]]
    assert ((shares >= 0) & (shares <= 1)).all(axis=None)


def test_means_are_counts_per_ten_thousand_of_all_genes():
    reference = reference_set()
    gene = chosen().genes["gene"].iloc[0]
    X = reference.X.toarray()
    per_10k = 1e4 * X / X.sum(axis=1, keepdims=True)
    label = reference.obs[LABEL].iloc[0]
    cells = (reference.obs[LABEL] == label).to_numpy()
    values = per_10k[cells, list(reference.var_names).index(gene)]
    line = chosen().genes.iloc[0]
    assert line[f"mean_{label}"] == pytest.approx(values.mean())
    assert line[f"share_{label}"] == pytest.approx((values > 0).mean())


def test_held_out_samples_judge_the_panel_under_every_condition():
    result = chosen()
    table = result.conditions.set_index("condition")
    accuracy = result.training.performance.balanced_accuracy
    assert table["balanced_accuracy"].iloc[0] == pytest.approx(accuracy)
    assert (
        (table["low"] <= table["balanced_accuracy"])
        & (table["balanced_accuracy"] <= table["high"])
    ).all()
    assert set(table["kind"]) == {
        "as it is",
        "failing",
        "platform",
        "test",
    }
    of_query = result.test.performance.balanced_accuracy
    assert table["balanced_accuracy"].iloc[-1] == of_query
    classes = result.classes
    assert classes.index.tolist() == [str(name) for name in result.model.classes]
    assert classes["n_genes"].sum() == 20


def test_a_list_is_scored_as_it_is():
    result = scored()
    assert result.kind == "scored"
    assert set(result.genes["origin"]) == {"listed"}
    assert len(result.genes) == 10


def test_a_list_is_extended():
    result = run(gene_list=["CD3E", "MS4A1", "LYZ"], n_genes=12, per_class=2)
    assert result.kind == "extended"
    origin = result.genes.set_index("gene")["origin"]
    assert (origin[["CD3E", "MS4A1", "LYZ"]] == "listed").all()
    assert (origin == "chosen").sum() == 9


def test_bounds_on_the_mean_hold_in_the_class_where_a_gene_is_highest():
    result = run(n_genes=10, min_mean=20.0, max_mean=200.0, exclude=["RP[LS]*", "MT-*"])
    assert result.genes["highest_mean"].between(20.0, 200.0).all()
    assert result.left_out
    assert all(name.startswith(("RPL", "RPS", "MT-")) for name in result.left_out)


def test_only_genes_that_the_assay_measures_are_chosen():
    genes = [str(name).lower() for name in reference_set().var_names[:50]]
    result = run(n_genes=10, query_genes=genes)
    assert {gene.lower() for gene in result.genes["gene"]} <= set(genes)
    assert any("that the assay can measure" in note for note in result.notes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_genes": 1}, "1 genes: give at least 2"),
        (
            {"gene_list": ["CD3E"]},
            "of 1 genes: 1 are required, .* ranks need at least 2",
        ),
        ({"gene_list": ["CD3E", "CD3Q"]}, "lacks 1 of the .* CD3Q .close: CD3"),
        (
            {"gene_list": ["CD3E", "MS4A1", "LYZ"], "n_genes": 2},
            "of 2 genes: 3 are required",
        ),
        ({"min_mean": 5.0, "max_mean": 1.0}, "means from 5 to 1 .* leave no gene"),
        (
            {"min_mean": 1e6},
            "0 of 200 genes have a mean from 1e[+]06 .* widen the bounds",
        ),
        ({"n_genes": 500}, "a panel of 500 genes: 0 are required, and 200 genes of"),
        ({"n_genes": 10, "per_class": 3}, "3 genes for each of 5 classes are 15"),
        ({"include": ["NOTHING"]}, "missing in the query: NOTHING.*; correct"),
        (
            {"query_genes": ["probe1", "probe2"]},
            "shares 0 genes with those that the assay",
        ),
        ({"min_mean": -1.0}, "means from -1 to inf .* give counts per 10,000 of"),
    ],
)
def test_bad_input_is_named_with_its_remedy(options, message):
    with pytest.raises(ValueError, match=message):
        run(**options)


def test_a_reference_of_one_class_is_refused():
    reference = reference_set()
    label = reference.obs[LABEL].iloc[0]
    of_one = take_samples(reference, (reference.obs[LABEL] == label).to_numpy())
    with pytest.raises(DataError, match=r"one class .* a classifier needs two classes"):
        design(of_one, DesignOptions(label=LABEL, n_genes=10))


def test_values_that_are_no_counts_are_named():
    reference = reference_set()
    logs = changed(reference, X=reference.X.astype(np.float64).log1p())
    result = design(logs, DesignOptions(label=LABEL, n_genes=10, n_jobs=1))
    assert any("values are no counts" in note for note in result.notes)


class Container:
    """What has tables, as SpatialData does."""

    def __init__(self, **tables) -> None:
        self.tables = tables


def test_tl_design_takes_tables_of_containers_and_several_references(capsys):
    adata = as_anndata(reference_set())
    adata.var_names = ["BLANK_1", *adata.var_names[1:]]
    result = optirank.tl.design(Container(table=adata), LABEL, n_genes=10, n_jobs=1)
    printed = capsys.readouterr().out
    assert "1 control probes are left out: BLANK_1" in printed
    assert "DesignResult: 10 genes chosen" in printed
    assert "BLANK_1" not in result.model.genes
    halves = [adata[::2].copy(), adata[1::2].copy()]
    joined = optirank.tl.design(halves, LABEL, n_genes=10, n_jobs=1, verbose=False)
    assert joined.training.held_out["source"].nunique() == 2
    assert isinstance(joined.genes, pd.DataFrame)
    assert capsys.readouterr().out == ""
