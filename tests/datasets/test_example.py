"""The generated pair: realistic counts, two platforms, files that the readers take."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.metrics import balanced_accuracy_score
from sklearn.neighbors import NearestCentroid

from expression_files import assert_equal, read_expression
from optirank.datasets.example import ONLY_ONE_PLATFORM, make_example, write_example
from profiles import take_genes


@pytest.fixture(scope="module")
def pair():
    return make_example()


def test_the_pair_shares_its_types_and_most_of_its_genes(pair):
    reference, query = pair
    assert reference.n_obs == 500
    assert query.n_obs == 400
    assert set(reference.obs["cell_type"]) == set(query.obs["cell_type"])
    assert len(set(reference.var_names) - set(query.var_names)) == ONLY_ONE_PLATFORM
    assert len(set(query.var_names) - set(reference.var_names)) == ONLY_ONE_PLATFORM
    for data in pair:
        assert data.var_names.is_unique
        assert set(data.obs) == {"cell_type", "dataset", "platform"}
        assert (data.X.data == np.rint(data.X.data)).all()
        assert data.X.min() == 0


def test_the_seed_decides():
    first, again, other = (
        make_example(30, 30, random_state=seed)[0] for seed in (0, 0, 1)
    )
    assert_equal(first, again)
    assert (first.X != other.X).nnz


def test_a_classifier_works_on_the_other_platform_but_not_perfectly(pair):
    query_genes = set(pair[1].var_names)
    common = [gene for gene in pair[0].var_names if gene in query_genes]
    reference, query = (take_genes(data, common) for data in pair)
    ranks = [
        rankdata(data.X.toarray(), axis=1) / len(common) for data in (reference, query)
    ]
    model = NearestCentroid().fit(ranks[0], reference.obs["cell_type"])
    score = balanced_accuracy_score(query.obs["cell_type"], model.predict(ranks[1]))
    assert 0.75 < score < 0.995


def test_the_files_are_read_as_generated(tmp_path):
    written = write_example(tmp_path / "pair", 40, 30)
    assert [path.name for path in written] == [
        "reference.h5ad",
        "reference.csv",
        "query.h5ad",
        "query.csv",
    ]
    for path, data in zip(written[::2], make_example(40, 30), strict=True):
        assert_equal(read_expression(path, label=["cell_type"]), data)
    table = read_expression(written[1], genes_in="columns")
    assert_equal(table, make_example(40, 30)[0])
    assert ".0" not in written[1].read_text()


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError):
        write_example(tmp_path / "file")
