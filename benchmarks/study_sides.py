"""The two minima, rising and falling: the objective between them, and what each side transfers.

``python benchmarks/study_sides.py --out docs/figures`` draws ``sides.png`` and ``sides.svg``,
writes ``sides*.csv`` and prints the tables of docs/solver.md. Everything is deterministic.

Anchor problems are read from OPTIRANK_ANCHORS, real sets from OPTIRANK_DATA (else ../shared/anchors
and ../shared/data beside the repository).
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import anndata
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.patches import Polygon
from numpy.typing import NDArray
from scipy.spatial import ConvexHull
from scipy.stats import rankdata
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from threadpoolctl import threadpool_limits

from optirank import OptirankClassifier, RankLogisticRegression
from optirank.ranks.orders import order_samples
from optirank.solver.alternating import solve_alternating
from optirank.solver.bpcd import Descent
from optirank.solver.constants import STARTS as SIDES
from optirank.solver.convex import solve_at
from optirank.solver.problem import Problem, Solution, sample_weights

mpl.use("Agg")

_SHARED = Path(__file__).resolve().parents[2] / "shared"
ANCHORS = Path(os.environ.get("OPTIRANK_ANCHORS", _SHARED / "anchors"))
DATA = Path(os.environ.get("OPTIRANK_DATA", _SHARED / "data"))

PRESELECTED = 1000  # genes at most, by the correlation of their ranks with the training labels
PENALTIES = [(l1, l2) for l1 in (0.0, 1e-3) for l2 in (1e-4, 1e-3, 1e-2)]
FRACTIONS = (0.05, 0.2)
WIDE_SETTING = (0.0, 1e-2, 0.05)  # l1, l2 and fraction of the one look at all pairs
MODELS = ("rising", "falling", "best", "both", "rank-lr")
COLOURS = {"rising": "#0072B2", "falling": "#D55E00", "bpcd": "#000000"}  # Okabe and Ito's


@dataclass(frozen=True)
class Pair:
    """A binary problem: trained on one platform, tested on another."""

    task: str  # the two sets
    positive: str
    X: NDArray
    y: NDArray
    X_test: NDArray
    y_test: NDArray


# --- data ---------------------------------------------------------------------------------------


def real_pairs() -> Iterator[Pair]:
    """The pairs of the whole grid: leukaemia, receptor status, breast or colon, pancreas types."""
    yield _pair("golub -> armstrong", "aml", _read("golub_leukemia"), _read("armstrong_leukemia"))
    yield _pair("nki -> expo", "er positive", _read("nki_er"), _read("expo_er"))
    yield _pair("tcga -> chowdary", "breast", _tcga(), _read("chowdary_breast_colon"))
    yield from _types("baron -> segerstolpe", _read("baron_h1"), _read("segerstolpe_1000g"), 3)


def more_pairs() -> Iterator[Pair]:
    """Every other pair of data/README.md, at most three types of each against the rest."""
    yield _pair("armstrong -> golub", "aml", _read("armstrong_leukemia"), _read("golub_leukemia"))
    for train, test in (("nki", "vdx"), ("vdx", "nki"), ("vdx", "expo")):
        sets = _read(f"{train}_er"), _read(f"{test}_er")
        yield _pair(f"{train} -> {test}", "er positive", *sets)
    for train, test in (
        ("segerstolpe_1000g", "baron_h1"),
        ("baron_h1", "xin_980g"),
        ("segerstolpe_1000g", "xin_980g"),
        ("tm_10x_immune", "zilionis_mouse_immune"),
        ("zilionis_mouse_immune", "tm_10x_immune"),
        ("kang_pbmc_ctrl", "kang_pbmc_stim"),
    ):
        yield from _types(f"{train} -> {test}", _read(train), _read(test), 3)


def _types(task: str, train: pd.DataFrame, test: pd.DataFrame, number: int) -> Iterator[Pair]:
    """The commonest types of the training set, each against the rest of the common ones."""
    common = set(train.index) & set(test.index)
    train, test = train[train.index.isin(common)], test[test.index.isin(common)]
    counts = train.index.value_counts()
    for positive in sorted(counts.index, key=lambda name: (-counts[name], name))[:number]:
        yield _pair(task, positive, train, test)


def _tcga() -> pd.DataFrame:
    tumours = _read("tcga_tumours9")
    return pd.concat([tumours[tumours.index == "breast"], _read("tcga_crc")], join="inner")


def anchor(name: str) -> tuple[NDArray, NDArray]:
    """X and y of an anchor problem."""
    data = np.load(ANCHORS / f"{name}.npz")
    return data["X"], data["y"].astype(float)


@cache
def _read(name: str) -> pd.DataFrame:
    """A data set as a frame: one row per sample, named by its label; one column per gene."""
    data = anndata.read_h5ad(DATA / f"{name}.h5ad")
    frame = data.to_df()
    frame.index = data.obs["cell_type"].astype(str)
    return frame.loc[:, ~frame.columns.duplicated()]


def _pair(task: str, positive: str, train: pd.DataFrame, test: pd.DataFrame) -> Pair:
    """Common genes, at most PRESELECTED of them, chosen on the training set."""
    common = train.columns[train.columns.isin(test.columns)]
    X, X_test = train[common].to_numpy(np.float32), test[common].to_numpy(np.float32)
    y, y_test = np.asarray(train.index == positive), np.asarray(test.index == positive)
    if len(common) > PRESELECTED:
        ranks = rankdata(X, axis=1)
        ranks -= ranks.mean(axis=0)
        spread = np.maximum(np.linalg.norm(ranks, axis=0), 1e-12)
        correlation = np.abs((y - y.mean()) @ ranks) / spread
        chosen = np.sort(np.argsort(-correlation, kind="stable")[:PRESELECTED])
        X, X_test = X[:, chosen], X_test[:, chosen]
    return Pair(task, positive, X, y, X_test, y_test)


# --- the objective between the minima -----------------------------------------------------------


class RecordedDescent(Descent):
    """The paper's descent that remembers every gamma."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.gammas = [self.gamma]

    def _step_gamma(self) -> None:
        super()._step_gamma()
        self.gammas.append(self.gamma)


