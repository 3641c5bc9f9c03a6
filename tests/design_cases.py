"""Designs on the generated example, shared by the tests of tables and of the page."""

from __future__ import annotations

import functools

from example_model import LABEL, reference_set, trained_example
from optirank.verbs.design import DesignResult
from optirank.verbs.options import DesignOptions
from profiles import design


def run(**options) -> DesignResult:
    return design(reference_set(), DesignOptions(label=LABEL, n_jobs=1, **options))


@functools.cache
def chosen() -> DesignResult:
    """A panel of 20 genes that a query of another platform judges; shared."""
    options = DesignOptions(label=LABEL, n_genes=20, include=["CD3E"], n_jobs=1)
    query = trained_example()[1]
    return design(reference_set(), options, test=query)


@functools.cache
def scored() -> DesignResult:
    """A list of markers and of two genes that mark nothing."""
    genes = [
        "CD3E",
        "CD3D",
        "MS4A1",
        "CD79A",
        "NKG7",
        "GNLY",
        "LYZ",
        "CD14",
        "RPL3",
        "RPL4",
    ]
    return run(gene_list=genes)
