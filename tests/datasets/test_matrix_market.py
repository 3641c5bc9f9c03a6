"""Matrix Market files: read as scipy reads them, or refused before memory is allocated."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from optirank.datasets import DataError
from optirank.datasets.anndata_files import readable
from optirank.datasets.matrix_market import read_matrix_market

HEAD = "%%MatrixMarket matrix coordinate integer general\n"


@given(
    st.integers(1, 7),
    st.integers(1, 7),
    st.sampled_from(["integer", "real", "pattern"]),
    st.integers(0, 1000),
    st.booleans(),
)
def test_a_matrix_is_read_as_scipy_reads_it(tmp_path_factory, n, d, field, seed, zipped):
    rng = np.random.default_rng(seed)
    values = rng.poisson(0.7, (n, d)) * (1.0 if field != "real" else rng.normal(size=(n, d)))
    values = (values > 0).astype(int) if field == "pattern" else values
    path = tmp_path_factory.mktemp("mtx") / "matrix.mtx"
    kind = np.int64 if field != "real" else np.float64
    matrix = sp.coo_matrix(values.astype(kind))
    scipy.io.mmwrite(path, matrix, comment="by hand", field=field, symmetry="general")
    expected = scipy.io.mmread(path).T.toarray()
    if zipped:
        (path.parent / "matrix.mtx.gz").write_bytes(gzip.compress(path.read_bytes()))
        path = path.parent / "matrix.mtx.gz"
    found = read_matrix_market(path, (n, d), "nothing else")
    assert sp.issparse(found)
    np.testing.assert_array_equal(found.toarray(), expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "2 2 100000000000\n1 1 1\n", "100000000000 entries, more than fit into it"),
        (HEAD + "2 2 4\n1 1 1\n", "4 entries and has 1"),
        (HEAD + "2 2 2\n1 1 1\n", "2 entries and has 1"),
        (HEAD + "2 2 1\n1 1 1\n1 2 1\n", "1 entries and has more"),
        (HEAD + "2 2 1\n3 1 1\n", "entries outside of its 2 x 2 places"),
        (HEAD + "2 2 1\n0 1 1\n", "entries outside"),
        (HEAD + "2 2 1\n1 -1 1\n", "entries outside"),
        (HEAD + "2 2 1\n1 1 x\n", "cannot be read"),
        (HEAD + "2 2 1\n1 1\n", "cannot be read"),
        (HEAD + "2 3 1\n1 1 1\n", "holds 2 genes x 3 cells, but the names say otherwise"),
        (HEAD + "2 2\n", "no line with its numbers"),
        (HEAD + "2 2 -1\n", "no line with its numbers"),
        (HEAD, "no line with its numbers"),
        (HEAD.replace("coordinate", "array") + "2 2\n", "of another kind"),
        (HEAD.replace("integer", "complex") + "2 2 1\n", "of another kind"),
        (HEAD.replace("general", "symmetric") + "2 2 1\n", "a general one is needed"),
        ("2 2 1\n1 1 1\n", "its first line does not say so"),
        (HEAD + "2 2 2\n1 1 \x001\n1 2 1\n", "NUL bytes"),
        (HEAD + "2 2 2\n1 1 1\n1 2 1\x00\n", "NUL bytes"),
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_what_is_wrong_is_told(tmp_path, text, message, zipped):
    path = Path(tmp_path / ("matrix.mtx.gz" if zipped else "matrix.mtx"))
    path.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=message) as caught, readable(path):
            read_matrix_market(path, (2, 2), "the names say otherwise")
        assert tracemalloc.get_traced_memory()[1] < 5e7
    finally:
        tracemalloc.stop()
    assert str(path) in str(caught.value)


def test_values_that_do_not_fit_their_kind_are_refused_not_rounded(tmp_path):
    path = tmp_path / "matrix.mtx"
    path.write_text(HEAD + "2 2 2\n1 1 1.5\n1 2 1\n")
    with pytest.raises(DataError, match="cannot be read"), readable(path):
        read_matrix_market(path, (2, 2), "")
