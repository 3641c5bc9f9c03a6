"""Genes of another species: translated by a table of homologs, refused where there
is none.
"""

from __future__ import annotations

import pytest
from optirank.verbs.preparation import prepare

from example_model import LABEL, as_anndata, reference_set, trained_example
from optirank import tl
from optirank.datasets import DataError
from optirank.io.data import gene_names, notes_of
from optirank.io.homologs import ensembl_ids_of, homologous_names
from optirank.io.objects import join
from optirank.verbs.label_files import explain_sample
from optirank.verbs.options import TrainingOptions
from profiles import changed


@pytest.fixture
def mouse(query):
    """The query with its genes in title case, as mouse symbols are written."""
    adata = as_anndata(query)
    adata.var_names = adata.var_names.str.lower().str.capitalize()
    return adata


def test_genes_in_another_case_are_refused_unless_asked_for(model, query, mouse):
    mouse.var_names = mouse.var_names.str.lower()  # as no species has them
    with pytest.raises(ValueError, match="another species"):
        tl.annotate(mouse, model)
    tl.annotate(mouse, model, homologs="case")
    plain = as_anndata(query)
    tl.annotate(plain, model)
    assert mouse.obs["optirank"].tolist() == plain.obs["optirank"].tolist()


@pytest.mark.parametrize(("end", "turned"), [("csv", False), ("tsv", True)])
def test_a_table_of_homologs_gives_the_labels_of_the_model_s_own_names(
    model, query, mouse, tmp_path, end, turned
):
    pairs = [("mouse", "human"), *zip(mouse.var_names, query.var_names, strict=True)]
    sep = "," if end == "csv" else "\t"
    path = tmp_path / f"homologs.{end}"
    path.write_text("".join(sep.join(p[::-1] if turned else p) + "\n" for p in pairs))
    plain = as_anndata(query)
    tl.annotate(plain, model)
    tl.annotate(mouse, model, homologs=path)
    assert mouse.obs["optirank"].tolist() == plain.obs["optirank"].tolist()
    assert "names of their homologs" in mouse.uns["optirank"]["notes"][0]


def test_the_table_of_mouse_and_human_genes_is_shipped(model, query, mouse):
    tl.annotate(mouse, model, homologs="mouse")
    plain = as_anndata(query)
    tl.annotate(plain, model)
    same = mouse.obs["optirank"].astype(str) == plain.obs["optirank"].astype(str)
    assert same.mean() > 0.8  # a few genes have no homolog of their own
    assert "the table of mouse and human genes" in mouse.uns["optirank"]["notes"][0]


def test_mouse_genes_are_recognised_and_said(model, query, mouse):
    asked = mouse.copy()
    tl.annotate(asked, model, homologs="mouse")
    tl.annotate(mouse, model)
    assert mouse.obs["optirank"].tolist() == asked.obs["optirank"].tolist()
    assert "translated between mouse and human" in mouse.uns["optirank"]["notes"][0]
    names = [str(name) for name in query.var_names]
    panel = model.path_genes
    notes: list[str] = []
    assert homologous_names(names, panel, notes) == names  # the model's own names stay
    few = [*names[:3], "X1", "X2"]  # most genes are missing, and no table has them
    assert homologous_names(few, panel, notes) == few
    assert notes == []


def test_genes_with_several_homologs_keep_their_names():
    model, query = trained_example()
    a, b = query.var_names[:2]
    table = {"x": a, "y": a, "z": b}
    notes: list[str] = []
    given = ["x", "y", "z"]
    names = homologous_names(given, model.path_genes, notes, homologs=table)
    assert names == ["x", "y", b]
    assert "1 of 3 genes have the names of their homologs" in notes[0]


def test_a_table_that_does_not_fit_is_refused(model, mouse, tmp_path):
    path = tmp_path / "homologs.csv"
    for text, message in (
        ("Aaa,BBB\n", "no line with a gene"),
        ("A,B,1\n", "has 3 columns"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            tl.annotate(mouse, model, homologs=path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        tl.annotate(mouse, model, homologs=tmp_path / "nowhere.csv")


def test_an_explanation_translates_genes_as_prediction_does(model, mouse, tmp_path):
    mouse.write_h5ad(tmp_path / "mouse.h5ad")
    tl.annotate(mouse, model)
    name = str(mouse.obs_names[3])
    labels = explain_sample(tmp_path / "mouse.h5ad", model, name)
    found = labels.explanation
    assert str(found.label) == mouse.obs["optirank"].iloc[3]
    assert found.confidence == pytest.approx(mouse.obs["optirank_confidence"].iloc[3])
    assert "translated between mouse and human" in labels.notes[0]


def test_ensembl_ids_are_translated_by_the_shipped_table_and_said(model, query):
    ids = ensembl_ids_of([str(name) for name in query.var_names])
    n_panel = sum(name in set(model.genes) for name in query.var_names)
    assert n_panel > 10
    plain = as_anndata(query)
    tl.annotate(plain, model)
    by_id = as_anndata(query)
    by_id.var_names = [f"{name}.7" if name.startswith("ENSG") else name for name in ids]
    del by_id.var["code"]
    tl.annotate(by_id, model)
    same = by_id.obs["optirank"].astype(str) == plain.obs["optirank"].astype(str)
    assert same.mean() > 0.9  # a few symbols have several ids
    assert "from Ensembl ids to symbols" in by_id.uns["optirank"]["notes"][0]


def with_ids(data):
    """The data with Ensembl ids in place of symbols, where these have one."""
    return changed(data, genes=ensembl_ids_of([str(name) for name in data.var_names]))


def test_a_reference_with_ensembl_ids_is_translated_to_the_names_of_the_query(query):
    reference = with_ids(reference_set())
    genes = [str(name) for name in query.var_names]
    options = TrainingOptions(label=LABEL, query_genes=genes, n_genes=20, n_jobs=1)
    prepared = prepare(reference, options)
    assert set(prepared.genes) <= set(genes)
    assert len(prepared.genes) > 100
    assert any("from Ensembl ids to symbols" in note for note in prepared.notes)


def test_files_with_symbols_and_with_ensembl_ids_are_joined():
    reference = reference_set()
    joined = join([reference, with_ids(reference)], ["symbols", "ids"])
    assert len(gene_names(joined)) > 0.9 * reference.n_vars
    assert "ids: " in notes_of(joined)[0]
    assert "from Ensembl ids to symbols" in notes_of(joined)[0]
