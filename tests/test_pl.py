"""Plots: what is drawn of what tl made, where, and what is said when matplotlib is
missing.
"""

from __future__ import annotations

import copy
import subprocess
import sys
import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import optirank.pl as pl
from example_model import (
    LABEL,
    as_anndata,
    panel_names,
    telling_model,
    telling_pair,
    trained_example,
)
from optirank import OptirankClassifierCV, tl
from optirank.datasets import DataError, make_unstable_ranks
from optirank.panel.further import Agreement
from optirank.pl.genes import draw_sizes
from optirank.pl.labels import draw_agreement

mpl = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def quiet_figures():
    mpl.use("Agg")
    yield
    mpl.pyplot.close("all")


@pytest.fixture(scope="module")
def model():
    return trained_example()[0]


@pytest.fixture(scope="module")
def adata(model):
    adata = as_anndata(trained_example()[1])
    tl.annotate(adata, model)
    return adata


@pytest.fixture(scope="module")
def search():
    data = make_unstable_ranks(120, 20, 12, random_state=0)
    grid = OptirankClassifierCV((2, 0.5, 1.0), (0.0, 3e-3), (1e-4, 1e-2), cv=3)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the best setting has")  # of a tiny grid
        return grid.fit(data.X, data.y)


def texts(ax) -> list[str]:
    return [text.get_text() for text in ax.texts]


def legend(ax) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


def rows_of(ax) -> list[tuple]:
    """The parts of each bar."""
    return list(zip(*(container.patches for container in ax.containers), strict=True))


def test_a_confusion_matrix_has_the_counts(model, adata):
    evaluation = tl.evaluate(adata, model, LABEL)
    counts = evaluation.performance.confusion.to_numpy()
    for ax in (pl.confusion(evaluation), pl.confusion(adata, LABEL)):
        assert sorted(map(int, texts(ax))) == sorted(counts[counts > 0].tolist())
        assert len(ax.get_xticklabels()) == len(model.classes)
    other = adata.copy()
    other.obs[LABEL] = other.obs[LABEL].astype(str).replace("b cell", "martian")
    names = [one.get_text() for one in pl.confusion(other, LABEL).get_yticklabels()]
    assert any(name.startswith("martian") for name in names)
    with pytest.raises(DataError, match="no column 'absent'"):
        pl.confusion(adata, "absent")
    with pytest.raises(ValueError, match="name the column"):
        pl.confusion(adata)


def test_many_classes_have_no_numbers_and_small_names():
    import pandas as pd

    rng = np.random.default_rng(0)
    names = np.array([f"class number {k}" for k in range(100)])
    frame = pd.DataFrame({"truth": names[rng.integers(0, 100, 900)]})
    frame["optirank"] = names[rng.integers(0, 100, 900)]
    ax = pl.confusion(frame, "truth")
    ax.figure.canvas.draw()
    assert not texts(ax)
    assert ax.get_yticklabels()[0].get_fontsize() < 10


def test_reliability_and_curves_are_those_of_an_evaluation(model, adata):
    evaluation = tl.evaluate(adata, model, LABEL)
    table = evaluation.performance.reliability
    drawn = [
        bars.lines[0].get_xdata() for bars in pl.reliability(evaluation).containers
    ]
    drawn = np.concatenate(drawn).astype(float)
    np.testing.assert_allclose(np.sort(drawn), np.sort(table["confidence"]))
    for kind in ("roc", "pr"):
        assert len(legend(pl.roc(evaluation, kind=kind))) == len(model.classes)
    with pytest.raises(ValueError, match="kind='area'"):
        pl.roc(evaluation, kind="area")


def test_a_class_has_one_colour_in_all_curves(model, adata):
    evaluation = tl.evaluate(adata, model, LABEL)
    colours = []
    for kind in ("roc", "pr"):
        lines = pl.roc(evaluation, kind=kind).lines
        named = [line for line in lines if ":" in str(line.get_label())]
        colours.append(
            {str(line.get_label()).split(":")[0]: line.get_color() for line in named}
        )
    assert colours[0] == colours[1]
    assert len(set(colours[0].values())) == len(model.classes)


def test_labels_are_bars_that_end_at_their_number_of_samples(model, adata):
    counts = adata.obs["optirank"].value_counts()
    for ax in (pl.labels(adata), pl.labels(adata.obs)):
        names = [one.get_text() for one in ax.get_yticklabels()]
        assert [text.split()[0] for text in texts(ax)] == [
            str(counts[name]) for name in names
        ]
        assert counts[names].is_monotonic_decreasing
        ends = [
            max(bar.get_x() + bar.get_width() for bar in row) for row in rows_of(ax)
        ]
        assert ends == counts[names].tolist()
        assert "withheld" not in legend(ax)
    tl.annotate(adata, model, threshold=0.9, key_added="strict")
    ax = pl.labels(adata, "strict")
    assert ax.get_yticklabels()[-1].get_text() == "unassigned"
    (grey,) = {bar.get_facecolor() for bar in rows_of(ax)[-1] if bar.get_width()}
    assert grey not in {
        bar.get_facecolor()
        for row in rows_of(ax)[:-1]
        for bar in row
        if bar.get_width()
    }
    assert legend(ax)[-1] == "withheld"
    with pytest.raises(DataError, match="no column 'absent'"):
        pl.labels(adata, "absent")
    with pytest.raises(ValueError, match="no sample has a strict"):
        pl.labels(adata.obs.assign(strict=None), "strict")


