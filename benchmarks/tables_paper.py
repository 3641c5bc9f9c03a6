"""The paper's own tables, with our figures below where we have a stand-in of
the task.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from tables import RESULTS, number, percent, read, table

from optirank_lab.benchmark.statistics import (
    FEWEST_VALUES,
    paired_tests,
    t_interval,
)
from optirank_lab.benchmark.synthetic import PUBLISHED
from optirank_lab.data.paper import (
    ACCURACY,
    ACCURACY_TABLES,
    COSINE,
    printed,
    published,
)

PAPER = "paper"
NONE = "–"  # what was not measured
RULE_OF_POINT = "best"  # the paper's for synthetic data
INSTANCE = ["problem", "part", "split"]  # what classifiers are compared on


@table
def paper_tasks() -> pd.DataFrame:
    """Balanced accuracy (%) of the paper's tasks with one source."""
    return _accuracies([""])


@table
def paper_pairs() -> pd.DataFrame:
    """On how many stand-ins optirank is better or worse than each other classifier.

    By the paper's paired t-test over the problems and splits of a stand-in.
    """
    rows = _own()
    if rows.empty:
        return pd.DataFrame({"optirank beside": [NONE, NONE]})
    tests = paired_tests(rows.assign(group=rows["scenario"]))
    tests = tests[tests["row"] == "optirank"]
    records = []
    for name, part in tests.groupby("column"):
        signs = part["sign"].value_counts()
        records.append(
            {
                "optirank beside": str(name),
                "stand-ins": str(len(part)),
                "better": str(signs.get(1, 0)),
                "no difference at 5 %": str(signs.get(0, 0)),
                "worse": str(signs.get(-1, 0)),
                "classes and splits with optirank ahead (%)": percent(
                    part["better"].mean()
                ),
            }
        )
    return pd.DataFrame(records)


@number
def fewer_genes() -> str:
    """Stand-ins on which lr needs fewer genes than optirank, mean over fits."""
    own = _own()
    means = own.pivot_table(
        index=["task", "scenario"], columns="classifier", values="n_genes"
    )
    return f"{(means['lr'] < means['optirank']).sum()} of {len(means)}"


@table
def synthetic() -> pd.DataFrame:
    """The synthetic data with and without the shift, with weaker penalties too."""
    words = {
        "lr": "lr (values)",
        "rank-lr": "rank-lr (fixed reference set: all genes)",
        "optirank": "optirank (learned reference set)",
        "panel": "panel, best validation size",
        "oracle": "true reference set",
    }
    rows = _read("synthetic").query("rule == @RULE_OF_POINT")
    records = []
    for name, text in words.items():
        of_name = rows[rows["classifier"] == name].set_index("data_set")
        still, shifted = (
            of_name.loc[of_name["experiment"] == experiment, "balanced_accuracy"]
            for experiment in ("still", "weaker")
        )
        lost = (still - shifted).dropna()
        if len(lost):
            cells = {"tau = 0": still, "tau = 0.2": shifted, "lost to the shift": lost}
            means = {key: _mean(values) for key, values in cells.items()}
            records.append({"method": text, **means})
    return pd.DataFrame(records)


@table
def paper_synthetic() -> pd.DataFrame:
    """The default point of the synthetic data: accuracy (%) and cosine."""
    rows = published()
    of_task = rows[rows["task"] == "synthetic"]
    texts = map(printed, of_task["value"], of_task["plus_minus"])
    names = [
        "cosine" if measure == COSINE else classifier
        for measure, classifier in zip(
            of_task["measure"], of_task["classifier"], strict=True
        )
    ]
    code = PUBLISHED["published code"]
    records = [
        {"whose": PAPER, **dict(zip(names, texts, strict=True))},
        {"whose": "published code, four data sets", **code},
    ]
    words = {
        "folded": "ours, weights from a folded normal distribution",
        "normal": "ours, weights as printed",
        "weaker": "ours, folded, weaker penalties too (1e-5, 1e-6)",
    }
    own = default_point()
    for experiment, text in words.items():
        part = own[(own["experiment"] == experiment) & (own["rule"] == RULE_OF_POINT)]
        if len(part):
            records.append({"whose": text, **_means(part)})
    search = _read("default_search")
    if len(search):
        search = search.assign(classifier="optirank")
        cells = _means(search)
        cells["cosine"] = _mean(search["cosine"], shown=_plain)
        text = f"`OptirankClassifierCV()`, {len(search)} data sets"
        records.append({"whose": text, **cells})
    return pd.DataFrame(records).fillna(NONE)


