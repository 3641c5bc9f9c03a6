"""The tables of a design: conditions, classes, pairs that are confused, genes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from optirank._util.matrices import as_dense
from optirank._util.metrics import balanced
from optirank.io.homologs import are_ensembl_ids, ensembl_id, ensembl_ids_of, symbols_of
from optirank.panel.drills import confused_pairs
from optirank.panel.gene_roles import loss_changes, margin_losses, replacements
from optirank.panel.samples import class_sums, places_in_sample, some_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank.model import Model
    from optirank.panel.drills import Drill, HeldOutSamples
    from optirank.verbs.preparation import Prepared
    from optirank.verbs.train import TrainingResult

_PER_CLASS = 50  # samples that tell what single genes do
_N_BACKUPS = 1000  # candidates for backups: those that correlate most with a class
_LEANS_ON = 3  # genes that are named for each class
PLATFORM_WORDS = {1.0: "sequencing", 2.0: "imaging"}  # by their strength


def condition_words(kind: str, amount: float) -> str:
    """A condition in words."""
    if kind == "as it is":
        return "held-out samples"
    if kind == "failing":
        return f"{100 * amount:.0f} % of the genes fail"
    if kind == "needed":
        genes = "gene" if amount == 1 else f"{amount:.0f} genes"
        return f"a class loses the {genes} it needs most"
    if kind == "platform":
        return f"simulated {PLATFORM_WORDS.get(amount, amount)} platforms"
    return f"counts thinned to 1/{round(1 / amount)}"


def condition_table(drills: Sequence[Drill], classes: NDArray) -> pd.DataFrame:
    """Balanced accuracy with its 95 % interval under every condition.

    ``lowest`` is the sensitivity of the class that does worst, over all draws.
    """
    lines = []
    for drill in drills:
        sizes = drill.counts.sum(axis=1)
        accuracy, (low, high) = balanced(drill.counts.diagonal(), sizes)
        weakest = drill.lowest if np.isfinite(drill.lowest).any() else np.zeros(1)
        lines.append(
            {
                "kind": drill.kind,
                "amount": drill.amount,
                "condition": condition_words(drill.kind, drill.amount),
                "balanced_accuracy": accuracy,
                "low": low,
                "high": high,
                "lowest": np.nanmin(weakest),
                "lowest_class": str(classes[np.nanargmin(weakest)]),
            }
        )
    return pd.DataFrame(lines)


def class_table(
    training: TrainingResult,
    drills: Sequence[Drill],
    genes: pd.DataFrame,
    X: Any,
    codes: NDArray,
) -> pd.DataFrame:
    """What there is to say of each class; a column per condition has its
    sensitivity.

    A class depends on the genes whose loss lowers the margin of its samples most.
    """
    model = training.model
    judged = training.performance.per_class
    names = [str(name) for name in model.classes]
    rows = some_rows(codes, _PER_CLASS)
    values = as_dense(X[:, model.panel.columns][rows])
    costs = margin_losses(values, model.panel.coef, codes[rows])
    depends_on = []
    for code in range(len(names)):
        of_class = costs[codes[rows] == code].mean(axis=0)
        order = np.argsort(-of_class, kind="stable")[:_LEANS_ON]
        genes_needed = [str(model.genes[g]) for g in order if of_class[g] > 0]
        depends_on.append(", ".join(genes_needed))
    speaks_for = genes["speaks_for"].tolist()
    table = pd.DataFrame(
        {
            "n": judged["n"],
            "sensitivity": judged["sensitivity"],
            "low": judged["sensitivity_low"],
            "high": judged["sensitivity_high"],
            "n_genes": [speaks_for.count(name) for name in names],
            "depends_on": depends_on,
        }
    )
    for drill in drills[1:]:
        sizes = drill.counts.sum(axis=1)
        shares = drill.counts.diagonal() / np.where(sizes > 0, sizes, np.nan)
        table[condition_words(drill.kind, drill.amount)] = shares
    return table


def confusion_table(drills: Sequence[Drill], classes: NDArray) -> pd.DataFrame:
    """Pairs of classes that are confused, as it is and on the strongest platforms.

    Columns: ``class``, ``labelled``, ``share`` of the first that is labelled as the
    second, ``back`` of the second as the first, and the same for ``platform`` and
    ``platform_back``.
    """
    plain = drills[0].counts
    strongest = max(
        (drill for drill in drills if drill.kind == "platform"),
        key=lambda drill: drill.amount,
    ).counts
    shares = strongest / np.maximum(strongest.sum(axis=1, keepdims=True), 1.0)
    lines = [
        {
            "class": str(classes[first]),
            "labelled": str(classes[second]),
            "share": there,
            "back": back,
            "platform": float(shares[first, second]),
            "platform_back": float(shares[second, first]),
        }
        for first, second, there, back in confused_pairs(plain)
    ]
    columns = ["class", "labelled", "share", "back", "platform", "platform_back"]
    return pd.DataFrame(lines, columns=pd.Index(columns))


def gene_table(
    model: Model,
    prepared: Prepared,
    listed: NDArray,
    means: NDArray,
    shares: NDArray,
    other_names: Mapping[str, Sequence[str]],
) -> pd.DataFrame:
    """One line per gene of the panel, in the order of the path.

    ``listed`` are positions of genes that came from a list; ``means`` and ``shares``
    say how the genes are expressed in each class.
    """
    panel = model.panel
    of_classes = np.concatenate([-panel.coef, panel.coef])
    if len(panel.coef) > 1:
        of_classes = panel.coef
    speaks = of_classes.argmax(axis=0)
    ids = _ensembl_ids(panel.genes, panel.columns, other_names)
    backup, likeness = _backups(model, prepared)
    sizes = [
        np.where(np.isin(panel.columns, smaller.columns), size, model.n_genes)
        for size, smaller in model.panels.items()
    ]
    is_listed = np.isin(panel.columns, listed)
    origin = np.where(np.isin(panel.columns, prepared.include), "required", "chosen")
    table = pd.DataFrame(
        {
            "gene": panel.genes,
            "symbol": symbols_of(str(gene) for gene in panel.genes),
            "ensembl_id": ids,
            "speaks_for": [str(model.classes[code]) for code in speaks],
            "weight": of_classes[speaks, np.arange(len(speaks))],
            "rank": 0,
            "path": np.min(sizes, axis=0),
            "origin": np.where(is_listed, "listed", origin),
            "backup": backup,
            "backup_correlation": likeness,
            "highest_mean": means[:, panel.columns].max(axis=0),
        }
    )
    if model.tree is not None:
        labels, contrasts = model.tree.contrasts(model.classes)
        told = (contrasts @ of_classes).argmax(axis=0)
        table["tells"] = [labels[place] for place in told]
        table["below"] = [model.tree.parents[name] for name in table["tells"]]
    for word, values in (("mean", means), ("share", shares)):
        for code, name in enumerate(model.classes):
            table[f"{word}_{name}"] = values[code, panel.columns]
    table = table.sort_values(
        ["path", "weight"], ascending=[True, False], kind="stable", ignore_index=True
    )
    table["rank"] = np.arange(1, len(table) + 1)
    return table


def _ensembl_ids(
    genes: NDArray, columns: NDArray, other_names: Mapping[str, Sequence[str]]
) -> list[str]:
    """Ensembl ids: the names themselves, a column of the reference, or the
    shipped table.
    """
    names = [str(gene) for gene in genes]
    of_reference = [
        [others[column] for column in columns] for others in other_names.values()
    ]
    candidates = [names, *of_reference, ensembl_ids_of(names)]
    for words in candidates:
        if are_ensembl_ids(words):
            return [ensembl_id(word) or "" for word in words]
    return [ensembl_id(word) or "" for word in candidates[-1]]


def id_notes(
    genes: pd.DataFrame, other_names: Mapping[str, Sequence[str]]
) -> list[str]:
    """Say of which species Ensembl ids are that were looked up by symbol."""
    of_reference = [genes["gene"].astype(str), *other_names.values()]
    ids = genes.loc[genes["ensembl_id"] != "", "ensembl_id"]
    if ids.empty or any(are_ensembl_ids(names) for names in of_reference):
        return []
    is_mouse = ids.str.startswith("ENSMUSG")
    species = "mouse" if is_mouse.mean() > 0.5 else "human"
    return [
        f"Ensembl ids are looked up by symbol, mostly those of {species} genes: do not "
        "use them for samples of another species"
    ]


def _backups(model: Model, prepared: Prepared) -> tuple[list[str], NDArray]:
    """Names of the genes outside the panel that replace each best, and their
    correlations.
    """
    codes = prepared.codes[prepared.kept]
    rows = some_rows(codes, _PER_CLASS)
    samples = prepared.X[rows]
    allowed = np.asarray(prepared.allowed)
    outside = np.setdiff1d(allowed, model.panel.columns)
    sums = class_sums(places_in_sample(samples), codes[rows], len(model.classes))
    candidates = sums.best_genes(_N_BACKUPS, among=outside)
    if not len(candidates):
        return [""] * model.n_genes, np.full(model.n_genes, np.nan)
    best, likeness = replacements(
        as_dense(samples[:, model.panel.columns]),
        as_dense(samples[:, candidates]),
        model.panel.coef,
        codes[rows],
    )
    return [str(gene) for gene in prepared.genes[candidates[best]]], likeness


def idle_genes(held_out: HeldOutSamples, genes: NDArray) -> pd.DataFrame:
    """Genes of a list without which held-out samples are labelled no less surely.

    Every fold has the same genes. A gene is idle if the mean loss of held-out samples,
    over the folds, does not rise without it. The accuracy is that without all of them.
    """
    changes = np.mean(
        [
            loss_changes(values, panel.coef, codes)
            for values, panel, codes in held_out.of_folds(_PER_CLASS)
        ],
        axis=0,
    )
    idle = np.flatnonzero(changes <= 0)
    panel = next(iter(held_out.panels.values()))
    counts = held_out.counts(lost=dict.fromkeys(held_out.panels, idle))
    return genes_together(genes[panel.genes[idle]], counts)


def genes_together(genes: NDArray, counts: NDArray) -> pd.DataFrame:
    """Genes, with the balanced accuracy that counts of true and given labels give."""
    accuracy, (low, high) = balanced(counts.diagonal(), counts.sum(axis=1))
    return pd.DataFrame(
        {
            "gene": [str(gene) for gene in genes],
            "balanced_accuracy": accuracy,
            "low": low,
            "high": high,
        }
    )