class Landscape:
    """``F(gamma) = min over (w, b)`` at lambda_p = 0, around the two minima of one problem."""

    def __init__(self, title: str, X: NDArray, y: NDArray, fraction: float, l2: float) -> None:
        self.title = title
        y = y.astype(float)
        s = int(fraction * X.shape[1] + 1e-9)
        self.problem = Problem(order_samples(X), y, sample_weights(y), s, 0.0, l2)
        self.minima: dict[str, Solution] = {
            side: solve_alternating(self.problem, side=side, integral=False, tol=1e-6)
            for side in SIDES
        }
        descent = RecordedDescent(self.problem)
        descent.solve(0.0, 1e-5, 10_000)
        self.gammas = np.array(descent.gammas)
        self.bpcd_end = descent.loss + self.problem.penalty.value(descent.w)
        self._axes()

    def _axes(self) -> None:
        """Coordinates in the plane of both minima and the uniform start: along, and across."""
        self._origin = self.minima["rising"].gamma
        along = self.minima["falling"].gamma - self._origin
        self._length = float(np.linalg.norm(along))
        self._along = along / self._length
        across = self.uniform - self._origin
        across -= (across @ self._along) * self._along
        self._across = across / np.linalg.norm(across)

    @property
    def uniform(self) -> NDArray:
        """The paper's start."""
        return np.full(self.problem.n_genes, self.problem.n_reference / self.problem.n_genes)

    def place(self, gamma: NDArray) -> NDArray:
        """Coordinates in units of the distance between the minima (the rest is projected away)."""
        moved = gamma - self._origin
        return np.stack([moved @ self._along, moved @ self._across], axis=-1) / self._length

    def at(self, t: float, h: float) -> NDArray:
        """The gamma at a place of the plane."""
        return self._origin + self._length * (t * self._along + h * self._across)

    def objective(self, gamma: NDArray, near: Solution | None = None) -> Solution:
        """F, from the weights of a point nearby."""
        start = {} if near is None else {"w": near.w, "b": near.b}
        return solve_at(self.problem, gamma, tol=1e-4, **start)

    def profile(self, n: int = 41) -> tuple[NDArray, NDArray]:
        """F along the segment from the rising to the falling minimum."""
        places, values, near = np.linspace(0.0, 1.0, n), [], None
        for t in places:
            near = self.objective(self.at(t, 0.0), near)
            values.append(near.objective)
        return places, np.array(values)

    def map(self, n: int = 23) -> tuple[NDArray, NDArray, NDArray]:
        """F on a grid of the plane; ranks are linear in gamma, so F goes on beyond [0, 1]."""
        height = self.place(self.uniform)[1]
        places, heights = np.linspace(-0.15, 1.15, n), np.linspace(-0.15, 1.3, n) * height
        values = np.empty((n, n))
        for i, h in enumerate(heights):
            near = None
            for k, t in enumerate(places):
                near = self.objective(self.at(t, h), near)
                values[i, k] = near.objective
        return places, heights, values

    def allowed(self, places: NDArray, heights: NDArray) -> NDArray:
        """Corners of the part of the plane where gamma keeps to [0, 1]."""
        fine = [
            (t, h)
            for t in np.linspace(places[0], places[-1], 300)
            for h in np.linspace(heights[0], heights[-1], 300)
            if (gamma := self.at(t, h)).min() > -1e-3 and gamma.max() < 1.001
        ]
        points = np.array(fine)
        return points[ConvexHull(points).vertices]


