"""Labels and Cell Ontology terms: what is found, what is not, and tables of them."""

from __future__ import annotations

from importlib.resources import files

import pytest

from optirank.ontology import (
    alike,
    cell_ontology,
    match_labels,
    parents_among,
    read_terms,
    write_terms,
)
from optirank.ontology.terms import TABLE, USUAL_NAMES

ONTOLOGY = cell_ontology()


def term_of(label: str) -> str:
    return match_labels([label], ONTOLOGY)[0].id


def test_the_table_is_small_whole_and_names_its_version():
    assert len((files("optirank.ontology") / TABLE).read_bytes()) < 300_000
    assert len(ONTOLOGY.terms) > 3000
    assert ONTOLOGY.version.startswith("v20")
    parents = {up for term in ONTOLOGY.terms.values() for up in term.parents}
    assert parents <= ONTOLOGY.terms.keys()
    assert set(USUAL_NAMES.values()) <= ONTOLOGY.terms.keys()


@pytest.mark.parametrize(
    ("label", "term"),
    [
        ("B cell", "CL:0000236"),
        ("b_cells", "CL:0000236"),
        ("B lymphocyte", "CL:0000236"),
        ("T-cell", "CL:0000084"),
        ("cell, T", "CL:0000084"),
        ("CD14+ Monocytes", "CL:0001054"),
        ("T_CD4", "CL:0000624"),
        ("NK", "CL:0000623"),
        ("Microglia", "CL:0000129"),
        ("Platelets", "CL:0000233"),
        ("CD16 monocyte", "CL:0002396"),
        ("CD16- monocyte", "CL:0002057"),
        ("CD4-negative CD8-negative gamma-delta T cell", None),
    ],
)
def test_labels_are_found_by_names_and_synonyms(label, term):
    found = term_of(label)
    if term is None:
        assert "CD4" not in ONTOLOGY.terms[found].name if found else True
    else:
        assert found == term


@pytest.mark.parametrize(
    "label",
    [
        *("breast", "bladder", "liver", "kidney papillary", "glioblastoma", "colon"),
        *("lung squamous", "ALL", "aml", "ER positive", "tumour", "normal", "Basal"),
        *("LumA", "invasive", "MSI", "p53 wt", "1", "male", "unknown", "b", "VIP"),
    ],
)
def test_tumours_tissues_and_bare_letters_get_no_term(label):
    assert term_of(label) == ""


def test_what_is_not_found_has_its_nearest_names():
    (found,) = match_labels(["dendritic"], ONTOLOGY)
    assert found.near[0] == ("CL:0000451", "dendritic cell")


def test_positive_and_negative_stay_with_their_word():
    names = ("CD4-positive CD8-negative x", "CD8-positive CD4-negative x")
    assert alike(match_labels(names, ONTOLOGY)) == []


def test_labels_that_name_one_term_or_differ_in_form_alone_are_alike():
    labels = ["B cell", "b_cells", "B lymphocyte", "ductal", "Ductal", "alpha", "NK"]
    groups = alike(match_labels(labels, ONTOLOGY))
    assert groups == [("B cell", "B lymphocyte", "b_cells"), ("Ductal", "ductal")]


def test_a_term_is_below_those_above_it():
    above = ONTOLOGY.ancestors("CL:0000624")  # CD4 T cells
    assert {"CL:0000084", "CL:0000542", "CL:0000000"} <= above  # T cells, lymphocytes
    assert "CL:0000623" not in above


# Trees from terms

IDS = {
    "CD4 T": "CL:0000624",
    "T": "CL:0000084",
    "lymphocyte": "CL:0000542",
    "B": "CL:0000236",
    "astro": "CL:0000127",
}


def test_the_parent_of_a_label_is_the_next_above_it_among_the_labels():
    assert dict(parents_among(IDS, ONTOLOGY)) == {
        "CD4 T": "T",
        "T": "lymphocyte",
        "lymphocyte": "",
        "B": "lymphocyte",
        "astro": "",
    }


def test_two_labels_of_one_term_are_no_tree():
    with pytest.raises(ValueError, match="'B' and 'B2' are one term"):
        parents_among(IDS | {"B2": "CL:0000236"}, ONTOLOGY)


def test_a_label_below_two_others_is_no_tree():
    term = next(
        term
        for term, about in ONTOLOGY.terms.items()
        if len(about.parents) == 2
        and not any(
            up in ONTOLOGY.ancestors(other)
            for up in about.parents
            for other in about.parents
        )
    )
    first, second = ONTOLOGY.terms[term].parents
    ids = {"x": term, "one": first, "two": second}
    with pytest.raises(ValueError, match=r"'x' .* stands below 'one', 'two'|'two'"):
        parents_among(ids, ONTOLOGY)


# The table that a user corrects


def test_a_corrected_table_is_read_again(tmp_path):
    path = tmp_path / "terms.csv"
    labels = ['a "quoted", label', "B cell", "dendritic", "tumour"]
    write_terms(path, match_labels(labels, ONTOLOGY), {"B cell": 7})
    assert "B cell,7,CL:0000236,B cell,name," in path.read_text()
    assert read_terms(path, ONTOLOGY) == {"B cell": "CL:0000236"}
    lines = path.read_text().splitlines()
    lines[3] = "dendritic,0,CL:0000451,,,"
    lines[4] = "tumour,0,unknown,,,"
    path.write_text("\n".join(lines))
    ids = {"B cell": "CL:0000236", "dendritic": "CL:0000451"}
    assert read_terms(path, ONTOLOGY) == ids


@pytest.mark.parametrize(
    ("lines", "match"),
    [
        ("label,id\nx,CL:0000236", "no column 'cell_type_ontology_term_id'"),
        ("label,cell_type_ontology_term_id\nx,CL:1", "line 2: 'CL:1' is no term"),
        (
            "label,cell_type_ontology_term_id\nx,CL:0000236\nx,CL:0000084",
            "line 3: 'x' is CL:0000236 above",
        ),
    ],
)
def test_bad_tables_of_terms_are_refused_with_the_line(tmp_path, lines, match):
    path = tmp_path / "terms.csv"
    path.write_text(lines)
    with pytest.raises(ValueError, match=match):
        read_terms(path, ONTOLOGY)