def default_point() -> pd.DataFrame:
    """The rows of the synthetic study at the default point."""
    rows = _read("synthetic")
    return rows.query("n_genes == 50 and n_perturbed == 40 and tau == 0.2")


def _means(rows: pd.DataFrame) -> dict[str, str]:
    """Means over data sets with their intervals, of the classifiers of the paper, and
    the cosine of optirank.
    """
    cells = {
        str(name): _mean(of_name["balanced_accuracy"])
        for name, of_name in rows.groupby("classifier", sort=False)
        if name not in ("panel", "oracle")
    }
    cosines = rows.loc[rows["classifier"] == "optirank", "cosine"]
    return cells | {"cosine": _mean(cosines, shown=_plain)}


def _plain(value: float) -> str:
    return f"{value:.2f}"


def _mean(values: pd.Series, shown=percent) -> str:
    """A mean with its 95 % interval, where there are enough values."""
    low, high = t_interval(values)
    text = shown(float(values.mean()))
    return text if np.isnan(low) else f"{text} ({shown(low)} to {shown(high)})"


@number
def weights_spread() -> str:
    """Standard deviation of lr over data sets, in points."""
    rows = default_point().query("experiment == 'folded' and rule == @RULE_OF_POINT")
    return percent(rows.loc[rows["classifier"] == "lr", "balanced_accuracy"].std())


def _accuracies(scenarios: list[str]) -> pd.DataFrame:
    """The accuracies of the paper's tables, and below each our figures of a
    stand-in.
    """
    rows = published()
    tables = [ACCURACY_TABLES[scenario] for scenario in scenarios]
    wanted = rows[(rows["measure"] == ACCURACY) & rows["table"].isin(tables)]
    columns = sorted(set(wanted["classifier"]), key=str.lower)
    words = {"": {}, "single": {"sources": "one"}, "multi": {"sources": "both"}}
    records = []
    for keys, part in wanted.groupby(["task", "scenario"], sort=False):
        place = {"task": str(keys[0]), **words[str(keys[1])]}
        texts = [printed(row["value"], bold=row["bold"]) for _, row in part.iterrows()]
        cells = dict(zip(part["classifier"], texts, strict=True))
        ordered = {name: cells.get(name, NONE) for name in columns}
        records.append({**place, "whose": PAPER, **ordered})
        for name, own in _stand_ins(str(keys[0]), str(keys[1])).items():
            shown = own[own["classifier"].isin(columns)]
            below = place | {"task": ""}
            records.append({**below, "whose": name, **accuracy_cells(shown)})
    return pd.DataFrame(records).fillna(NONE)


def accuracy_cells(rows: pd.DataFrame) -> dict[str, str]:
    """Means by classifier; bold as in the paper: not significantly worse than the best,
    by its paired t-test.
    """
    means = rows.groupby("classifier", sort=False)["test"].mean()
    tests = paired_tests(rows.assign(group="", task=""))
    best = means.idxmax()
    worse = tests[(tests["column"] == best) & (tests["sign"] < 0)]
    cells = {}
    for name, mean in means.items():
        scores = rows.loc[rows["classifier"] == name, "test"]
        few = len(scores) < FEWEST_VALUES
        bold = "" if few or name in set(worse["row"]) else "yes"
        cells[str(name)] = printed(percent(mean), bold=bold)
    return cells


def _stand_ins(task: str, scenario: str) -> dict[str, pd.DataFrame]:
    """Our rows of the stand-ins of a task; none where there are none."""
    rows = _own()
    own = rows[(rows["stands_for"] == task) & (rows["scenario"] == scenario)]
    return {f"ours, {name}": part for name, part in own.groupby("task", sort=False)}


def _own() -> pd.DataFrame:
    """All our rows of stand-ins."""
    rows = _read("paper_stand_ins")
    if rows.empty:
        return pd.DataFrame(columns=pd.Index(["stands_for", "scenario", "task"]))
    return rows.fillna({"scenario": "", "problem": ""})


def _read(name: str) -> pd.DataFrame:
    """A CSV of results/, empty where it is not there yet."""
    if not (RESULTS / f"{name}.csv").is_file():
        return pd.DataFrame()
    return read(name)
