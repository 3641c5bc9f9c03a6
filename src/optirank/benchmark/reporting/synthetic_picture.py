"""The picture of what happened: ranks and scores under the shift, among all and learned genes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from sklearn.metrics import balanced_accuracy_score

from optirank.benchmark.classifiers import get
from optirank.benchmark.designs import make_problem
from optirank.benchmark.reporting.style import new_figure, style
from optirank.benchmark.reporting.synthetic_table import at_point
from optirank.benchmark.running.work import fit_grid
from optirank.benchmark.synthetic import POSITIVE, Settings, SyntheticTasks, data_seed, task_name
from optirank.datasets import make_unstable_ranks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_GENES = ("#CC79A7", "#009E73", "#56B4E9", "#E69F00")
_LABELS = {0: ("#0072B2", "label 0"), 1: ("#D55E00", "label 1")}
_PERTURBED = "#bbbbbb"


@dataclass(frozen=True)
class Story:
    """What the picture shows: the test samples before and after the shift, and two models."""

    before: np.ndarray
    after: np.ndarray
    y: np.ndarray
    perturbed: np.ndarray
    genes: np.ndarray
    references: tuple[np.ndarray, np.ndarray]
    scores: tuple[np.ndarray, np.ndarray]

    @property
    def shift(self) -> np.ndarray:
        """The shift of each test sample."""
        return (self.after - self.before)[:, self.perturbed].mean(axis=1)


def tell(settings: Settings, selected: pd.DataFrame) -> Story:
    """Fit the selected rank-lr and optirank of the first repeat again, for the picture."""
    point = settings.base
    (design,) = SyntheticTasks.of(settings).designs(task_name(point, 0))
    split = design.splits[-1]
    problem = make_problem(design, split, POSITIVE, settings.grid.n_top)
    (test,) = problem.tests.values()
    still = make_unstable_ranks(
        point.n_samples,
        point.n_genes,
        point.n_perturbed,
        tau=0.0,
        sigma=point.sigma,
        random_state=data_seed(settings.seed, 0),
    )
    fits = []
    for name in ("rank-lr", "optirank"):
        here = (selected["classifier"] == name) & (selected["grid"] == settings.grid.name)
        row = at_point(selected[here & (selected["repeat"] == 0)], point).iloc[0]
        grid = settings.grid.grid(get(name))
        chosen = {key: (row[key],) if key in row else values for key, values in grid.items()}
        fits += fit_grid(get(name), problem, chosen, [test], cold=True)
    return Story(
        before=still.X[split.test],
        after=test.raw,
        y=test.labels.astype(int),
        perturbed=~design.truth,
        genes=_informative(still),
        references=(fits[0].reference, fits[1].reference),
        scores=(fits[0].scores[0], fits[1].scores[0]),
    )


def _informative(data) -> np.ndarray:
    """Return a few genes with large weights, spread over the levels of expression."""
    stable = np.flatnonzero(data.reference)
    ordered = stable[np.argsort(data.X[:, stable].mean(axis=0))]
    parts = np.array_split(ordered, min(len(_GENES), len(ordered)))
    return np.array([part[np.abs(data.coef[part]).argmax()] for part in parts])


def draw_picture(story: Story) -> Figure:
    """Draw the story: ranks among all genes on the left, among the learned genes on the right."""
    with style():
        figure = new_figure(10.0, 11.5)
        figure.get_layout_engine().set(h_pad=0.12, w_pad=0.12)
        axes = figure.subplots(3, 2, gridspec_kw={"height_ratios": [1.15, 1.0, 1.0]})
        titles = (
            f"Ranked among all {len(story.perturbed)} genes",
            f"Ranked among {int(story.references[1].sum())} learned genes",
        )
        for column in (0, 1):
            _draw_one_sample(axes[0, column], story, column)
            axes[0, column].set_title(titles[column], fontweight="bold", fontsize=14, pad=12)
            _draw_genes(axes[1, column], story, column)
            _draw_scores(axes[2, column], story, column)
        return figure


def _ranks(X: np.ndarray, reference: np.ndarray) -> np.ndarray:
    from optirank import ReferenceRankTransformer

    return ReferenceRankTransformer(reference=reference).fit_transform(X)


def _draw_one_sample(ax: Axes, story: Story, column: int) -> None:
    """Draw one strongly shifted sample's ranks before and after the shift, joined by lines."""
    reference = story.references[column]
    sample = int(np.argsort(story.shift)[int(0.95 * len(story.shift))])
    pair = np.stack([story.before[sample], story.after[sample]])
    ranks = 100 * _ranks(pair, reference)
    others = story.perturbed if column == 0 else story.perturbed & reference
    for gene in np.flatnonzero(others):
        ax.plot([0, 1], ranks[:, gene], color=_PERTURBED, lw=0.8, zorder=1)
    for colour, gene in zip(_GENES, story.genes, strict=False):
        ax.plot([0, 1], ranks[:, gene], "o-", color=colour, lw=3, ms=8, zorder=3)
    if others.any():
        ax.plot([], [], color=_PERTURBED, lw=0.8, label="genes that shift together")
    ax.plot([], [], "o-", color="#666666", lw=3, ms=8, label="informative genes, not shifted")
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.09), ncols=2, fontsize=9)
    ax.set_xlim(-0.15, 1.15)
    ax.set_xticks([0, 1], ["before the shift", "after the shift"])
    ax.set_ylim(-4, 104)
    ax.set_ylabel("One sample: rank\n(% of the genes ranked among)")
    ax.grid(visible=False, axis="x")


def _draw_genes(ax: Axes, story: Story, column: int) -> None:
    """Draw the ranks of the informative genes in every sample against the sample's shift."""
    ranks = 100 * _ranks(story.after, story.references[column])
    for colour, gene in zip(_GENES, story.genes, strict=False):
        ax.plot(story.shift, ranks[:, gene], ".", color=colour, alpha=0.4, ms=6, mew=0)
        ax.plot(*_running_mean(story.shift, ranks[:, gene]), color=colour, lw=3)
    ax.set_ylim(-4, 104)
    ax.set_ylabel("Every test sample:\nrank of the same genes (%)")
    ax.set_xlabel("shift Δ of the sample's perturbed genes")


def _running_mean(x: np.ndarray, y: np.ndarray, windows: int = 9) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of `x` and `y` in windows of equally many samples."""
    parts = np.array_split(np.argsort(x), min(windows, len(x)))
    return np.array([x[part].mean() for part in parts]), np.array(
        [y[part].mean() for part in parts]
    )


def _draw_scores(ax: Axes, story: Story, column: int) -> None:
    """Draw the classifier's score of every sample against its shift, coloured by label."""
    scores = story.scores[column]
    ax.axhline(0.0, color="#333333", lw=1)
    for label, (colour, text) in _LABELS.items():
        keep = story.y == label
        marker = "o" if label else "s"
        ax.plot(
            story.shift[keep],
            scores[keep],
            marker,
            color=colour,
            alpha=0.6,
            ms=4.5,
            mew=0,
            label=text,
        )
    accuracy = 100 * balanced_accuracy_score(story.y, scores > 0)
    name = ("rank-lr", "optirank")[column]
    ax.set_title(f"{name}: {accuracy:.1f} % balanced accuracy")
    ax.set_ylabel("Every test sample:\nscore (log-odds of label 1)")
    ax.set_xlabel("shift Δ of the sample's perturbed genes")
    limit = 1.05 * np.abs(scores).max()
    ax.set_ylim(-limit, limit)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, fontsize=9)
