"""Plots of confusion, reliability, panels and the stability of reference sets."""

from __future__ import annotations

import logging
import subprocess
import sys

import anndata
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optirank.pl
import optirank.tl
from example_model import as_anndata, trained_example
from optirank import OptirankClassifier, OptirankClassifierCV
from optirank._plots.groups import spread
from optirank.datasets import make_unstable_ranks
from optirank.model import save, subset

mpl = pytest.importorskip("matplotlib")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def quiet_figures():
    mpl.use("Agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    return trained_example()[0]


@pytest.fixture(scope="module")
def adata(model):
    adata = as_anndata(trained_example()[1])
    optirank.tl.annotate(adata, model)
    return adata


@pytest.fixture(scope="module")
def folds():
    data = make_unstable_ranks(120, 20, 12, random_state=0)
    return OptirankClassifierCV((4,), (0.0,), (1e-3,), cv=3, refit="folds").fit(data.X, data.y)


FIGURES = {
    "confusion": lambda model, adata, folds, **o: optirank.pl.confusion(adata, "cell_type", **o),
    "reliability": lambda model, adata, folds, **o: optirank.pl.reliability(
        adata, "cell_type", **o
    ),
    "panel": lambda model, adata, folds, **o: optirank.pl.panel(model, adata, "cell_type", **o),
    "panel_weights": lambda model, adata, folds, **o: optirank.pl.panel_weights(model, **o),
    "reference_stability": lambda model, adata, folds, **o: optirank.pl.reference_stability(
        folds, **o
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_each_draws_where_it_is_told_and_shows_only_when_asked(
    name, model, adata, folds, monkeypatch, tmp_path
):
    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(True))
    _, axes = plt.subplots(1, 2)
    assert FIGURES[name](model, adata, folds, ax=axes[1]) is axes[1]
    assert not axes[0].has_data()
    assert axes[1].has_data()
    assert not shown
    ax = FIGURES[name](model, adata, folds, show=True)
    assert shown
    ax.figure.savefig(tmp_path / "figure.png")


def test_confusion_counts_samples():
    table = pd.DataFrame(
        {"truth": ["a", "a", "a", "b", None], "given": ["a", "b", "unassigned", "b", "b"]}
    )
    ax = optirank.pl.confusion(table, "truth", "given", counts=True)
    shares = np.asarray(ax.images[0].get_array())
    np.testing.assert_allclose(shares, [[1 / 3, 1 / 3, 1 / 3], [0, 1, 0]])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["a", "b", "unassigned"]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a (3)", "b (1)"]
    assert ax.get_title() == f"balanced accuracy {(1 / 3 + 1) / 2:.3f}"
    assert sorted(text.get_text() for text in ax.texts) == ["1"] * 4


def test_reliability_compares_confidence_with_accuracy():
    sure = np.repeat([0.25, 0.95], 100)
    right = np.concatenate([np.arange(100) < 40, np.arange(100) < 90])
    table = pd.DataFrame(
        {"truth": np.where(right, "a", "b"), "given": "a", "given_confidence": sure}
    )
    table.loc[len(table)] = ["a", "unassigned", 0.1]  # withheld: it says nothing
    ax = optirank.pl.reliability(table, "truth", "given")
    (bars,) = ax.containers
    np.testing.assert_allclose(bars.lines[0].get_xdata(), [0.25, 0.95])
    np.testing.assert_allclose(bars.lines[0].get_ydata(), [0.4, 0.9])
    assert "error 0.100" in bars.get_label()  # (0.15 + 0.05) / 2
    heights = [patch.get_height() for patch in ax.child_axes[0].patches]
    assert (sum(heights), heights[2], heights[9]) == (200, 100, 100)


def test_bins_of_a_few_labels_are_hollow_and_not_joined():
    sure = np.repeat([0.25, 0.55, 0.95], [3, 50, 60])
    table = pd.DataFrame({"truth": "a", "given": "a", "given_confidence": sure})
    ax = optirank.pl.reliability(table, "truth", "given")
    full, few = ax.containers
    assert full.lines[0].get_xdata().tolist() == pytest.approx([0.55, 0.95])
    assert few.lines[0].get_xdata().tolist() == pytest.approx([0.25])
    assert few.lines[0].get_linestyle() == "None"
    assert few.lines[0].get_markerfacecolor() == "white"
    assert "fewer than 10" in few.get_label()
    (few,) = optirank.pl.reliability(table.head(3), "truth", "given").containers
    assert "error 0.750" in few.get_label()


def test_every_class_asked_for_has_a_row_and_a_column():
    table = pd.DataFrame({"truth": ["a", "c"], "given": ["a", "unassigned"]})
    ax = optirank.pl.confusion(table, "truth", "given", classes=["a", "b", "c"])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["a", "b", "c", "unassigned"]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a (1)", "b (0)", "c (1)"]
    assert np.isnan(np.asarray(ax.images[0].get_array(), dtype=float)[1]).all()
    assert ax.get_title() == "balanced accuracy 0.500"


def test_characters_that_no_font_has_are_boxes_and_said_once(tmp_path, caplog):
    lost = "\U000f1234"  # of a private area: no font has it
    table = pd.DataFrame({"truth": ["caf\u00e9", f"b{lost}"], "given": [f"b{lost}", "caf\u00e9"]})
    with caplog.at_level(logging.INFO, logger="optirank"):
        for name in ("a.png", "b.svg"):  # a warning would be an error
            ax = optirank.pl.confusion(table, "truth", "given")
            assert [text.get_text() for text in ax.get_xticklabels()] == ["b\u25a1", "caf\u00e9"]
            optirank.pl.save_figure(ax, tmp_path / name)
    (record,) = caplog.records
    assert "no installed font has" in record.getMessage()


def test_a_font_that_has_the_characters_is_used(monkeypatch, tmp_path, caplog):
    monkeypatch.setitem(mpl.rcParams, "font.family", ["STIXGeneral"])  # without Armenian
    table = pd.DataFrame({"truth": ["\u0531", "b"], "given": ["b", "\u0531"]})
    with caplog.at_level(logging.INFO, logger="optirank"):
        ax = optirank.pl.confusion(table, "truth", "given")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["b", "\u0531"]
    assert len(ax.get_xticklabels()[0].get_fontfamily()) == 2
    assert "drawn with the font" in caplog.text
    ax.figure.savefig(tmp_path / "a.png")


def test_a_panel_shows_relative_ranks_by_group(model, adata):
    ax = optirank.pl.panel(model, adata, "cell_type", n_genes=3, max_samples=40)
    ranks = np.asarray(ax.images[0].get_array())
    assert ranks.shape[0] == len(ax.get_yticklabels()) == 3 * len(model.classes_)
    assert abs(ranks.shape[1] - 40) <= len(model.classes_)
    assert ((ranks >= -0.05) & (ranks <= 1)).all()
    assert [text.get_text() for text in ax.get_xticklabels()] == model.classes_.tolist()
    by_label = optirank.pl.panel(model, adata)
    found = {text.get_text() for text in by_label.get_xticklabels()}
    assert found == set(adata.obs["optirank"])


def test_a_panel_of_one_reference_set_shows_each_gene_once(adata):
    frame = adata.to_df()
    model = OptirankClassifier(10, 1e-2, shared_reference=True).fit(frame, adata.obs["cell_type"])
    ax = optirank.pl.panel(model, adata, "cell_type", n_genes=4, max_samples=40)
    names = [text.get_text().split()[0] for text in ax.get_yticklabels()]
    assert len(names) == len(set(names)) > len(model.classes_)
    for name, label in zip(names, _classes_of_rows(ax), strict=True):
        weights = model.coef_[:, model.feature_names_in_.tolist().index(name)]
        assert str(model.classes_[weights.argmax()]) == label


def _classes_of_rows(ax):
    """The class that stands beside each gene."""
    edges = sorted(line.get_ydata()[0] for line in ax.lines if len(set(line.get_ydata())) == 1)
    labels = [text.get_text().replace("\n", " ") for text in ax.texts]
    rows = np.arange(len(ax.get_yticklabels()))
    return [labels[int(np.searchsorted(edges, row))] for row in rows]


@pytest.mark.parametrize(("n_genes", "given"), [(1, False), (3, True)])
def test_names_of_classes_stay_apart(n_genes, given, model, adata):
    ax = plt.subplots(1, 2, figsize=(14, 4))[1][0] if given else None
    ax = optirank.pl.panel(model, adata, "cell_type", n_genes=n_genes, ax=ax)
    ax.figure.canvas.draw()
    assert [text.get_text() for text in ax.texts] == model.classes_.tolist()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[k + 1 :])
    bar = ax.images[0].colorbar.ax.get_window_extent()
    assert max(box.x1 for box in boxes) < bar.x0


@pytest.mark.parametrize(("n_groups", "own"), [(2, True), (12, True), (40, True), (12, False)])
def test_names_of_narrow_groups_stay_apart(n_groups, own, model, adata):
    labels = np.array(["the rest"] * adata.n_obs, dtype=object)
    labels[: n_groups - 1] = [f"a rare type {k:02}" for k in range(n_groups - 1)]
    query = adata.copy()
    query.obs["group"] = labels
    ax = None if own else plt.subplots(1, 2, figsize=(14, 4), layout="constrained")[1][0]
    ax = optirank.pl.panel(model, query, "group", n_genes=2, ax=ax)
    ax.figure.canvas.draw()
    texts = ax.get_xticklabels()
    assert [text.get_text() for text in texts] == sorted(labels[:n_groups].tolist())
    at = np.array([ax.transData.transform((x, 0))[0] for x in ax.get_xticks()])
    across = np.diff(at) * np.sin(np.pi / 4)  # between the lines of slanted text
    assert across.min() > texts[0].get_fontsize() / 72 * ax.figure.dpi
    assert texts[0].get_fontsize() >= 4


@given(st.lists(st.floats(0, 100), min_size=1, max_size=20), st.floats(0, 5))
def test_spread_positions_are_apart_in_order_and_inside(positions, gap):
    positions = np.sort(positions)
    found = spread(positions, gap, 0.0, 100.0)
    assert (np.diff(found) >= gap - 1e-9).all()
    assert found.min() >= -1e-9
    assert found.max() <= 100 + 1e-9
    if (np.diff(positions) >= gap).all():
        np.testing.assert_allclose(found, positions, atol=1e-9)


def test_a_panel_of_a_backed_file_is_the_same(model, adata, tmp_path):
    adata.write_h5ad(tmp_path / "query.h5ad")
    backed = anndata.read_h5ad(tmp_path / "query.h5ad", backed="r")
    drawn = [optirank.pl.panel(model, one, "leiden", max_samples=30) for one in (adata, backed)]
    expected, found = (np.asarray(ax.images[0].get_array()) for ax in drawn)
    np.testing.assert_array_equal(found, expected)
    backed.file.close()


def test_weights_are_those_of_the_model(model, tmp_path):
    save(model, tmp_path / "model.optirank")
    ax = optirank.pl.panel_weights(tmp_path / "model.optirank", n_genes=10)
    values = np.asarray(ax.images[0].get_array())
    assert values.shape == (10, len(model.classes_))
    names = [text.get_text() for text in ax.get_yticklabels()]
    at = [model.feature_names_in_.tolist().index(name) for name in names]
    np.testing.assert_array_equal(values, model.coef_[:, at].T)
    assert np.abs(values).max() == np.abs(model.coef_).max()
    (dots,) = ax.lines
    assert len(dots.get_xdata()) == model.reference_[:, at].sum()


def test_two_classes_are_bars(model):
    ax = optirank.pl.panel_weights(subset(model, ["b cell", "t cell"]), n_genes=12)
    assert len(ax.patches) == 12
    assert "for b cell below 0, for t cell above" in ax.get_xlabel()


def test_stability_counts_folds(folds):
    ax = optirank.pl.reference_stability(folds)
    names = [text.get_text() for text in ax.get_yticklabels()]
    counted = np.sum([one.reference_[0] for one in folds.fold_estimators_], axis=0)
    assert names == [f"x{j}" for j in np.argsort(-counted, kind="stable") if counted[j]]
    widths = [patch.get_width() for patch in ax.patches]
    np.testing.assert_allclose(widths, [counted[int(name[1:])] for name in names])


def test_stability_of_several_classes_is_a_share_each():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = pd.DataFrame(rng.normal(size=(90, 8)) + 1.5 * np.eye(8)[y], columns=list("abcdefgh"))
    model = OptirankClassifierCV((3,), (0.0,), (1e-2,), cv=3, refit="folds").fit(X, y)
    ax = optirank.pl.reference_stability(model, n_genes=5)
    shares = np.asarray(ax.images[0].get_array())
    assert shares.shape == (5, 3)
    sets = np.mean([one.reference_ for one in model.fold_estimators_], axis=0)
    names = [text.get_text() for text in ax.get_yticklabels()]
    np.testing.assert_allclose(shares, sets[:, ["abcdefgh".index(name) for name in names]].T)


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda m, a: optirank.pl.confusion(a, "kind"), ValueError, "no column 'kind'"),
        (lambda m, a: optirank.pl.confusion([1, 2], "kind"), TypeError, "not a list"),
        (lambda m, a: optirank.pl.reliability(a, "cell_type", "leiden"), ValueError, "leiden_conf"),
        (lambda m, a: optirank.pl.reliability(a, "cell_type", n_bins=0), ValueError, "n_bins=0"),
        (lambda m, a: optirank.pl.panel(m, a, "kind"), ValueError, "no column 'kind'"),
        (lambda m, a: optirank.pl.reference_stability(m), ValueError, "refit='folds'"),
    ],
)
def test_bad_input_says_what_to_do(draw, error, message, model, adata):
    with pytest.raises(error, match=message):
        draw(model, adata)


def test_a_figure_is_saved_in_the_format_of_its_name(model, tmp_path):
    ax = optirank.pl.panel_weights(model)
    optirank.pl.save_figure(ax, tmp_path / "panel.pdf")
    assert (tmp_path / "panel.pdf").read_bytes().startswith(b"%PDF")
    with pytest.raises(ValueError, match="use such a name"):
        optirank.pl.save_figure(optirank.pl.panel_weights(model), tmp_path / "panel.docx")
    assert not plt.get_fignums()


def test_importing_loads_nothing_heavy_and_missing_matplotlib_is_told():
    code = (
        "import sys, optirank.pl\n"
        "heavy = [m for m in ('matplotlib', 'numba', 'sklearn', 'pandas') if m in sys.modules]\n"
        "assert not heavy, heavy\n"
        "sys.modules['matplotlib'] = None\n"
        "import pandas as pd\n"
        "frame = pd.DataFrame({'a': ['x'], 'b': ['x']})\n"
        "try:\n"
        "    optirank.pl.confusion(frame, 'a', 'b')\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'optirank[report]'" in done.stdout
