"""Adapting to a query, promised error rates and unknown types, between real data sets.

``python benchmarks/adapt_pairs.py`` first, which fits and saves; then
``python benchmarks/study_adapt.py [adapt] [choose] [promise] [unknown]`` prints the tables of
docs/transfer.md; ``adapt promise --trained DIR`` does these two with models of `optirank train`,
which are trained within ``--budget`` seconds each and kept in DIR. Queries are taken whole, with
one class removed, of one class alone, with one class at 80 %, and of thirty and ten samples.
"""

from __future__ import annotations

import argparse
import itertools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
from adapt_pairs import CACHE, STRENGTHS, saved
from optirank.model.adaptation import fit_adaptation, margins, profile_shares
from optirank.model.experience import Experience, gather_experience, panel_ranks
from trained_pairs import trained_adaptation, trained_promises

from optirank.model import Outcomes, fit_rejection
from optirank.ranks.scoring import best_class

Pair = dict[str, np.ndarray]
KINDS = ("whole", "removed", "alone", "80/20", "thirty", "ten")
CHOICES = {  # what `choose` chooses among, leaving out the pairs that share a data set
    "_SLACK": (0.003, 0.01, 0.02),
    "_CHANGES": (0.03, 0.05, 0.08),
}


def flat(columns: np.ndarray) -> np.ndarray:
    """Scores as the package has them: one dimension for two classes."""
    return columns[:, 0] if columns.shape[1] == 1 else columns


def balanced_accuracy(y: np.ndarray, columns: np.ndarray) -> float:
    """Mean share of right labels over the classes that are there."""
    right = best_class(flat(columns)) == y
    return float(np.mean([right[y == c].mean() for c in np.unique(y)]))


def experience(pair: Pair) -> Experience:
    """What a model of the pair would remember; of ranks only the profiles matter here."""
    h, y = pair["held"], pair["y"]
    n_classes = len(pair["classes"])
    positives = [1] if h.shape[1] == 1 else list(range(n_classes))
    sides = [(y != c, y == c) for c in positives]
    stats = {
        f"{side}{what}": np.array([getattr(np, of)(h[s[k], j]) for j, s in enumerate(sides)])
        for k, side in enumerate(("outside", "inside"))
        for what, of in (("", "mean"), ("_spread", "std"))
    }
    margin = float(np.median(margins(h)))
    blank = np.ones(n_classes)
    return Experience(
        **stats,
        score=blank,
        score_spread=blank,
        likeness=blank,
        likeness_spread=blank,
        familiarity_levels=np.zeros(1001),
        margin=margin,
        between=float(np.mean(margins(h) < 0.25 * margin)),
        genes=np.arange(pair["ranks"].shape[1]),
        profiles=np.array([pair["ranks"][y == c].mean(axis=0) for c in range(n_classes)]),
    )


def queries(pair: Pair) -> Iterator[tuple[str, np.ndarray]]:
    """Kinds of queries, and their samples."""
    rng = np.random.default_rng(0)
    q = pair["q"]
    present = np.unique(q)
    yield "whole", np.arange(len(q))
    for c in present:
        inside, outside = np.flatnonzero(q == c), np.flatnonzero(q != c)
        if len(present) > 2:
            yield "removed", outside
        yield "alone", inside
        n = min(len(inside), 4 * len(outside))
        few = rng.permutation(outside)[: max(1, round(n / 4))]
        yield "80/20", np.concatenate([rng.permutation(inside)[:n], few])
    for kind, n in (("thirty", 30), ("ten", 10)):
        for _ in range(3):
            yield kind, rng.permutation(len(q))[:n]


def gains(pair: Pair) -> dict[str, list[tuple[float, float]]]:
    """Balanced accuracy of plain and adapted labels, for each kind of query."""
    known = experience(pair)
    found = defaultdict(list)
    for kind, rows in queries(pair):
        z, y = pair["query"][rows], pair["q"][rows]
        shares = profile_shares(pair["query_ranks"][rows].mean(axis=0), known.profiles)
        offsets = fit_adaptation(flat(z), known, shares).offsets
        found[kind].append((balanced_accuracy(y, z), balanced_accuracy(y, z - offsets)))
    return found


def adapt_table(pairs: dict[str, Pair]) -> None:
    """Plain and adapted, by kind of query."""
    found = {name: gains(pair) for name, pair in pairs.items()}
    print("| query | plain | adapted | worst query | below by more than 2 points |")
    print("|---|--:|--:|--:|--:|")
    for kind in KINDS:
        each = [np.array(one[kind]) for one in found.values() if one[kind]]
        plain, adapted = np.mean([one.mean(axis=0) for one in each], axis=0)
        change = np.concatenate([one[:, 1] - one[:, 0] for one in each])
        below = f"{np.sum(change < -0.02)} of {len(change)}"
        worst = f"{100 * change.min():+.1f}"
        print(f"| {kind} | {100 * plain:.1f} | {100 * adapted:.1f} | {worst} | {below} |")
    print("\n| pair | plain | adapted |\n|---|--:|--:|")
    for name, one in found.items():
        plain, adapted = one["whole"][0]
        print(f"| {name.replace('__', ' -> ')} | {100 * plain:.1f} | {100 * adapted:.1f} |")


