"""The recipes of CONTRIBUTING.md work as written."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from typer.testing import CliRunner

import optirank_lab
from benchmark_cases import FIRST, SECOND, write_sets
from optirank import OptirankClassifier, PanelClassifier, pl, tl
from optirank import save as optirank_save
from optirank._compiled.jit import proximal_map
from optirank.cli import app as product
from optirank.cli.train import train as train_command
from optirank.datasets import DataError, read_expression
from optirank.datasets.example import write_example
from optirank.estimators._base import RankLinearClassifier
from optirank.io.data import make_profiles
from optirank.io.formats import Format
from optirank.io.reading import FORMATS
from optirank.panel.samples import ClassSums
from optirank.ranks.orders import order_samples
from optirank.solver import solve as entry
from optirank.solver.blocks import CappedSimplex, ElasticNet
from optirank.solver.convex import solve_at
from optirank.solver.problem import Problem, sample_weights
from optirank.tuning.search import HELD_OUT, search, units_of_folds
from optirank.tuning.selection import make_folds
from optirank.verbs.labels import Labels
from optirank.verbs.methods import train_panel
from optirank.verbs.options import METHODS
from optirank.verbs.train import TrainingOptions, train
from optirank_lab.benchmark.classifiers import (
    BINARY,
    CLASSIFIERS,
    SYNTHETIC,
    WHOLE,
    Classifier,
)
from optirank_lab.benchmark.families import FixedReferenceFamily, Samples
from optirank_lab.benchmark.synthetic import GRIDS, Point, Settings
from optirank_lab.cli import app as lab
from optirank_lab.cli.simulate import run_experiment


def solve_most_correlated(problem, *, tol, max_iter, **_):
    """A toy solver: the reference is the genes that covary most with the label."""
    feasible = CappedSimplex(problem.n_reference, problem.candidates)
    ranks = problem.orders.ranks(feasible.centre(problem.n_genes))
    covariance = ranks.transpose_dot(problem.v * (problem.y - 0.5))
    return solve_at(problem, feasible.vertex(covariance), tol=tol, max_iter=max_iter)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 8))
    X[:, 2] += 3 * y
    return X, y


@pytest.fixture
def toy_solver(monkeypatch):
    monkeypatch.setitem(entry.ALGORITHMS, "toy", solve_most_correlated)


def test_a_solver_is_one_entry_of_the_registry(toy_solver, data):
    model = OptirankClassifier(1, algorithm="toy").fit(*data)
    np.testing.assert_array_equal(np.flatnonzero(model.reference_[0]), [2])
    assert model.score(*data) > 0.8


def test_a_solver_of_one_start_refuses_a_side(toy_solver, data):
    with pytest.raises(ValueError, match="side='rising' with algorithm='toy'"):
        OptirankClassifier(1, algorithm="toy", side="rising").fit(*data)


def test_an_unknown_solver_is_refused_with_the_names_there_are(toy_solver, data):
    with pytest.raises(ValueError, match=r"'algorithm' .*'toy'.* Got 'none'"):
        OptirankClassifier(1, algorithm="none").fit(*data)


# A classifier


class FirstGenesClassifier(RankLinearClassifier):
    """A toy classifier: the reference is the first genes."""

    def __init__(self, n_reference=2, l1=0.0, l2=1e-3):
        self.n_reference = n_reference
        self.l1 = l1
        self.l2 = l2

    ties, tol, max_iter, class_weight, n_jobs, verbose = (
        "average",
        1e-9,
        9999,
        "balanced",
        None,
        0,
    )

    def fit(self, X, y, sample_weight=None):
        """Learn the weights."""
        X, codes, weights = self._checked(X, y, sample_weight)
        size = min(self.n_reference, X.shape[1])

        def solve(problem, positive, callback):
            gamma = np.where(np.arange(problem.n_genes) < size, 1.0, 0.0)
            return solve_at(problem, gamma, tol=self.tol, max_iter=self.max_iter)

        return self._fit_orders(self._orders(X), codes, weights, size, solve)


@parametrize_with_checks([FirstGenesClassifier()])
def test_a_classifier_that_solves_one_binary_problem_keeps_scikit_learns_contract(
    estimator, check
):
    check(estimator)


def test_a_classifier_that_solves_one_binary_problem_has_the_rest(data):
    X, y = data
    model = FirstGenesClassifier(l1=1e-2).fit(X, y)
    assert model.score(X, y) > 0.8
    assert model.genes_[:2].all()
    three = FirstGenesClassifier().fit(X, np.arange(60) % 3)
    assert three.predict_proba(X).shape == (60, 3)


# A family of settings


@dataclass(frozen=True)
class FirstGenesFamily(FixedReferenceFamily):
    """The toy classifier, with its sizes of the reference set as a grid."""

    n_references: tuple[int, ...] = (1, 2)
    name = "first genes"
    names = ("n_reference", "l1", "l2")

    def head(self, setting, n_genes):
        return (setting["n_reference"],)

    def _reference(self, samples, y, head):
        return np.arange(head[0])


def test_a_family_is_searched(data):
    X, y = data
    samples = Samples(orders=order_samples(X))
    units = units_of_folds(samples, y, make_folds(y, 3, None), n_classes=2)
    found = search(FirstGenesFamily((0.0, 1e-2), (1e-3,)), units)
    assert found[0].params[2] == {"n_reference": 2, "l1": 0.0, "l2": 1e-3}
    for result, (fit, test) in zip(found, make_folds(y, 3, None), strict=True):
        alone = FirstGenesClassifier(2, l1=1e-2).fit(X[fit], y[fit])
        scores = result.decision(3, HELD_OUT)[:, 0]
        np.testing.assert_allclose(
            scores, alone.decision_function(X[test]), rtol=1e-3, atol=1e-3
        )


# A penalty


@proximal_map
def non_negative_map(x, step, parameters):
    """The nearest weights that are not negative, shrunk."""
    for j in range(x.shape[0]):
        shrunk = (x[j] - step * parameters[0]) / (1.0 + 2.0 * step * parameters[1])
        x[j] = max(0.0, shrunk)


class NonNegative(ElasticNet):
    """A toy penalty: the elastic net, infinite for negative weights."""

    proximal_map = non_negative_map
    smooth = False

    def value(self, w):
        """See Penalty."""
        return super().value(w) if (w >= 0).all() else np.inf


@pytest.mark.parametrize("l1", [0.0, 1e-3])
@pytest.mark.parametrize("algorithm", ["alternating", "bpcd"])
def test_a_penalty_is_one_class_for_every_algorithm_and_the_refit(
    monkeypatch, data, algorithm, l1
):
    new = property(lambda problem: NonNegative(problem.l1, problem.l2))
    monkeypatch.setattr(Problem, "penalty", new)
    X, y = data
    model = OptirankClassifier(4, l1, algorithm=algorithm).fit(X, y)
    assert (model.coef_ >= 0).all()
    assert model.coef_.any()
    assert model.score(X, y) > 0.8
    # the weights are the best ones: no proximal step moves them
    v = sample_weights(y)
    problem = Problem(order_samples(X), y.astype(float), v, 4, l1, 1e-3)
    w, gamma = model.coef_[0], model.reference_weights_[0]
    slopes = problem.slopes(problem.scores(w, model.intercept_[0], gamma))
    gradient = problem.orders.ranks(gamma / 4, dtype=float).transpose_dot(slopes)
    moved = problem.penalty.prox(w - gradient, 1.0)
    np.testing.assert_allclose(moved, w, atol=1e-5)


# A default


def test_a_default_of_l1_is_one_number():
    code = (
        "from optirank.solver.constants import DEFAULTS; DEFAULTS['l1'] = 0.5;import "
        "optirank as o; from optirank.tuning.selection import default_setting;from "
        "optirank.verbs.methods import SETTINGS;names = 'OptirankClassifier "
        "RankLogisticRegression'.split();print([getattr(o, "
        "name)().l1 for name in names], default_setting(SETTINGS['optirank']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\n")[0] == "[0.5, 0.5] 0"


# A method of train, a column of predict


def train_two_genes(prepared, options, progress):
    """A toy method: the panel model with two genes."""
    prepared.n_genes = 2
    return train_panel(prepared, options, progress)


def test_a_method_of_train_is_one_entry(monkeypatch, tmp_path):
    monkeypatch.setitem(METHODS, "toy", f"{__name__}:train_two_genes")
    write_example(tmp_path, 60, 20)
    model = train_file(tmp_path / "reference.h5ad", method="toy").model
    assert model.n_genes == 2
    assert model.card.method == "toy"


def test_a_column_of_predict_is_one_entry_for_every_format(monkeypatch, tmp_path):
    columns_there = Labels.further

    def further(labels, rows=slice(None)):
        margin = np.arange(len(labels.names)) / 4
        return columns_there(labels, rows) | {"margin": margin[rows]}

    monkeypatch.setattr(Labels, "further", further)
    write_example(tmp_path, 60, 20)
    model, query = tmp_path / "m.optirank", tmp_path / "query.h5ad"
    optirank_save(train_file(tmp_path / "reference.h5ad", n_genes=10).model, model)
    for name in ("labels.csv", "labels.parquet", "labels.h5ad"):
        optirank("predict", query, "--model", model, "--out", tmp_path / name)
    want = np.arange(20) / 4
    assert pd.read_csv(tmp_path / "labels.csv")["margin"].tolist() == want.tolist()
    assert (
        pd.read_parquet(tmp_path / "labels.parquet")["margin"].tolist() == want.tolist()
    )
    obs = anndata.read_h5ad(tmp_path / "labels.h5ad").obs
    assert obs["optirank_margin"].tolist() == want.tolist()


def train_file(path, **options):
    options = TrainingOptions(label="cell_type", **options)
    return train(read_expression(path, label="cell_type"), options)


# Candidates, a file format, a metric of evaluate, an option of train, a plot


def test_another_selection_of_candidates_is_one_function(monkeypatch, data):
    def first_genes(sums, n, parts=None, among=None):
        return np.arange(3)

    monkeypatch.setattr(ClassSums, "best_genes", first_genes)
    model = PanelClassifier(n_genes=2).fit(*data)
    assert set(model.panel_) <= {0, 1, 2}


@contextlib.contextmanager
def open_arrays(path, options):
    """A toy format: an archive of arrays, or a folder of them."""
    file = path / "all.npz" if path.is_dir() else path
    with np.load(file, allow_pickle=False) as arrays:
        obs = pd.DataFrame({"cell_type": arrays["labels"]}, arrays["samples"])
        var = pd.DataFrame(index=arrays["genes"])
        yield make_profiles(arrays["X"], obs, var, str(path))


def test_a_file_format_is_one_entry(monkeypatch, tmp_path):
    toy = Format(
        "toy",
        (".npz",),
        open_arrays,
        is_folder=lambda folder: (folder / "all.npz").exists(),
    )
    monkeypatch.setitem(FORMATS, "toy", toy)
    write_example(tmp_path, 60, 20)
    query = read_expression(tmp_path / "query.h5ad")
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in (tmp_path / "query.npz", folder / "all.npz"):
        np.savez(
            path,
            X=query.X.toarray(),
            labels=query.obs["cell_type"].to_numpy(str),
            samples=query.obs_names.to_numpy(str),
            genes=query.var_names.to_numpy(str),
        )
    model = tmp_path / "m.optirank"
    optirank_save(train_file(tmp_path / "reference.h5ad", n_genes=10).model, model)
    for path in (tmp_path / "query.npz", folder):
        assert read_expression(path, label="cell_type").n_obs == 20
        optirank("predict", path, "--model", model, "--out", f"{path}.csv")
    for_h5ad = tmp_path / "labels.csv"
    optirank("predict", tmp_path / "query.h5ad", "--model", model, "--out", for_h5ad)
    for path in (tmp_path / "query.npz.csv", tmp_path / "folder.csv"):
        assert path.read_bytes() == for_h5ad.read_bytes()
    with pytest.raises(DataError, match=r"layer.* is for h5ad, zarr, loom, not toy"):
        read_expression(folder, layer="counts")
    (tmp_path / "damaged.npz").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"damaged\.npz cannot be read"):
        read_expression(tmp_path / "damaged.npz")


def test_every_format_is_named_where_a_user_looks():
    help_text = optirank("predict", "--help")
    for name in FORMATS:
        assert name in help_text
        assert f'"{name}"' in read_expression.__doc__


def test_an_option_of_train_is_a_field_a_flag_and_a_parameter():
    flags = inspect.signature(train_command).parameters
    parameters = inspect.signature(tl.train).parameters
    names = {field.name for field in fields(TrainingOptions)}
    for name in names - {"query_genes"} | {"query"}:  # whose genes the product takes
        assert name in flags, name
        assert name in parameters, name
    help_text = " ".join(optirank("train", "--help").split())
    assert "--gene-list FILE" in help_text
    assert "Use these genes, one per line" in help_text


def test_a_plot_is_a_function_that_pl_names():
    for name in pl.__all__:
        assert name in dir(pl)
        assert callable(getattr(pl, name))


# An entry of the experiments


@pytest.fixture(
    params=[partial(FirstGenesFamily, n_references=(2,)), None],
    ids=["family", "estimator"],
)
def toy_classifier(monkeypatch, request):
    one = Classifier(
        name="toy",
        words="logistic regression on ranks among the first genes",
        estimator=FirstGenesClassifier,
        family=request.param,
        grid={"l1": (0.0,), "l2": (1e-3, 1e-1)},
        experiments=(BINARY, SYNTHETIC, WHOLE),
    )
    monkeypatch.setitem(CLASSIFIERS, one.name, one)


def optirank(*arguments: object) -> str:
    app = lab if arguments[0] in ("benchmark", "simulate") else product
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("problems", ["binary", "whole"])
def test_a_classifier_is_one_entry_for_the_benchmark(
    toy_classifier, problems, tmp_path, monkeypatch
):
    monkeypatch.setenv("OPTIRANK_DATA", str(write_sets(tmp_path / "sets")))
    chosen = (
        "--tasks",
        f"{FIRST}-{SECOND}",
        "--classifiers",
        "toy,rank-lr",
        "--jobs",
        1,
    )
    out = ("--problems", problems, "--out", tmp_path / "out")
    assert "toy" in optirank("benchmark", "run", "--quick", *chosen, *out)
    scores = pd.read_csv(tmp_path / "out" / "report" / "tables" / "scores.csv")
    toy = scores[scores["classifier"] == "toy"]
    assert len(toy) == (scores["classifier"] == "rank-lr").sum()
    assert toy["test"].mean() > 0.8
    if problems == "binary":
        assert {json.loads(one)["l2"] for one in toy["setting"]} <= {1e-3, 1e-1}
    page = (tmp_path / "out" / "report" / "report.html").read_text(encoding="utf-8")
    assert "logistic regression on ranks among the first genes" in page


def test_a_classifier_is_one_entry_for_the_synthetic_experiment(
    toy_classifier, tmp_path
):
    settings = Settings(
        repeats=1, sweeps=(), grid=GRIDS["paper"], base=Point(14, 4, 100)
    )
    written = run_experiment(settings, tmp_path, jobs=1)
    (toy,) = [
        one
        for one in written.comparisons[0].standings.itertuples()
        if one.classifier == "toy"
    ]
    assert toy.mean > 0.4


# A table of the laboratory: a task, a data set


@pytest.fixture
def laboratory(tmp_path):
    """A copy of the laboratory, whose tables can be changed, and its commands."""
    home = tmp_path / "copy" / "optirank_lab"
    source = Path(optirank_lab.__file__).parent
    shutil.copytree(source, home, ignore=shutil.ignore_patterns("__pycache__"))

    def run(*arguments: object) -> str:
        paths = [str(home.parent), *sys.path]
        done = subprocess.run(
            [sys.executable, "-m", "optirank_lab", *map(str, arguments)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return home, run


def append(path: Path, table: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(table)


TOY_TASK = f"""
[[task]]
name = "toy"
tissue = "breast"
title = "a toy"
kind = "bulk"
shift = "technology"
train = ["{FIRST}"]
test = "{SECOND}"
scheme = "cells"
"""


def test_a_task_is_one_table(laboratory, tmp_path):
    home, run = laboratory
    tables = home / "benchmark" / "tasks.toml"
    content = tables.read_text("utf-8")
    first = content.index("[[task]]")
    tables.write_text(content[:first] + TOY_TASK + "\n" + content[first:], "utf-8")
    sets = write_sets(tmp_path / "sets")
    listed = run("benchmark", "list", "--data", sets)
    (line,) = (line for line in listed.splitlines() if "a toy" in line)
    assert "toy" in line.split()


TOY_SET = """
[toy]
title = "a toy"
accession = "none"
organism = "human"
modality = "bulk"
technology = "RNA-Seq"
source = "https://example.org"
licence = "CC0"
n_samples = 8
n_genes = 2
files = [{ name = "toy.csv", url = "https://example.org/toy.csv" }]

[toy.read]
matrix = "toy.csv"
genes_in = "columns"
annotations = ["type"]
label = "type"
"""


def test_a_data_set_is_one_table(laboratory, tmp_path):
    home, run = laboratory
    append(home / "data" / "stand_ins.toml", TOY_SET)
    raw = tmp_path / "raw"
    raw.mkdir()
    values = pd.DataFrame({"type": ["a", "b"] * 4, "TP53": range(8), "MYC": range(8)})
    values.index = [f"s{i}" for i in range(8)]
    values.to_csv(raw / "toy.csv", index_label="sample")
    run("datasets", "fetch", "toy", "--data", tmp_path / "sets", "--from", raw)
    data = read_expression(tmp_path / "sets" / "toy.h5ad", label="cell_type")
    assert sorted(data.var_names) == ["MYC", "TP53"]
    assert data.obs["cell_type"].tolist() == ["a", "b"] * 4
