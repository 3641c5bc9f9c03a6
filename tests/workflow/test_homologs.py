"""Genes of another species: refused unless asked for, or translated by a table of homologs."""

from __future__ import annotations

import pytest

from example_model import as_anndata, trained_example
from optirank import tl
from optirank.datasets import DataError
from optirank.model import Predictor
from optirank.workflow.homologs import model_names, read_homologs
from optirank.workflow.predict import predict_file


@pytest.fixture(scope="module")
def example():
    return trained_example()


@pytest.fixture
def mouse(example):
    """The query with its genes in title case, as mouse symbols are written."""
    adata = as_anndata(example[1])
    adata.var_names = adata.var_names.str.lower().str.capitalize()
    return adata


def labels(adata) -> list[str]:
    return adata.obs["optirank"].tolist()


def test_genes_in_another_case_are_refused_with_both_remedies(example, mouse, tmp_path):
    model, _ = example
    mouse.write_h5ad(tmp_path / "mouse.h5ad")
    for call in (
        lambda **options: tl.annotate(mouse, model, **options),
        lambda **options: predict_file(
            tmp_path / "mouse.h5ad", model, tmp_path / "labels.csv", **options
        ),
    ):
        with pytest.raises(ValueError, match=r"another species.*--homologs FILE.*--match-case"):
            call()
        call(match_case="ignore")
        with pytest.raises(ValueError, match="match_case='maybe'"):
            call(match_case="maybe")


def test_a_few_genes_in_another_case_are_only_told(example):
    model, query = example
    adata = as_anndata(query)
    names = adata.var_names.tolist()
    panel = Predictor(model, query.gene_names).bound.match.genes
    few = set(panel[:4])
    adata.var_names = [name.lower() if name in few else name for name in names]
    tl.annotate(adata, model)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("end", ["csv", "tsv"])
def test_a_table_of_homologs_gives_the_labels_of_the_model_s_own_names(
    example, mouse, tmp_path, turned, end
):
    model, query = example
    pairs = list(zip(mouse.var_names, query.gene_names, strict=True))
    pairs = [(other, one) for one, other in pairs] if turned else pairs
    sep = "," if end == "csv" else "\t"
    path = tmp_path / f"homologs.{end}"
    path.write_text("".join(f"{one}{sep}{other}\n" for one, other in [("mouse", "human"), *pairs]))
    plain = as_anndata(query)
    tl.annotate(plain, model)
    tl.annotate(mouse, model, homologs=path)
    assert labels(mouse) == labels(plain)


def test_genes_with_several_homologs_keep_their_names(example):
    model, query = example
    a, b = query.gene_names[:2]
    names, notes = model_names(["x", "y", "z"], model, {"x": a, "y": a, "z": b})
    assert names == ["x", "y", b]
    assert "1 of 3 genes have the names of their homologs" in notes[0]


def test_a_table_that_does_not_fit_is_refused(example, tmp_path):
    model, _ = example
    path = tmp_path / "homologs.csv"
    path.write_text("Aaa,BBB\n")
    with pytest.raises(DataError, match="no line with a gene of the query and one of the model"):
        model_names(["Aaa"], model, path)
    path.write_text("Aaa,BBB,1\n")
    with pytest.raises(DataError, match="line 1 has 3 columns"):
        read_homologs(path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_homologs(tmp_path / "nowhere.csv")
