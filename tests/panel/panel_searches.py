"""Searches for panels in a matrix in memory."""

import functools
from types import SimpleNamespace

import numpy as np

from optirank.panel.elimination import search_panels
from optirank.panel.samples import DrawnSamples, fold_matrix, keys_of_matrix


def search_matrix(X, codes, n_classes, fold_of=None, **options):
    """Both passes over a matrix, and the search between them."""
    run_pass = functools.partial(fold_matrix, X)
    keys = keys_of_matrix(X, codes)
    looking = DrawnSamples(codes, keys, n_classes, fold_of=fold_of)
    run_pass([looking])
    *looked_at, _ = looking.result()
    weights = np.ones(len(codes))
    path, n_genes, held_out = search_panels(
        *looked_at, codes, n_classes, run_pass, sample_weight=weights, **options
    )
    return SimpleNamespace(path=path, n_genes=n_genes, held_out=held_out)
