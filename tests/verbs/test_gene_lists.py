"""Lists of genes that people write: patterns, files, other spellings, mistakes."""

from __future__ import annotations

import numpy as np
import pytest

from optirank._util.notes import collected_notes
from optirank.datasets import DataError
from optirank.verbs.gene_lists import (
    excluded_genes,
    find_listed_genes,
    genes_of_items,
    included_genes,
)

GENES = ["MS4A1", "CD3E", "NKG7", "RPL3", "RPS6KA1", "mt-Nd1", "ENSG00000156738"]


def test_items_are_names_patterns_and_files(tmp_path):
    path = tmp_path / "genes.csv"
    path.write_text('gene,weight\n# markers\n"CD3E",1\n\nNKG7,2\n')
    listed, patterns = genes_of_items([str(path), "RPL3, MT-*"])
    assert listed == ["CD3E", "NKG7"]
    assert patterns == ["RPL3", "MT-*"]
    path.write_text("gene\n")
    with pytest.raises(DataError, match="names no gene: write one per line"):
        genes_of_items([str(path)])


def test_excluded_genes_are_noted_and_so_are_patterns_that_fit_none():
    with collected_notes() as said:
        mask = excluded_genes(GENES, ["RP*", "mt-*", "XIST"])
    assert mask.sum() == 3
    assert said.notes == [
        "3 genes excluded: RPL3, RPS6KA1, mt-Nd1",
        "no gene is excluded by 'XIST': none has such a name",
    ]


def test_included_genes_fit_every_pattern_or_are_refused():
    assert included_genes(GENES, ["cd3e", "RP*"], "reference").tolist() == [1, 3, 4]
    with pytest.raises(DataError, match=r"reference lacks 1 .*: NKG77 .close: NKG7"):
        included_genes(GENES, ["CD3E", "NKG77"], "reference")


def test_a_list_is_found_in_its_own_order_and_other_spellings_are_noted():
    listed = ["NKG7", "cd3e", "ENSG00000156738.3"]
    with collected_notes() as said:
        positions = find_listed_genes(listed, GENES, "reference")
    np.testing.assert_array_equal(positions, [2, 1, 6])
    assert any("cd3e as CD3E" in note for note in said.notes)
    assert any("ENSG00000156738.3 as ENSG00000156738" in note for note in said.notes)


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        (["CD3E", "NKG77"], r"lacks 1 of the 2 .* NKG77 .close: NKG7.; correct them"),
        (["CD3E", "NKG7", "CD3E"], "more than once: CD3E; name each once"),
    ],
)
def test_mistakes_in_a_list_are_named_with_a_remedy(listed, message):
    with pytest.raises(DataError, match=message):
        find_listed_genes(listed, GENES, "reference")


def test_genes_that_are_not_there_can_be_skipped_where_two_are_left():
    with collected_notes() as said:
        found = find_listed_genes(["CD3E", "NO", "NKG7"], GENES, "data", skip=True)
    assert found.tolist() == [1, 2]
    assert said.notes == ["1 of the 3 genes of the list are not in data: NO"]
    with pytest.raises(DataError, match="data lacks 1 of the 2 genes"):
        find_listed_genes(["CD3E", "NO"], GENES, "data", skip=True)
