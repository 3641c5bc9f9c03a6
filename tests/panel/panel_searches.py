"""Searches for panels in a matrix in memory."""

import functools

from optirank.panel.elimination import search_panels
from optirank.panel.sources import first_look, fold_matrix, keys_of_matrix


def search_matrix(X, codes, n_classes, fold_of=None, **options):
    """Both passes over a matrix, and the search between them."""
    run_pass = functools.partial(fold_matrix, X)
    keys = keys_of_matrix(X, codes)
    looked = first_look(run_pass, codes, n_classes, keys, fold_of=fold_of)
    return search_panels(
        looked.sums,
        looked.rows,
        looked.X,
        codes,
        n_classes,
        run_pass,
        fold_of=fold_of,
        **options,
    )
