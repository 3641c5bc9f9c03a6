"""Samples that are of no class of the model: how many are withheld, and at what price.

    python benchmarks/study_unknown.py [--data DIR] [--out DIR] [--jobs N] [--quick]

For every ordered pair of sets of more than two classes, each class is left out of the
training in turn (at most 100 training samples of each class, 100 genes) and kept in the
query. Written to unknown.csv: the AUC of the out-of-distribution score (correlation
with the mean profile of the label) and of the largest probability; and with `predict
--unknown-rate 0.01` the share of labels that are withheld:

known_lost          of known samples, in the whole query
unknown_found       of the class left out, in the whole query
known_lost_singly   of known samples, each given alone
found_singly        of the class left out, each given alone
found_alone         of the class left out, as a query of its own
shuffled_found      of known samples whose genes are shuffled, as a query of their own

and whether such a query gets the alarm that its samples do not look like the training
data. A set of another tissue is a query of its own in wrong_tissue.csv.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from optirank.io.reading import read_expression
from scipy import sparse
from sklearn.metrics import roc_auc_score
from studies import Rows, labelled, options, over_pairs, trained

from optirank.ranks.scoring import best_class
from optirank.verbs.checks import is_alarm
from optirank.verbs.labelling import PredictOptions, label_profiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optirank import Model
    from optirank.model import Predictor
    from optirank_lab.benchmark.sets import Set
    from optirank_lab.benchmark.tasks import BenchmarkTask

PER_CLASS = 100
RATE = 0.01
MOST_SINGLE = 100  # samples that are given one by one
WRONG_TISSUES = {  # of the same species, with many of the genes
    "pancreas": "kang_pbmc_ctrl",
    "human blood cells": "baron_h1",
    "mouse immune cells": "tasic_interneurons",
    "mouse interneurons": "tm_10x_immune",
    "breast": "golub_leukemia",
    "leukaemia": "chowdary_breast_colon",
    "colon": "ovtn_gse38666",
    "ovary": "colontn_gse4183",
}


class Scored(NamedTuple):
    """Samples with their labels and likeness to the training data."""

    likeness: NDArray
    labels: NDArray


def main() -> None:
    args = options(__doc__)
    tables = over_pairs(partial(study, data=args.data), args)
    for name, table in tables.items():
        numbers = table.select_dtypes("number")
        print(
            f"{name}: {len(table)} rows, mean:\n{numbers.mean().round(3).to_string()}"
        )


def study(pair: BenchmarkTask, reference: Set, query: Set, data: Path) -> Rows:
    """The rows of one pair."""
    classes = np.unique(reference.labels)
    rows = []
    for left_out in classes if len(classes) > 2 else ():
        rest = reference.take(reference.labels != left_out)
        model = trained(rest, per_class=PER_CLASS)
        rows.append({"left_out": left_out} | class_row(model, query, left_out))
    wrong = data / f"{WRONG_TISSUES.get(pair.tissue, '')}.h5ad"
    tables = {"unknown": rows} if rows else {}
    if wrong.is_file():
        model = trained(reference, per_class=PER_CLASS)
        tables["wrong_tissue"] = [wrong_tissue_row(model, query, wrong)]
    return tables


def class_row(model: Model, query: Set, left_out: str) -> dict:
    """What happens to samples of a class that the model does not know."""
    predictor = model.bind([str(gene) for gene in query.genes])
    X = sparse.csr_matrix(query.raw)
    scores = predictor.scores(X)
    confidence = predictor.panel.probabilities(scores).max(axis=1)
    whole = scored(predictor, X)
    unknown = np.asarray(query.labels) == left_out
    known = ~unknown
    marked = withheld(predictor, whole)
    shuffled = scored(predictor, shuffled_genes(X[known]))
    alone = Scored(whole.likeness[unknown], whole.labels[unknown])
    singly = withheld_singly(predictor, whole)
    return {
        "n_unknown": int(unknown.sum()),
        "n_known": int(known.sum()),
        "auc_correlation": roc_auc_score(unknown, -whole.likeness),
        "auc_probability": roc_auc_score(unknown, -confidence),
        "known_lost": marked[known].mean(),
        "unknown_found": marked[unknown].mean(),
        "known_lost_singly": np.nanmean(singly[known]),
        "found_singly": np.nanmean(singly[unknown]),
        "found_alone": withheld(predictor, alone).mean(),
        "shuffled_found": withheld(predictor, shuffled).mean(),
        "alarm_query": alarm(predictor, whole),
        "alarm_alone": alarm(predictor, alone),
        "alarm_shuffled": alarm(predictor, shuffled),
    }


def wrong_tissue_row(model: Model, query: Set, path: Path) -> dict:
    """What happens to samples of another tissue, beside those of the query."""
    other = read_expression(path)
    row = {"other": path.stem, "n_query": len(query.labels), "n_other": other.n_obs}
    try:
        given = label_profiles(other, model, PredictOptions(unknown_rate=RATE))
    except ValueError as error:
        return row | {"refused": " ".join(str(error).split())[:80]}
    own = labelled(model, query, unknown_rate=RATE)
    return row | {
        "refused": "",
        "genes_missing": len(given.missing) / model.n_genes,
        "known_lost": own.withheld.mean(),
        "found": given.withheld.mean(),
        "alarm": bool(given.warnings),
        "alarm_query": bool(own.warnings),
    }


def scored(predictor: Predictor, X: sparse.csr_matrix) -> Scored:
    """Labels of samples, and how much they look like them."""
    labels = best_class(predictor.scores(X))
    return Scored(predictor.likeness(X, labels), labels)


def withheld(predictor: Predictor, samples: Scored) -> NDArray:
    """Which labels are withheld where these samples are the query."""
    return predictor.likeness_score.unknown(*samples, RATE)


def withheld_singly(predictor: Predictor, samples: Scored) -> NDArray:
    """Whether a label is withheld where the sample is a query of its own; some
    of them.
    """
    n_samples = len(samples.labels)
    chosen = np.random.default_rng(0).permutation(n_samples)
    marked = np.full(n_samples, np.nan)
    for row in chosen[: max(MOST_SINGLE, n_samples // 2)]:
        single = Scored(samples.likeness[[row]], samples.labels[[row]])
        marked[row] = withheld(predictor, single)[0]
    return marked


def alarm(predictor: Predictor, samples: Scored) -> bool:
    """Whether the samples are so unlike the training data that this is an alarm where
    no other genes check their labels.
    """
    return is_alarm(None, predictor.likeness_score.relative(*samples))


def shuffled_genes(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """The same samples, with the columns in a random order."""
    return X[:, np.random.default_rng(0).permutation(X.shape[1])].tocsr()


if __name__ == "__main__":
    main()
