"""The paper's own tables, with our figures below where we have a stand-in of
the task.
"""

from __future__ import annotations

import pandas as pd
from tables import RESULTS, percent, read, table

from optirank_lab.data.paper import (
    ACCURACY,
    ACCURACY_TABLES,
    COSINE,
    GENES,
    SECONDS,
    SPARSEST,
    printed,
    published,
)

PAPER = "paper"
NONE = "–"  # what was not measured
STAND_INS = "paper_stand_ins"  # of results/, as the next
SYNTHETIC = "paper_synthetic"


@table
def paper_tasks() -> pd.DataFrame:
    """Balanced accuracy (%) of the paper's tasks with one source."""
    return _accuracies([""])


@table
def paper_sources() -> pd.DataFrame:
    """Balanced accuracy (%) with one of two sources, and with both."""
    return _accuracies(["single", "multi"])


@table
def paper_genes() -> pd.DataFrame:
    """Genes needed, and how often a classifier needs the fewest."""
    rows = published()
    wanted = rows[rows["measure"].isin([GENES, SPARSEST])]
    columns = ["optirank", "ANrank-lr", "lr"]
    records = []
    for keys, part in wanted.groupby(["task", "scenario"], sort=False):
        cells = part.pivot(index="measure", columns="classifier", values="value")
        cells = cells.reindex(columns=columns).fillna(NONE)
        task = f"{keys[0]}, two sources" if keys[1] else str(keys[0])
        record = {"task": task, "whose": PAPER}
        record |= {f"genes: {name}": cells.loc[GENES, name] for name in columns}
        record |= {
            f"sparsest (%): {name}": cells.loc[SPARSEST, name] for name in columns
        }
        records.append(record)
        scenario = "multi" if keys[1] else ""
        for name, own in _stand_ins(str(keys[0]), scenario).items():
            genes = own["n_genes"].map("{:.0f}".format).reindex(columns).fillna(NONE)
            cells = {f"genes: {column}": genes[column] for column in columns}
            records.append({"task": task, "whose": name, **cells})
    return pd.DataFrame(records).fillna(NONE)


@table
def paper_seconds() -> pd.DataFrame:
    """Seconds per fit, one class against the rest, with one source."""
    rows = published()
    wanted = rows[rows["measure"] == SECONDS]
    columns = list(dict.fromkeys(wanted["classifier"]))
    records = []
    for task, part in wanted.groupby("task", sort=False):
        texts = map(printed, part["value"], part["plus_minus"])
        cells = dict(zip(part["classifier"], texts, strict=True))
        records.append({"task": str(task), "whose": PAPER, **cells})
        for name, own in _stand_ins(str(task), "single").items():
            seconds = own["fit_seconds"].map("{:.2g}".format).reindex(columns)
            records.append({"task": str(task), "whose": name} | seconds.to_dict())
    return pd.DataFrame(records).fillna(NONE)


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
    records = [{"whose": PAPER, **dict(zip(names, texts, strict=True))}]
    if not (RESULTS / f"{SYNTHETIC}.csv").is_file():
        return pd.DataFrame(records)
    own = read(SYNTHETIC)
    words = {
        PAPER: "ours, the penalties of the paper",
        "weaker": "ours, weaker penalties too (1e-5, 1e-6)",
    }
    for grid, text in words.items():
        part = own[own["grid"] == grid]
        accuracy = part["balanced_accuracy"]
        record = {
            "whose": text,
            **(_values_and_ranks() if grid != PAPER else {}),
            "optirank": f"{percent(accuracy.mean())} ± {percent(accuracy.std())}",
            "cosine": f"{part['cosine'].mean():.2f} ± {part['cosine'].std():.2f}",
        }
        records.append(record)
    return pd.DataFrame(records).fillna(NONE)


def _values_and_ranks() -> dict[str, str]:
    """lr and rank-lr at the default point, which choose among the weaker penalties."""
    rows = read("synthetic")
    rows = rows[rows["tau"] == 0.2]
    texts = {}
    for name in ("lr", "rank-lr"):
        scores = rows.loc[
            rows["method"].str.startswith(f"{name} ("), "balanced_accuracy"
        ]
        texts[name] = f"{percent(scores.mean())} ± {percent(scores.std())}"
    return texts


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
        texts = map(printed, part["value"], part["plus_minus"], part["bold"])
        cells = dict(zip(part["classifier"], texts, strict=True))
        ordered = {name: cells.get(name, NONE) for name in columns}
        records.append({**place, "whose": PAPER, **ordered})
        for name, own in _stand_ins(str(keys[0]), str(keys[1])).items():
            ours = {
                column: _with_error(own.loc[column]) if column in own.index else NONE
                for column in columns
            }
            records.append({**place, "whose": name, **ours})
    return pd.DataFrame(records)


def _stand_ins(task: str, scenario: str) -> dict[str, pd.DataFrame]:
    """Our rows of the stand-ins of a task, by classifier; none where there are none."""
    if not (RESULTS / f"{STAND_INS}.csv").is_file():
        return {}
    rows = read(STAND_INS).fillna({"scenario": ""})
    own = rows[(rows["stands_for"] == task) & (rows["scenario"] == scenario)]
    return {
        f"ours, {name}": part.set_index("classifier")
        for name, part in own.groupby("task", sort=False)
    }


def _with_error(row: pd.Series) -> str:
    """A mean with its standard error, in percent."""
    return f"{percent(row['balanced_accuracy'])} ± {percent(row['standard_error'])}"
