"""The registry: classifiers by name, the paper's grids, and the genes each needs."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from optirank.ranks.orders import order_samples
from optirank.solver.problem import sample_weights
from optirank_lab.baselines.peers import check_peers
from optirank_lab.benchmark.classifiers import CLASSIFIERS, choose, get
from optirank_lab.benchmark.designs import PAPER, QUICK
from optirank_lab.benchmark.families import Samples
from optirank_lab.benchmark.figures import look

SIZES = {"ANrank-lr": 250, "SCN": 1, "lr": 25, "optirank": 250, "rank-lr": 25, "rf": 1}
SIZES |= {
    "oracle": 25,
    "k-TSP": 1,
    "lr-log": 1,
    "lr-ranks": 1,
    "svm-ranks": 1,
    "centroid": 1,
}
SIZES |= {"lr-l1": 1}
OF_THE_CURVE = [
    *("centroid-adapted", "lr-panel", "lr-panel-tuned", "lr-panel-largest"),
    *("svm-panel", "svm-panel-tuned", "optirank-cv", "lr-log-cv", "lr-z"),
]
PEERS = ["CellTypist", "SingleR", "pySingleCellNet"]
SMALL = {"SCN": {"random_state": 0}, "rf": {"random_state": 0}}


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    rate = np.tile(rng.uniform(5, 40, size=16), (60, 1))
    rate[y == 1, :3] *= 3
    rate[y == 1, 3:6] *= 0.3
    return rng.poisson(rate).astype(float), y


def test_all_are_there_with_the_papers_grids():
    for name, size in SIZES.items():
        assert get(name).n_settings(PAPER, whole=False) == size
    assert CLASSIFIERS.keys() - SIZES == {"panel", *PEERS, *OF_THE_CURVE}


def test_an_unknown_name_is_refused():
    with pytest.raises(
        ValueError, match="classifier 'svm' is not known: use one of panel"
    ):
        get("svm")


@pytest.mark.parametrize("name", [name for name in SIZES if get(name).estimator])
@pytest.mark.filterwarnings("ignore:one data set only:UserWarning")
def test_each_is_made_fitted_and_counts_its_genes(name, counts):
    X, y = counts
    classifier = get(name)
    setting = {key: values[len(values) // 2] for key, values in classifier.grid.items()}
    if name == "SCN":
        setting["n_trees"] = 10
    model = classifier.make(**setting, **SMALL.get(name, {}))
    assert {key: model.get_params()[key] for key in setting} == setting
    model = clone(model).fit(X, y)
    assert model.score(X, y) > 0.85
    n_genes = classifier.n_genes(model)
    assert isinstance(n_genes, int)
    assert 0 < n_genes <= 16
    if name in ("rank-lr", "lr-ranks", "svm-ranks", "centroid"):
        assert n_genes == 16


@pytest.mark.parametrize(
    "name", [name for name in SIZES if get(name).family is not None]
)
def test_a_family_has_the_grid_of_its_classifier(name):
    classifier = get(name)
    family = classifier.make_family(classifier.grid)
    names = [*classifier.grid]
    expected = set(product(*classifier.grid.values()))
    settings = family.settings()
    assert {tuple(setting[name] for name in names) for setting in settings} == expected
    assert list(family.names[: len(names)]) == names


@pytest.mark.parametrize("name", ["ANrank-lr", "rank-lr"])
def test_a_family_fits_what_its_classifier_fits(name, counts):
    X, y = counts
    classifier = get(name)
    grid = {**classifier.grid, "l1": (1e-3,), "l2": (1e-2,)}
    if "n_reference" in grid:
        grid["n_reference"] = (0.25,)
    dataset = np.repeat(["a", "b"], 30)
    family = classifier.make_family(grid, warm_start=False)
    samples = Samples(X, order_samples(X), dataset)
    ((head, penalties),) = family.chains(16).items()
    (one,) = family.fit_chain(
        samples, y.astype(float), sample_weights(y), head, penalties
    ).values()
    model = classifier.make(**{key: values[0] for key, values in grid.items()})
    more = {"dataset": dataset} if name == "ANrank-lr" else {}
    model.fit(X, y, **more)
    np.testing.assert_allclose(
        one.w, model.coef_[0], atol=1e-4
    )  # the tolerance of the fits
    assert one.genes.sum() == classifier.n_genes(model)


def test_names_choose_where_each_can_take_part():
    seven = ["panel", "optirank", "rank-lr", "ANrank-lr", "lr", "SCN", "rf"]
    assert choose([], "binary") == {"binary": seven}
    whole = choose([], "whole")["whole"]
    assert {*PEERS, "panel", "optirank", "k-TSP", "svm-ranks", "lr-l1"} <= {*whole}
    assert not {"lr", "ANrank-lr", "oracle"} & {*whole}
    assert choose(["k-TSP", "CellTypist", "lr"], "both") == {
        "binary": ["lr", "k-TSP"], "whole": ["k-TSP", "CellTypist"]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("names", "problems", "words"),
    [
        (
            ["svm"],
            "binary",
            "classifier 'svm' is not known for --problems binary: use one of",
        ),
        (
            ["CellTypist"],
            "binary",
            "classifier 'CellTypist' is not known for --problems binary",
        ),
        (
            ["ANrank-lr"],
            "whole",
            "classifier 'ANrank-lr' is not known for --problems whole",
        ),
    ],
)
def test_what_cannot_take_part_is_refused(names, problems, words):
    with pytest.raises(ValueError, match=words):
        choose(names, problems)


def test_interpreters_of_peers_are_named_by_lower_case_names():
    assert check_peers(["CellTypist=/env/bin/python"]) == {
        "celltypist": "/env/bin/python"
    }
    assert check_peers(["singler=python3"]) == {"singler": "python3"}
    here = str(Path.cwd() / "env/bin/python")  # workers may run in another folder
    assert check_peers(["singler=env/bin/python"]) == {"singler": here}
    with pytest.raises(ValueError, match="write NAME=PYTHON"):
        check_peers(["celltypist"])
    with pytest.raises(ValueError, match="'scanvi' is no peer: use one of celltypist"):
        check_peers(["scanvi=python"])


def test_no_two_look_alike():
    looks = {tuple(look(name).values()) for name in CLASSIFIERS}
    assert len(looks) == len(CLASSIFIERS)


def test_with_all_classes_at_once_a_single_value_of_the_grid_is_set_and_others_are_defaults():
    assert get("rf").grid_of(QUICK, whole=True) == {
        "n_estimators": (100,), "class_weight": ("balanced",)
    }  # fmt: skip
    assert get("optirank").grid_of(QUICK, whole=True) == {}
    assert get("optirank").n_settings(QUICK, whole=False) == 12
