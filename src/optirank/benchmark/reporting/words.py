"""The results in sentences, each computed from the numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from optirank.benchmark.classifiers import ordered
from optirank.benchmark.reporting.analysis import Analysis
from optirank.benchmark.reporting.layout import seconds

_OURS = "optirank"
_RIVALS = ("lr", "rank-lr")
_WHERE = {
    "": "with one source",
    "single": "in the single-source scenario",
    "multi": "in the multi-source scenario",
}


def summarise(found: Analysis) -> list[str]:
    """Return a short account of the results for a reader in a hurry."""
    if found.scores.empty:
        return ["There are no scores yet: no unit of work has finished."]
    main = found.scenarios()[0] if "" in found.scenarios() else found.scenarios()[-1]
    sentences = [_scope(found), *_standing(found, main)]
    sentences += [_against(found, main, rival) for rival in _RIVALS]
    sentences += [_genes(found, main), _second_source(found), _times(found, main)]
    return [sentence for sentence in sentences if sentence]


def count(n: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{n} {one}" if n == 1 else f"{n} {many or one + 's'}"


def listed(words: list[str]) -> str:
    """Return "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _scope(found: Analysis) -> str:
    columns = ordered(found.scores["classifier"])
    names = [name for name in columns if " (" not in name]
    rules = sorted({name.partition(" (")[2].removesuffix(")") for name in columns} - {""})
    plain = found.scores.loc[found.scores["scenario"] == "", "task"].nunique()
    triples = found.scores["task"].nunique() - plain
    tasks = [count(plain, "task") + " with one source"] if plain else []
    if triples:
        tasks.append(count(triples, "task") + " with a second source")
    verb = "compares" if len(names) > 1 else "has scores of"
    more = f" Names with ({listed(rules)}) are settings chosen by another rule." if rules else ""
    return f"This run {verb} {count(len(names), 'classifier')} on {listed(tasks)}.{more}"


def _standing(found: Analysis, scenario: str) -> list[str]:
    here = found.standings[found.standings["scenario"] == scenario]
    if here.empty:
        return ["No task has scores of every classifier yet, so there is no ranking over tasks."]
    tasks = count(int(here["tasks"].iloc[0]), "task")
    if len(here) == 1:
        row = here.iloc[0]
        return [
            f"Only {row['classifier']} has scores {_WHERE[scenario]}, so there is nothing to "
            f"compare it with; its balanced accuracy over {tasks} is {100 * row['mean']:.1f} %."
        ]
    order = here.sort_values("mean_rank", kind="stable")
    shown = [
        f"{row.classifier} ({row.mean_rank:.2f}, {100 * row.mean:.1f} %)"
        for row in order.itertuples()
    ]
    return [
        f"From best to worst, with the mean rank and the mean balanced accuracy over {tasks} "
        f"{_WHERE[scenario]}: {', '.join(shown)}."
    ]


def _against(found: Analysis, scenario: str, rival: str) -> str:
    frame = found.over_tasks
    here = frame[
        (frame["scenario"] == scenario) & (frame["row"] == _OURS) & (frame["column"] == rival)
    ]
    if here.empty:
        return ""
    row = here.iloc[0]
    ties = f", with {count(int(row['ties']), 'tie')}" if row["ties"] else ""
    p = row["p_wilcoxon"]
    shown = "p < 0.001" if p < 0.0005 else f"p = {p:.3f}"
    return (
        f"{_OURS} has a higher mean than {rival} on {row['wins']} of "
        f"{count(int(row['tasks']), 'task')}{ties} (significantly higher on "
        f"{row['significant_wins']}, significantly lower on {row['significant_losses']}); the mean "
        f"difference over tasks is {_points(row['mean_difference'])} (Wilcoxon test over tasks, "
        f"{shown})."
    )


def _points(value: float) -> str:
    return f"{100 * value:+.1f} points".replace("-", "−")


def _genes(found: Analysis, scenario: str) -> str:
    here = found.genes[found.genes["scenario"] == scenario]
    means = here.groupby("classifier")["n_genes"].mean().dropna()
    names = _main(means)
    if not names:
        return ""
    shown = listed([f"{means[name]:.0f} genes for {name}" for name in names])
    offered = here["n_features"].mean()
    known = f", of {offered:.0f} offered" if np.isfinite(offered) else ""
    return f"On average over the tasks a model needs {shown}{known}."


def _second_source(found: Analysis) -> str:
    if found.gains.empty:
        return ""
    name = (
        _OURS if (found.gains["classifier"] == _OURS).any() else found.gains["classifier"].iloc[0]
    )
    here = found.gains[found.gains["classifier"] == name]
    shown = [f"{_points(row.difference)} on {row.task}" for row in here.itertuples()]
    better, worse = int((here["sign"] > 0).sum()), int((here["sign"] < 0).sum())
    return (
        f"Merging the second source into the training set changes the accuracy of {name} by "
        f"{listed(shown)} (significantly better on {better}, significantly worse on {worse} of "
        f"{count(len(here), 'task')})."
    )


def _times(found: Analysis, scenario: str) -> str:
    here = found.times[found.times["scenario"] == scenario]
    medians: pd.Series = here.groupby("classifier")["fit_seconds"].median().dropna()
    names = _main(medians)
    if not names:
        return ""
    shown = listed([f"{seconds(medians[name])} s for {name}" for name in names])
    return f"A fit takes, in the median task, {shown}."


def _main(values: pd.Series) -> list[str]:
    """Return the classifiers worth a sentence: ours and its rivals, or else all there are."""
    names = ordered(set(values.index))
    return [name for name in names if name in (_OURS, *_RIVALS)] or names
