"""The study at the same number of genes."""

from __future__ import annotations

import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from benchmark_cases import write_sets
from fake_peers import GOOD, RAISES, make_peer
from optirank_lab.benchmark import curve, engine, rivals
from optirank_lab.benchmark.curve import CURVE_METHODS
from optirank_lab.benchmark.designs import CURVE, QUICK, RealTasks
from optirank_lab.benchmark.results import Storage
from optirank_lab.benchmark.tasks import find_pairs


def run(folder, pairs, out, pythons=None, **options):
    """The table of some pairs, and of what the folder ``out`` holds already."""
    pythons = pythons or {}
    source = RealTasks(folder, pairs)
    storage = Storage(out)
    plan = curve.plan(source, storage, pythons)
    with storage.open(CURVE, source.seed):
        failed = engine.run(plan, curve.work(source, pythons), storage, **options)
    assert not failed
    return curve.table(storage, pairs)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """The table of two pairs, with its folder of sets and its CSV."""
    folder = write_sets(tmp_path_factory.mktemp("sets"))
    out = tmp_path_factory.mktemp("out") / "new"
    pairs = find_pairs(folder)[0][:2]
    return run(folder, pairs, out), folder, pairs, out


def test_every_method_has_every_size(study):
    table, _, pairs, _ = study
    sizes = {"10", "20", "30", "50", "100", "300"}
    of_all = {
        *("nearest class mean", "nearest class mean, adapted"),
        *("LR on ranks", "LR on ranks, tuned", "SVM on ranks", "SVM on ranks, tuned"),
    }
    only_all = {
        "paper's classifier",
        "LR on log values",
        "LR on log values, z-scored",
    }
    for (_, method), rows in table.groupby(["pair", "method"]):
        expected = {"all"} if method in only_all else sizes
        assert set(rows["k"]) == expected | ({"all"} if method in of_all else set())
    for _, rows in table.groupby("pair"):
        assert list(dict.fromkeys(rows["method"])) == [*CURVE_METHODS]
    assert len(table["pair"].unique()) == len(pairs)
    assert table["balanced_accuracy"].mean() > 0.8


def test_coordinates_in_the_span_of_the_samples_give_the_same_labels():
    """With fewer samples than genes, the tuned regression is fitted in their span."""
    random = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = random.normal(0, 1, (30, 80))
    X[np.arange(30), y] += 2.0
    new = random.normal(0, 1, (50, 80))
    model = LogisticRegression(class_weight="balanced", max_iter=2000, tol=1e-3)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    grid = {"C": rivals.PENALTIES_OF_LOG_VALUES}
    search = GridSearchCV(model, grid, scoring="balanced_accuracy", cv=folds)
    expected = search.fit(X, y).predict(new)
    found = rivals.TunedLogisticRegression().fit(X, y).predict(new)
    assert (found == expected).mean() > 0.95  # up to the tolerance of the solver


def test_z_scores_are_those_of_each_set_and_constant_genes_are_zero():
    values = np.array([[1.0, 5.0], [3.0, 5.0]])
    np.testing.assert_allclose(rivals.z_scored(values), [[-1.0, 0.0], [1.0, 0.0]])


def test_a_tool_takes_part_where_it_has_a_python_and_a_failure_says_why(
    study, tmp_path
):
    table, folder, pairs, out = study
    mine = tmp_path / "mine"
    shutil.copytree(out, mine)
    broken = {"singler": str(make_peer(tmp_path / "a", "singler", RAISES))}
    failed = run(folder, pairs[:1], mine, broken)
    row = failed[failed["method"] == "SingleR"].iloc[0]
    assert np.isnan(row["balanced_accuracy"])
    assert row["note"] == "ValueError: bad values"
    good = {"singler": str(make_peer(tmp_path / "b", "singler", GOOD))}
    again = run(folder, pairs[:1], mine, good)
    row = again[again["method"] == "SingleR"]
    assert len(row) == 1
    assert row.iloc[0]["balanced_accuracy"] > 0.8
    assert row.iloc[0]["n_genes"] == 3
    others = again[again["method"] != "SingleR"].reset_index(drop=True)
    own = table[table["pair"] == pairs[0].name].reset_index(drop=True)
    pd.testing.assert_frame_equal(others, own, check_dtype=False)
    kept = curve.with_rows_of(own, again)
    pd.testing.assert_frame_equal(
        kept.reset_index(drop=True), again.reset_index(drop=True), check_dtype=False
    )


def test_the_csv_says_how_it_was_made_and_finished_pairs_are_kept(study, tmp_path):
    table, folder, pairs, out = study
    curve.write(table, tmp_path / "curve.csv")
    first = (tmp_path / "curve.csv").read_text().splitlines()[0]
    assert first.startswith("# optirank-lab benchmark curve; optirank ")
    assert "scikit-learn" in first
    read = curve.read(tmp_path / "curve.csv")
    pd.testing.assert_frame_equal(read, table, check_dtype=False)
    stored: list[bool] = []
    again = run(folder, pairs, out, progress=lambda _, known: stored.append(known))
    assert stored
    assert all(stored)
    pd.testing.assert_frame_equal(again, table)


def test_results_of_something_else_are_refused(study, tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="is not a table of this study"):
        curve.read(mine)
    with pytest.raises(ValueError, match="holds results of other settings"):
        Storage(study[3]).check(QUICK, 0)


def test_the_figure_shows_means_over_tissues(study, tmp_path):
    table, *_ = study
    more = table.assign(pair=table["pair"] + " again", balanced_accuracy=0.5)
    joined = pd.concat([table.assign(tissue=table["pair"]), more.assign(tissue="x")])
    means = curve.means(joined)
    row = means[(means["method"] == "panel") & (means["k"] == "20")].iloc[0]
    own = table[(table["method"] == "panel") & (table["k"] == "20")]
    expected = (own["balanced_accuracy"].sum() + 0.5) / (len(own) + 1)
    assert row["mean"] == pytest.approx(expected)
    assert np.isnan(row["low"])  # of three tissues
    assert curve.draw(table, tmp_path / "curve.csv").read_bytes().startswith(b"\x89PNG")


def test_the_size_of_a_panel_is_judged_on_tissues_that_did_not_choose_it(
    study, tmp_path
):
    table, *_ = study
    assert curve.write_left_out(table, tmp_path / "curve.csv") is None  # one tissue
    path = curve.write_left_out(
        table.assign(tissue=table["pair"]), tmp_path / "curve.csv"
    )
    found = pd.read_csv(path, comment="#")
    assert path.name == "curve-left-out.csv"
    panel = found[found["method"] == "panel"]
    assert set(panel["tissue"]) == {*table["pair"], "all"}
    assert (panel["score"] <= panel["best"] + 1e-9).all()