def choose_table(pairs: dict[str, Pair]) -> None:
    """What is gained where the method's two free numbers are chosen by other data sets.

    Chosen is the largest mean gain on whole queries among settings that lose at most 2 points on
    every query of the other pairs that is whole, of one class, or without one.
    """
    settings = [
        dict(zip(CHOICES, one, strict=True)) for one in itertools.product(*CHOICES.values())
    ]
    table = []
    for values in settings:
        with mock.patch.multiple("optirank.model.adaptation", **values):
            table.append({name: gains(pair) for name, pair in pairs.items()})

    def change(one: dict, kinds: tuple[str, ...]) -> np.ndarray:
        return np.array([b - a for kind in kinds for a, b in one[kind]])

    groups = data_groups(list(pairs))
    left_out, chosen = {}, []
    for group in groups:
        others = [name for name in pairs if name not in group]
        mean = np.array([np.mean([change(t[n], ("whole",)) for n in others]) for t in table])
        kinds = ("whole", "alone", "removed")
        worst = np.array([min(change(t[n], kinds).min() for n in others) for t in table])
        best = int(np.where(worst >= max(-0.02, worst.max()), mean, -np.inf).argmax())
        chosen.append(settings[best])
        left_out |= {name: table[best][name] for name in group}
    for kind in KINDS:
        found = np.concatenate([change(one, (kind,)) for one in left_out.values()])
        pair = [change(one, (kind,)).mean() for one in left_out.values() if one[kind]]
        print(f"{kind}: {100 * np.mean(pair):+.2f} points, worst {100 * found.min():+.1f}")
    print("chosen:", chosen)


def data_groups(names: list[str]) -> list[list[str]]:
    """Pairs that share a data set, directly or through others, together."""
    groups: list[set[str]] = []
    for name in names:
        sets = {one.replace("_1000g", "").replace("_980g", "") for one in name.split("__")}
        touching = [group for group in groups if group & sets]
        groups = [group for group in groups if group not in touching] + [set.union(sets, *touching)]

    def inside(name: str, group: set[str]) -> bool:
        return name.split("__")[0].replace("_1000g", "").replace("_980g", "") in group

    return [[name for name in names if inside(name, group)] for group in groups]


def promise_table(pairs: dict[str, Pair], target: float = 0.05) -> None:
    """Errors among the labels given, with the margin as confidence."""
    for kind in ("held-out samples alone", "and simulated platforms", "and between classes"):
        errors, given = [], []
        for pair in pairs.values():
            y, z = pair["y"], pair["held"]
            right = best_class(flat(z)) == y
            moved = pair["moved"][[STRENGTHS.index(0.5), STRENGTHS.index(1.0)]]
            moved = moved.reshape(-1, *z.shape)
            outcomes = Outcomes(
                np.concatenate([_squeeze(margins(one)) for one in moved]),
                np.concatenate([best_class(flat(one)) == y for one in moved]),
                np.repeat(np.arange(len(moved)), len(y)),
                np.tile(y, len(moved)),
            )
            known = experience(pair)
            more = {} if kind.startswith("held") else {"elsewhere": outcomes}
            more |= {"between": known.between} if kind.endswith("classes") else {}
            kept = _squeeze(margins(pair["query"]))
            try:
                rejection = fit_rejection(_squeeze(margins(z)), right, target, truth=y, **more)
                kept = kept >= rejection.threshold
            except ValueError:  # nothing can be promised, so no label is given
                kept = np.zeros(len(kept), dtype=bool)
            wrong = best_class(flat(pair["query"])) != pair["q"]
            errors.append(wrong[kept].mean() if kept.any() else 0.0)
            given.append(kept.mean())
        good = np.sum(np.array(errors) <= 0.1)
        print(
            f"{kind}: error at most 10 % on {good} of {len(errors)} pairs, mean "
            f"{100 * np.mean(errors):.1f} %, worst {100 * np.max(errors):.1f} %; "
            f"{100 * np.mean(given):.0f} % of the labels given"
        )


def _squeeze(margin: np.ndarray) -> np.ndarray:
    """Margins as confidences: between 0 and 1, in the same order."""
    return margin / (1.0 + margin)


def unknown_table(folder: Path) -> None:
    """How many samples of a class that the model does not know are found, and at what price."""
    print("| rate | of the unknown class | of the known classes, mean (most) |\n|---|--:|--:|")
    for rate in (0.01, 0.02, 0.05, 0.1):
        found, lost = [], []
        for one in saved(folder).values():
            X, y = one["X"], one["y"]

            class Model:  # what `gather_experience` looks at
                classes_ = np.arange(len(one["classes"]))
                genes_ = np.ones(X.shape[1], dtype=bool)

            known = gather_experience(Model, X, y, flat(one["held"]), np.arange(len(y)))
            genes = np.arange(X.shape[1])
            values = known.familiarity(flat(one["query"]), panel_ranks(one["Q"]), genes)
            low = known.unfamiliar(values, best_class(flat(one["query"])), rate)
            found.append(low[one["unknown"]].mean())
            lost.append(low[~one["unknown"]].mean())
        print(f"| {rate:.0%} | {np.mean(found):.0%} | {np.mean(lost):.1%} ({np.max(lost):.0%}) |")
    print(f"\n{len(found)} models")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=["adapt", "promise", "unknown"])
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--trained", type=Path, help="a folder of trained models")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of each training")
    options = parser.parse_args()
    if options.trained is not None:
        of_trained = {"adapt": trained_adaptation, "promise": trained_promises}
        if not {*options.tables} <= {*of_trained}:
            parser.error("--trained is for the tables adapt and promise alone: name one of them")
        for table in options.tables:
            of_trained[table](options.trained, options.budget)
        return
    pairs = saved(options.cache)
    if not pairs:
        print("nothing saved: run benchmarks/adapt_pairs.py first")
        return
    for table in options.tables:
        print(f"\n## {table}\n")
        if table == "unknown":
            unknown_table(options.cache / "unknown")
        else:
            {"adapt": adapt_table, "choose": choose_table, "promise": promise_table}[table](pairs)


if __name__ == "__main__":
    main()