def landscapes() -> Iterator[Landscape]:
    """The problems of the figure."""
    for name in ("gauss_n700_d200", "nb_n700_d200"):
        yield Landscape(f"{name}, l2 = 0.001", *anchor(name), 0.05, 1e-3)
    golub = next(real_pairs())
    yield Landscape("golub, AML against ALL, l2 = 0.01", golub.X, golub.y, 0.05, 1e-2)


def draw(out: Path) -> None:
    """The figure: the objective along the segment, and in the plane of the symmetric start."""
    plt.rcParams.update({"font.size": 9, "svg.hashsalt": "optirank", "svg.fonttype": "none"})
    figure, axes = plt.subplots(2, 3, figsize=(10, 6.2), layout="constrained")
    for column, landscape in zip(axes.T, landscapes(), strict=True):
        _draw_profile(column[0], landscape)
        _draw_map(column[1], landscape)
        ends = ", ".join(f"{side} {landscape.minima[side].objective:.4f}" for side in SIDES)
        top = landscape.objective(landscape.uniform).objective
        print(f"{landscape.title}: {ends}, uniform {top:.4f}, bpcd {landscape.bpcd_end:.4f}")
    axes[0, 0].set_ylabel("objective, w and b optimised")
    axes[1, 0].set_ylabel("towards the uniform start")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(out / "sides.png", dpi=130, metadata={"Software": None})
    figure.savefig(out / "sides.svg", metadata={"Date": None})
    plt.close(figure)


def _draw_profile(ax, landscape: Landscape) -> None:
    places, values = landscape.profile()
    ax.plot(places, values, color="#666666", lw=1.5, label="between the minima")
    for t, side in enumerate(SIDES):
        ax.plot(
            t, landscape.minima[side].objective, "o", ms=8, color=COLOURS[side],
            label=f"{side} minimum", zorder=3, clip_on=False,
        )  # fmt: skip
    start = landscape.place(landscape.uniform)[0]
    ax.plot(
        start, landscape.objective(landscape.uniform).objective, "D", ms=7, mfc="white",
        mec="black", label="paper's uniform start", zorder=3,
    )  # fmt: skip
    end = landscape.place(landscape.gammas[-1])[0]
    ax.plot(
        end, landscape.bpcd_end, "x", ms=9, mew=2, color=COLOURS["bpcd"],
        label="bpcd: way and end", zorder=4, clip_on=False,
    )  # fmt: skip
    ax.set_title(landscape.title, fontsize=10)
    ax.set_xlabel("rising $\\leftarrow$  t  $\\rightarrow$ falling")
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_xlim(-0.12, 1.12)


