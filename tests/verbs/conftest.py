"""A trained model and a query for it, for tests of prediction."""

from __future__ import annotations

import pytest

from example_model import as_anndata, trained_example


@pytest.fixture
def model():
    return trained_example()[0]


@pytest.fixture(scope="module")
def query():
    return trained_example()[1]


@pytest.fixture
def query_file(query, tmp_path):
    as_anndata(query).write_h5ad(tmp_path / "query.h5ad")
    return tmp_path / "query.h5ad"
