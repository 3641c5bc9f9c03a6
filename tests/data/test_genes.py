"""Genes are found by name, other spellings are said, and nothing is guessed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optirank._util.words import collected_notes
from optirank.data.genes import check_case, match_genes
from optirank.data.profiles import DataError


def notes_of(match) -> list[str]:
    with collected_notes() as said:
        match.note_spelling()
    return said.notes


@pytest.mark.parametrize("kind", [list, pd.Index, np.array, tuple, pd.Series])
def test_genes_are_found_as_written_in_any_order_and_missing_ones_are_named(kind):
    match = match_genes(kind(["A", "B", "CD4"]), kind(["x", "CD4", "A", "cd4", "Cd4"]))
    assert match.columns.tolist() == [2, -1, 1]
    assert match.missing == ("B",)
    assert notes_of(match) == []


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("ENSG00000141510", "ENSG00000141510.12"),
        ("ENSG00000141510.3", "ENSG00000141510"),
        ("ENSMUSG00000059552.1", "ENSMUSG00000059552.14"),
        ("ENSG00000182378.1_PAR_Y", "ENSG00000182378.2_PAR_Y"),
    ],
)
def test_versions_of_ensembl_identifiers_are_recognised_and_said(ours, theirs):
    match = match_genes([ours], ["x", theirs])
    assert match.columns.tolist() == [1]
    assert notes_of(match) == [
        f"1 gene is matched without the version of their Ensembl identifier: {ours} "
        f"as {theirs}"
    ]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("RP11-34P13.7", "RP11-34P13.8"),  # not a version
        ("ENSG00000182378.1", "ENSG00000182378.1_PAR_Y"),
    ],
)
def test_other_suffixes_are_parts_of_the_name(ours, theirs):
    assert match_genes([ours], [theirs]).missing == (ours,)


def test_other_cases_are_recognised_and_said():
    match = match_genes(
        ["CD4", "Actb", "ensg00000141510"], ["cd4", "ACTB", "ENSG00000141510.2"]
    )
    assert match.columns.tolist() == [0, 1, 2]
    assert list(match.by_case.values()) == ["cd4", "ACTB", "ENSG00000141510.2"]
    assert "matched in another case: CD4 as cd4" in notes_of(match)[0]


def test_what_several_columns_could_be_counts_as_missing_and_is_said():
    match = match_genes(["A", "B"], ["A", "B", "A"])
    assert match.columns.tolist() == [-1, 1]
    assert (
        notes_of(match)[0]
        == "1 gene is missing because several columns match: A as A and A"
    )
    match = match_genes(["CD4"], ["cd4", "Cd4"])
    assert match.ambiguous == {"CD4": ("cd4", "Cd4")}
    assert match_genes(["CD4", "Cd4"], ["CD4"]).columns.tolist() == [0, -1]
    assert set(match_genes(["CD4", "Cd4"], ["cd4"]).ambiguous) == {"CD4", "Cd4"}


def test_names_that_are_no_strings_are_refused():
    with pytest.raises(TypeError, match="gene names are strings, not int: 7"):
        match_genes(["7"], [7])


def test_most_genes_in_another_case_may_be_of_another_species():
    genes = [f"GENE{k}" for k in range(20)]
    for n_by_case, is_refused in ((5, False), (10, False), (11, True), (20, True)):
        names = [g.title() for g in genes[:n_by_case]] + genes[n_by_case:]
        match = match_genes(genes, names)
        assert len(match.by_case) == n_by_case
        if is_refused:
            with pytest.raises(DataError, match=rf"{n_by_case} of the 20.*species\?"):
                check_case(match)
        else:
            check_case(match)


names = st.lists(st.text("aAbB", min_size=1, max_size=2), max_size=8)


@given(names.map(lambda found: list(dict.fromkeys(found))), names)
def test_every_gene_is_found_once_or_missing_and_spellings_are_listed(
    wanted, given_names
):
    match = match_genes(wanted, given_names)
    used = match.columns[match.present]
    assert len(set(used.tolist())) == len(used)
    for gene, column in zip(match.genes, match.columns, strict=True):
        if column < 0:
            assert gene in match.missing
            assert given_names.count(gene) != 1
        else:
            name = given_names[column]
            assert name.casefold() == gene.casefold()
            assert (name == gene) != (match.by_case.get(gene) == name)
            assert given_names.count(name) == 1