def _draw_map(ax, landscape: Landscape) -> None:
    places, heights, values = landscape.map()
    corners = landscape.allowed(places, heights)
    lowest = min(minimum.objective for minimum in landscape.minima.values())
    highest = landscape.objective(landscape.uniform).objective
    levels = np.linspace(lowest, highest, 13)
    filled = ax.contourf(
        places, heights, values, levels=levels, cmap="Greys", alpha=0.7, extend="both"
    )
    filled.set_clip_path(Polygon(corners, transform=ax.transData))
    ax.figure.colorbar(filled, ax=ax, location="right", label="objective", format="%.3f")
    way = landscape.place(landscape.gammas)
    ax.plot(*way.T, color=COLOURS["bpcd"], lw=1.2)
    ax.plot(*way[-1], "x", ms=9, mew=2, color=COLOURS["bpcd"], zorder=4)
    ax.plot(*landscape.place(landscape.uniform), "D", ms=7, mfc="white", mec="black", zorder=3)
    for t, side in enumerate(SIDES):
        ax.plot(t, 0.0, "o", ms=8, color=COLOURS[side], zorder=3)
    ax.set_xlabel("rising $\\leftarrow$  t  $\\rightarrow$ falling")
    ax.set_xlim(places[0], places[-1])
    ax.set_ylim(heights[0], heights[-1])


def on_anchors() -> pd.DataFrame:
    """The final objective of each side and of "best" on each line of the anchors."""
    rows = []
    for line in pd.read_csv(ANCHORS / "published.csv").itertuples():
        X, y = anchor(line.problem)
        ends = {
            side: OptirankClassifier(line.s, line.lambda_1, line.lambda_2, side=side)
            .fit(X, y)
            .objective_[0]
            for side in (*SIDES, "best")
        }
        lower = min(ends[side] for side in SIDES)
        rows.append(
            {
                "problem": line.problem,
                "l1": line.lambda_1,
                "s": line.s,
                **{name: round(value, 4) for name, value in ends.items()},
                "apart %": round(100 * (max(ends[side] for side in SIDES) / lower - 1), 2),
                "best above lower %": round(100 * (ends["best"] / lower - 1), 3),
            }
        )
    return pd.DataFrame(rows)


# --- what each side transfers -------------------------------------------------------------------


def transfer() -> pd.DataFrame:
    """The whole grid on the main pairs: a row for each pair, setting and model."""
    return pd.DataFrame(
        row
        for pair in real_pairs()
        for l1, l2 in PENALTIES
        for fraction in FRACTIONS
        for row in _judge(pair, l1, l2, fraction)
    )


def wide() -> pd.DataFrame:
    """One setting on every pair."""
    pairs = itertools.chain(real_pairs(), more_pairs())
    return pd.DataFrame(row for pair in pairs for row in _judge(pair, *WIDE_SETTING))


def _judge(pair: Pair, l1: float, l2: float, fraction: float) -> list[dict]:
    """Scores on the other platform, genes and training objective of each model."""
    models = {
        side: OptirankClassifier(fraction, l1, l2, side=side).fit(pair.X, pair.y)
        for side in (*SIDES, "best")
    }
    models["rank-lr"] = RankLogisticRegression(l1=l1, l2=l2).fit(pair.X, pair.y)
    scores = {name: model.decision_function(pair.X_test) for name, model in models.items()}
    genes = {name: model.genes_ for name, model in models.items()}
    # side="both" is these two fits with their scores averaged
    scores["both"] = np.mean([scores[side] for side in SIDES], axis=0)
    genes["both"] = genes["rising"] | genes["falling"]
    return [
        {
            "task": pair.task,
            "positive": pair.positive,
            "l1": l1,
            "l2": l2,
            "s_over_d": fraction,
            "model": name,
            "balanced_accuracy": balanced_accuracy_score(pair.y_test, scores[name] > 0),
            "auc": roc_auc_score(pair.y_test, scores[name]),
            "shift": _shift(pair.y_test, scores[name]),
            "genes": int(genes[name].sum()),
            "objective": models[name].objective_[0] if name in models else np.nan,
        }
        for name in MODELS
    ]


def _shift(y: NDArray, scores: NDArray) -> float:
    """How far the middle of the two class means lies from the threshold, in class distances."""
    means = scores[y].mean(), scores[~y].mean()
    return float((means[0] + means[1]) / 2 / (means[0] - means[1]))


