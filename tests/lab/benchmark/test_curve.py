"""The study at the same number of genes."""

from __future__ import annotations

import pandas as pd
import pytest

from benchmark_cases import write_sets
from optirank_lab.benchmark import curve
from optirank_lab.benchmark.tasks import find_pairs


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """The table of two pairs, with its folder of sets and its CSV."""
    folder = write_sets(tmp_path_factory.mktemp("sets"))
    out = tmp_path_factory.mktemp("out") / "new" / "curve.csv"
    pairs = find_pairs(folder)[0][:2]
    return curve.run(folder, pairs, out), folder, pairs, out


def test_every_method_has_every_size(study):
    table, _, pairs, _ = study
    sizes = {"10", "20", "30", "50", "100", "300"}
    for _, rows in table.groupby("pair"):
        for method in ("LR on ranks, best t", "SVM on ranks, best t", "panel", "k-TSP",
                       "LR on ranks, largest weights", "L1 LR on log values"):  # fmt: skip
            assert set(rows[rows["method"] == method]["k"]) - {"all"} == sizes
        everything = rows[rows["k"] == "all"]
        assert len(everything) == 3
        assert (everything["n_genes"] == everything["n_candidates"]).all()
    exact = table[table["method"].str.contains("ranks") | (table["method"] == "panel")]
    exact = exact[exact["k"] != "all"]
    expected = (
        exact["k"].astype(int).clip(upper=exact["n_candidates"])
    )  # of fewer than 120 genes
    assert (exact["n_genes"] == expected).all()
    assert len(table["pair"].unique()) == len(pairs)
    assert table["balanced_accuracy"].mean() > 0.8


def test_the_csv_says_how_it_was_made_and_finished_pairs_are_kept(study, monkeypatch):
    table, folder, pairs, out = study
    first = out.read_text().splitlines()[0]
    assert first.startswith("# optirank benchmark curve; optirank ")
    assert "scikit-learn" in first
    pd.testing.assert_frame_equal(curve.read(out), table)
    monkeypatch.setattr(curve, "evaluate", None)  # would fail
    pd.testing.assert_frame_equal(curve.run(folder, pairs, out), table)


def test_a_file_of_something_else_is_refused(study, tmp_path):
    mine = tmp_path / "mine.csv"
    mine.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="is not a table of this study"):
        curve.run(study[1], study[2], mine)
    assert mine.read_text() == "a,b\n1,2\n"


def test_the_figure_shows_means_over_pairs_with_intervals(study):
    table, _, _, out = study
    table = table.assign(tissue=table["pair"])
    means = curve.means(table)
    row = means[(means["method"] == "panel") & (means["k"] == "20")].iloc[0]
    own = table[(table["method"] == "panel") & (table["k"] == "20")][
        "balanced_accuracy"
    ]
    assert row["mean"] == pytest.approx(own.mean())
    assert row["low"] <= row["mean"] <= row["high"]
    assert curve.draw(table, out).read_bytes().startswith(b"\x89PNG")


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
