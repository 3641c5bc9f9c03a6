"""Lists of genes that people write: families, other spellings, aliases, mistakes."""

from __future__ import annotations

import numpy as np
import pytest

from optirank.datasets import DataError
from optirank.verbs.gene_lists import excluded_genes, find_listed, housekeeping

GENES = ["MS4A1", "CD3E", "NKG7", "RPL3", "RPS6KA1", "mt-Nd1", "HBB", "HBEGF", "TOP2A"]


def test_housekeeping_is_ribosomal_mitochondrial_haemoglobin_and_cell_cycle():
    mask = housekeeping(GENES)
    belongs = [gene for gene, inside in zip(GENES, mask, strict=True) if inside]
    assert belongs == ["RPL3", "mt-Nd1", "HBB", "TOP2A"]


def test_housekeeping_genes_are_known_by_their_ensembl_ids():
    ids = ["ENSG00000156738", "ENSG00000100316", "ENSG00000131747.15"]
    assert housekeeping(ids).tolist() == [False, True, True]  # MS4A1, RPL3, TOP2A


def test_each_pattern_says_what_it_excludes():
    notes: list[str] = []
    mask = excluded_genes(GENES, ["RP*", "housekeeping", "XIST"], notes)
    assert mask.sum() == 5
    assert notes == [
        "2 genes excluded by 'RP*': RPL3, RPS6KA1",
        "3 genes excluded by 'housekeeping': mt-Nd1, HBB, TOP2A",
        "no gene is excluded by 'XIST': none has such a name",
    ]


def test_a_list_is_found_in_its_own_order_and_other_spellings_are_noted():
    listed = ["NKG7", "cd3e", "ENSG00000156738"]
    positions, notes = find_listed(listed, GENES, "reference")
    np.testing.assert_array_equal(positions, [2, 1, 0])
    assert any("cd3e as CD3E" in note for note in notes)
    assert any("ENSG00000156738 as MS4A1" in note for note in notes)


def test_a_list_may_have_the_names_of_another_column():
    positions, notes = find_listed(
        ["probe_b"], ["A", "B"], "reference", {"probe": ["probe_a", "probe_b"]}
    )
    assert positions.tolist() == [1]
    assert "the column 'probe'" in notes[0]


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        (["CD3E", "CD20"], r"lacks 1 of the 2 .* CD20 \(another name of MS4A1\)"),
        (["CD3E", "NKG77"], r"NKG77 \(close: NKG7\); correct them, .*skip_unknown"),
        (["CD3E", "NKG7", "CD3E"], r"more than once: CD3E \(2 times\); name each"),
        (["MS4A1", "ENSG00000156738"], "MS4A1 and ENSG00000156738 are MS4A1"),
    ],
)
def test_mistakes_in_a_list_are_named_with_a_remedy(listed, message):
    with pytest.raises(DataError, match=message):
        find_listed(listed, GENES, "reference")


def test_unknown_genes_can_be_skipped():
    positions, notes = find_listed(
        ["CD3E", "NOTHING"], GENES, "reference", skip_unknown=True
    )
    assert positions.tolist() == [1]
    assert "skipped: NOTHING" in notes[0]