def print_transfer(table: pd.DataFrame) -> None:
    """Means over the settings, then each setting."""
    _print_by_pair(table)
    sparse = table[table.l1 > 0]
    genes = sparse.pivot_table("genes", ["task", "positive"], "model", sort=False)[list(MODELS)]
    print(f"\ngenes needed at l1 = 1e-3 (at l1 = 0: all)\n{markdown(genes.round(0).astype(int))}")
    settings = table.pivot_table("balanced_accuracy", ["l1", "l2", "s_over_d"], "model", sort=False)
    print(f"\neach setting, mean over problems\n{markdown(settings[list(MODELS)].round(3))}")
    _print_cases(table)


def _print_by_pair(table: pd.DataFrame) -> None:
    for value in ("balanced_accuracy", "auc"):
        means = table.pivot_table(value, ["task", "positive"], "model", sort=False)[list(MODELS)]
        print(f"\n{value}, mean over settings, untuned\n{markdown(means.round(3))}")
        by_task = means.groupby("task", sort=False).mean()
        print(f"mean over {len(by_task)} tasks: {by_task.mean().round(3).to_dict()}")


def _print_cases(table: pd.DataFrame) -> None:
    """How the sides compare case by case."""
    wide = table.pivot(index=["task", "positive", "l1", "l2", "s_over_d"], columns="model")
    accuracy, objective = wide["balanced_accuracy"], wide["objective"]
    gap = (accuracy["rising"] - accuracy["falling"]).abs()
    auc_gap = (wide["auc", "rising"] - wide["auc", "falling"]).abs()
    print(f"\n{len(wide)} cases; rising and falling differ")
    for what, values in (("in balanced accuracy", gap), ("in AUC", auc_gap)):
        print(f"  {what} by {values.median():.3f} (median), {values.max():.3f} (most)")
    apart = (objective["rising"] / objective["falling"] - 1).abs()
    print(f"  in objective by {apart.median():.3f} (median), {apart.max():.3f} (most) of it")
    shift = wide["shift"]
    opposite = np.mean(shift["rising"] * shift["falling"] < 0)
    print(f"shift of the test scores against the threshold: opposite signs in {opposite:.2f},")
    print(f"  mean absolute value {shift.abs().mean().round(2)[list(MODELS)].to_dict()}")
    rising = objective["rising"] < objective["falling"]
    lower = np.where(rising, accuracy["rising"], accuracy["falling"])
    other = np.where(rising, accuracy["falling"], accuracy["rising"])
    print(f"rising has the lower objective in {np.mean(rising):.2f}")
    print(
        f"the side of lower objective transfers better in {np.mean(lower > other):.2f}, "
        f"equally in {np.mean(lower == other):.2f}, worse in {np.mean(lower < other):.2f}"
    )
    missed = objective["best"] / objective[list(SIDES)].min(axis=1) - 1
    print(f"best is above the lower side by {missed.max():.1e} of it at most")
    for rival in ("best", "rank-lr"):
        print(
            f"both above {rival} in {np.mean(accuracy['both'] > accuracy[rival]):.2f}, "
            f"equal in {np.mean(accuracy['both'] == accuracy[rival]):.2f}"
        )


def markdown(table: pd.DataFrame) -> str:
    """A table as the page has it."""
    if any(table.index.names):
        table = table.reset_index()
    rows = table.astype(object).to_numpy().tolist()
    lines = [list(table.columns), ["---"] * table.shape[1], *rows]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/figures"), help="folder written to")
    parser.add_argument(
        "--only", choices=("figure", "anchors", "transfer", "wide"), help="one part"
    )
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):
        if chosen.only in (None, "figure"):
            draw(chosen.out)
        if chosen.only in (None, "anchors"):
            print(f"\nboth sides of the anchors\n{markdown(on_anchors())}")
        if chosen.only in (None, "transfer"):
            table = transfer()
            table.round(5).to_csv(chosen.out / "sides.csv", index=False)
            print_transfer(table)
        if chosen.only in (None, "wide"):
            print("\nevery pair at l1, l2, s/d =", WIDE_SETTING)
            table = wide()
            table.round(5).to_csv(chosen.out / "sides_wide.csv", index=False)
            _print_by_pair(table)
            _print_cases(table)


if __name__ == "__main__":
    main()