def test_labels_of_many_long_names_stay_in_the_figure():
    import pandas as pd

    rng = np.random.default_rng(0)
    names = np.array([f"{'a very long name ' * 4} {k}" for k in range(30)])
    frame = pd.DataFrame({"optirank": names[rng.integers(0, 30, 200_000)]})
    frame["optirank_confidence"] = rng.random(200_000)
    ax = pl.labels(frame)
    ax.figure.canvas.draw()
    inside = ax.figure.bbox
    everything = [*ax.texts, *ax.get_yticklabels(), ax.get_legend()]
    boxes = [one.get_window_extent() for one in everything]
    assert min(box.x0 for box in boxes) >= inside.x0
    assert max(box.x1 for box in boxes) <= inside.x1
    heights = [text.get_window_extent() for text in ax.get_yticklabels()]
    assert all(lower.y1 < upper.y0 for upper, lower in pairwise(heights))


def test_panel_sizes_show_the_one_chosen(model):
    ax = pl.panel_sizes(model)
    (chosen,) = [
        line for line in ax.lines if str(line.get_label()).startswith("chosen")
    ]
    assert chosen.get_xdata()[0] == len(panel_names(model))


def test_labels_of_sizes_do_not_overlap():
    curve = pd.DataFrame(
        {
            "n_genes": [10, 20, 50, 100, 200, 500, 537],
            "balanced_accuracy": np.linspace(0.6, 0.9, 7),
            "standard_error": 0.01,
            "chosen": [False] * 5 + [True, False],
        }
    )
    _, ax = mpl.pyplot.subplots(figsize=(6.6, 4.0), layout="constrained")
    draw_sizes(curve, ax=ax)
    ax.figure.canvas.draw()
    labels = ax.get_xticklabels()
    assert "500" in [label.get_text() for label in labels]
    boxes = [label.get_window_extent() for label in labels]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    curve["chosen"] = curve["n_genes"] == 100
    draw_sizes(curve, ax=ax)
    shown = [label.get_text() for label in ax.get_xticklabels()]
    assert shown == ["10", "20", "50", "100", "200", "537"]


@pytest.fixture(scope="module")
def telling():
    return tl.annotate(as_anndata(telling_pair()[1]), telling_model())


def agreements(ax) -> dict[str, float]:
    titles = [small.get_title().splitlines() for small in ax.child_axes]
    return {name: float(value) for name, value in titles}


def test_agreement_has_a_small_panel_per_label_with_a_point_per_gene(telling):
    ax = pl.agreement(telling)
    found = agreements(ax)
    assert set(found) == set(telling.labels)
    assert list(found.values()) == sorted(found.values())
    assert min(found.values()) > 0.5
    points = ax.child_axes[0].collections[0].get_offsets()
    assert len(points) == len(telling.model.further.genes)


def test_of_many_labels_those_of_least_and_most_agreement_are_drawn():
    rng = np.random.default_rng(0)
    reference = rng.normal(size=(20, 60))
    noise = np.linspace(0.0, 5.0, 20)[:, None]
    query = reference + noise * rng.normal(size=(20, 60))
    compared = Agreement(np.arange(20), reference, query)
    _, ax = mpl.pyplot.subplots()
    draw_agreement(compared, [f"type {k}" for k in range(20)], ax=ax)
    drawn = list(agreements(ax))
    assert len(drawn) == 12
    assert drawn[-1] == "type 0"
    assert "and 8 labels between these" in texts(ax)


def test_labels_that_cannot_be_checked_say_why(telling):
    with pytest.raises(DataError, match="cannot be checked by genes outside"):
        pl.agreement(replace(telling, checks=None))
    none = Agreement(np.arange(0), np.zeros((0, 5)), np.zeros((0, 5)))
    checks = copy.copy(telling.checks)
    checks.compared = none
    with pytest.raises(DataError, match="cannot be checked by genes outside"):
        pl.agreement(replace(telling, checks=checks))


def test_the_selected_setting_is_marked_in_its_band(search):
    ax = pl.selection_path(search)
    (chosen,) = [
        line for line in ax.lines if str(line.get_label()).startswith("selected")
    ]
    assert (
        chosen.get_xdata()[0] == search.cv_results_["mean_n_genes"][search.best_index_]
    )
    assert chosen.get_ydata()[0] == pytest.approx(search.best_score_)
    path = search.one_se_path()
    best = path[path["best"]].iloc[0]
    (band,) = ax.patches
    assert band.get_y() == pytest.approx(best["score"] - best["standard_error"])


def test_a_selection_path_is_of_a_search_alone(model):
    with pytest.raises(TypeError, match="fitted OptirankClassifierCV, got Model"):
        pl.selection_path(model)


def test_axes_are_used_where_given_and_figures_are_saved(model, tmp_path):
    _, ax = mpl.pyplot.subplots()
    assert pl.panel_sizes(model, ax=ax) is ax
    for end in ("png", "svg", "pdf"):
        assert (
            pl.save_figure(pl.panel_sizes(model), tmp_path / f"w.{end}").stat().st_size
            > 1000
        )
    with pytest.raises(DataError, match="figures are written as"):
        pl.save_figure(pl.panel_sizes(model), tmp_path / "w.docx")
    assert not mpl.pyplot.get_fignums() or ax.figure.number in mpl.pyplot.get_fignums()


def test_without_matplotlib_one_line_says_what_to_install():
    code = (
        "import sys; sys.modules['matplotlib'] = sys.modules['matplotlib.pyplot'] = "
        "None\n"
        "import optirank.pl, pandas\n"
        "frame = pandas.DataFrame({'a': ['x'], 'optirank': ['x']})\n"
        "try: optirank.pl.confusion(frame, 'a')\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "pip install 'optirank[report]'" in done.stdout


def test_results_are_drawn_as_they_are(adata, model):
    labels = tl.annotate(adata.copy(), model, verbose=False)
    drawn = [len(ax.patches) for ax in (pl.labels(labels), pl.labels(adata))]
    assert drawn[0] == drawn[1]
