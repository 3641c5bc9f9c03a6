"""Plots: what is drawn, where, and what is said when matplotlib is missing."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import optirank.pl
from optirank import OptirankClassifierCV
from optirank.datasets import make_unstable_ranks

mpl = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def quiet_figures():
    mpl.use("Agg")
    yield
    mpl.pyplot.close("all")


@pytest.fixture(scope="module")
def model():
    data = make_unstable_ranks(120, 20, 12, random_state=0)
    grid = OptirankClassifierCV((2, 0.5, 1.0), (0.0, 3e-3), (1e-4, 1e-2), cv=3)
    return grid.fit(data.X, data.y)


@pytest.fixture(scope="module")
def per_class():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 8)) + 1.5 * np.eye(8)[y]
    return OptirankClassifierCV((2, 1.0), (0.0,), (1e-2,), cv=3, per_class=True).fit(X, y)


def drawn(ax, beginning):
    """The line with a label that begins so."""
    (found,) = (line for line in ax.lines if str(line.get_label()).startswith(beginning))
    return found


def test_the_selected_setting_is_marked(model):
    ax = optirank.pl.selection_path(model)
    chosen = drawn(ax, "selected")
    assert chosen.get_xdata()[0] == model.cv_results_["mean_n_genes"][model.best_index_]
    assert chosen.get_ydata()[0] == pytest.approx(model.best_score_)
    assert f"{model.best_score_:.3f}" in chosen.get_label()


def test_the_band_is_one_standard_error_below_the_best(model):
    ax = optirank.pl.selection_path(model)
    path = model.one_se_path()
    best = path[path["best"]].iloc[0]
    (band,) = ax.patches
    low, high = band.get_y(), band.get_y() + band.get_height()
    assert (low, high) == pytest.approx((best["score"] - best["standard_error"], best["score"]))


def test_every_setting_and_the_path_are_drawn(model):
    ax = optirank.pl.selection_path(model)
    assert len(drawn(ax, "all settings").get_xdata()) == 12
    (bars,) = ax.containers
    assert bars.has_yerr
    assert (np.diff(bars.lines[0].get_xdata()) > 0).all()
    assert (np.diff(bars.lines[0].get_ydata()) > 0).all()
    assert ax.get_xlabel() == "genes needed (mean over folds)"
    assert ax.get_ylabel() == "balanced accuracy, validation"
    assert ax.get_legend() is not None


def test_it_draws_where_it_is_told(model):
    figure, axes = mpl.pyplot.subplots(1, 2)
    assert optirank.pl.selection_path(model, ax=axes[1]) is axes[1]
    assert not axes[0].lines
    assert len(mpl.pyplot.get_fignums()) == 1
    assert axes[1].figure is figure


def test_it_shows_only_when_asked(model, monkeypatch):
    shown = []
    monkeypatch.setattr(mpl.pyplot, "show", lambda: shown.append(True))
    optirank.pl.selection_path(model)
    assert not shown
    optirank.pl.selection_path(model, show=True)
    assert shown


def test_a_class_is_named(per_class):
    ax = optirank.pl.selection_path(per_class, 1)
    assert ax.get_title() == "1 against the rest"
    with pytest.raises(ValueError, match="name one of"):
        optirank.pl.selection_path(per_class)


def test_importing_plots_loads_no_matplotlib_and_missing_it_says_what_to_install():
    code = (
        "import sys, optirank.pl\n"
        "heavy = [m for m in ('matplotlib', 'numba', 'sklearn', 'pandas') if m in sys.modules]\n"
        "assert not heavy, heavy\n"
        "sys.modules['matplotlib'] = None\n"
        "try:\n"
        "    optirank.pl.selection_path(None)\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'optirank[report]'" in done.stdout
