"""ReferenceRankTransformer keeps scikit-learn's contract and says what is wrong."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from optirank import ReferenceRankTransformer
from optirank.ranks.scoring import TIES
from rank_definition import ranks_by_definition

GENES = ["TP53", "BRCA1", "GAPDH", "ACTB"]
X = np.array([[3.0, 1.0, 2.0, 2.0], [0.0, 0.0, 5.0, -1.0]])
FRAME = pd.DataFrame(X, columns=GENES, index=["a", "b"])


@parametrize_with_checks(
    [ReferenceRankTransformer(), ReferenceRankTransformer([0], ties="max", scale=False)]
)
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("scale", [True, False])
@given(data=st.data())
def test_new_samples_get_their_ranks_by_the_definition(ties, scale, data):
    shape = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 8)))
    seen, new = (
        data.draw(hnp.arrays(np.float64, shape, elements=st.integers(-2, 2)))
        for _ in range(2)
    )
    mask = data.draw(hnp.arrays(bool, shape[1]).filter(np.any))
    transformer = ReferenceRankTransformer(mask, ties=ties, scale=scale).fit(seen)
    expected = ranks_by_definition(new, mask, ties) / (mask.sum() if scale else 1)
    np.testing.assert_array_equal(transformer.transform(new), expected)
    np.testing.assert_array_equal(transformer.transform(sp.csr_matrix(new)), expected)
    np.testing.assert_array_equal(transformer.transform(sp.csc_array(new)), expected)


@pytest.mark.parametrize(
    "reference",
    [
        [True, False, True, False],
        np.array([True, False, True, False]),
        pd.Series([True, False, True, False], index=GENES),
        [2, 0],
        np.array([0, 2], dtype=np.uint8),
        ["GAPDH", "TP53"],
        np.array(["GAPDH", "TP53"], dtype=object),
        pd.Index(["TP53", "GAPDH"]),
        ("TP53", "GAPDH"),
    ],
)
def test_mask_positions_and_names_are_the_same_reference(reference):
    transformer = ReferenceRankTransformer(reference).fit(FRAME)
    assert transformer.reference_.dtype == bool
    np.testing.assert_array_equal(transformer.reference_, [True, False, True, False])
    expected = ranks_by_definition(X, [1, 0, 1, 0]) / 2
    np.testing.assert_array_equal(transformer.transform(FRAME), expected)


def test_without_a_reference_all_genes_are_it():
    transformer = ReferenceRankTransformer().fit(X)
    assert transformer.reference_.all()
    assert transformer.n_features_in_ == 4


def test_gene_names_go_through():
    transformer = ReferenceRankTransformer(["ACTB"]).fit(FRAME)
    assert list(transformer.get_feature_names_out()) == GENES
    assert list(transformer.feature_names_in_) == GENES


def test_a_data_frame_comes_out_when_asked_for():
    transformer = ReferenceRankTransformer().set_output(transform="pandas")
    ranks = transformer.fit_transform(FRAME)
    assert isinstance(ranks, pd.DataFrame)
    assert list(ranks.columns) == GENES
    assert list(ranks.index) == ["a", "b"]


def test_large_integers_are_compared_exactly():
    close = np.array([[2**62 + 1, 2**62]])  # the same number as float64
    ranks = ReferenceRankTransformer(scale=False).fit_transform(close)
    np.testing.assert_array_equal(ranks, [[1, 0]])


def test_it_clones_pickles_and_works_in_a_pipeline():
    pipeline = make_pipeline(ReferenceRankTransformer(["GAPDH"]), LogisticRegression())
    copy = pickle.loads(pickle.dumps(clone(pipeline).fit(FRAME, [0, 1])))
    assert copy.predict(FRAME).shape == (2,)


def test_fitting_leaves_the_options_and_the_data_alone():
    reference, before = [0, 1], X.copy()
    transformer = ReferenceRankTransformer(reference).fit(X)
    transformer.transform(X)
    assert transformer.get_params() == {
        "reference": reference,
        "ties": "average",
        "scale": True,
    }
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ([], "reference is empty"),
        ([False] * 4, "reference is empty"),
        (
            [True] * 3,
            r"shape \(3,\) and dtype bool: give a boolean mask of the 4 genes",
        ),
        ([1, 4], "positions out of range, such as 4: X has 4 genes"),
        ([-1], "out of range, such as -1"),
        ([1, 1], "more than once, such as 1"),
        (
            [0.5, 0.5, 1.0, 0.0],
            "dtype float64: give a boolean mask of the 4 genes, positions or gene names",
        ),
        ("TP53", r"shape \(\)"),
        (
            ["TP53", "KRAS"],
            "1 of the 2 genes of reference are not among the 4 of X: 'KRAS'",
        ),
        ([f"G{i}" for i in range(9)], "9 of the 9 .* 'G0', .* 'G4' and 4 more; check"),
        (
            ["ACTB", "ACTB"],
            "reference names 1 positions more than once, such as 3",
        ),
    ],
)
def test_a_wrong_reference_is_an_error_at_fit_that_says_what_to_do(reference, message):
    transformer = ReferenceRankTransformer(reference)
    with pytest.raises(ValueError, match=message):
        transformer.fit(FRAME)


def test_gene_names_need_a_data_frame():
    with pytest.raises(
        ValueError, match=r"'TP53'.* but X has none: fit on a data frame"
    ):
        ReferenceRankTransformer(["TP53"]).fit(X)


def test_a_reference_name_that_two_columns_share_is_an_error():
    frame = FRAME.set_axis(["A", "B", "A", "C"], axis=1)
    with pytest.raises(
        ValueError, match="'A'"
    ):  # ours, or that of scikit-learn since 1.9
        ReferenceRankTransformer(["A"]).fit(frame)


def test_an_unknown_way_to_rank_ties_is_an_error_at_fit():
    with pytest.raises(ValueError, match="ties='dense'"):
        ReferenceRankTransformer(ties="dense").fit(X)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("container", [np.array, sp.csr_array])
def test_values_without_a_rank_are_refused_at_fit_and_transform(bad, container):
    broken = X.copy()
    broken[1, 2] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        ReferenceRankTransformer().fit(container(broken))
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        ReferenceRankTransformer().fit(X).transform(container(broken))


def test_another_number_of_genes_is_refused():
    with pytest.raises(ValueError, match=r"3 features.*expecting 4"):
        ReferenceRankTransformer().fit(X).transform(X[:, :3])


def test_genes_in_another_order_are_refused():
    with pytest.raises(ValueError, match="feature names"):
        ReferenceRankTransformer().fit(FRAME).transform(FRAME[GENES[::-1]])


def test_transforming_does_not_import_numba():
    code = (
        "import sys, numpy as np, optirank; "
        "optirank.ReferenceRankTransformer([0]).fit_transform(np.eye(3)); "
        "print('numba' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
