"""Lists of genes that people write: patterns, files, other spellings, mistakes."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from optirank._util.words import collected_notes
from optirank.datasets import DataError
from optirank.verbs.gene_lists import (
    excluded_genes,
    find_genes,
    genes_of_items,
    refuse_missing,
)

GENES = ["MS4A1", "CD3E", "NKG7", "RPL3", "RPS6KA1", "mt-Nd1", "ENSG00000156738"]


def test_items_are_names_patterns_and_files(tmp_path):
    path = tmp_path / "genes.csv"
    path.write_text('gene,weight\n# markers\n"CD3E",1\n\nNKG7,2\n')
    listed, named = genes_of_items([str(path), "RPL3, MT-*"])
    assert listed == ["CD3E", "NKG7"]
    assert named == ["RPL3", "MT-*"]
    packed = tmp_path / "genes.txt.gz"
    packed.write_bytes(gzip.compress("# für T\nCD3E\n".encode("cp1252")))
    assert genes_of_items([packed])[0] == ["CD3E"]
    path.write_text("gene\n")
    with pytest.raises(DataError, match="names no gene: write one per line"):
        genes_of_items([str(path)])


def test_excluded_genes_are_noted_and_so_is_what_fits_none(tmp_path):
    path = tmp_path / "genes.txt"
    path.write_text("mt-nd1\n")
    with collected_notes() as said:
        mask = excluded_genes(GENES, ["RP*", str(path), "XIST"])
    assert mask.sum() == 3
    assert said.notes == [
        "1 gene is matched in another case: mt-nd1 as mt-Nd1",
        "3 genes excluded: RPL3, RPS6KA1, mt-Nd1",
        "no gene is excluded by XIST: none has such a name",
    ]


def test_genes_are_found_by_patterns_and_in_other_spellings():
    wanted = ["NKG7", "cd3e", "ENSG00000156738.3", "rp*", "MT-?", "no"]
    with collected_notes() as said:
        found, missing = find_genes(GENES, wanted)
    np.testing.assert_array_equal(found, [1, 2, 3, 4, 6])
    assert missing == ["MT-?", "no"]
    assert any("cd3e as CD3E" in note for note in said.notes)
    assert any("ENSG00000156738.3 as ENSG00000156738" in note for note in said.notes)


def test_genes_that_are_not_there_are_refused_with_close_names():
    refuse_missing([], GENES, "reference")
    with pytest.raises(DataError, match=r"reference lacks 1 .* NKG77 .close: NKG7."):
        refuse_missing(["NKG77"], GENES, "reference")
