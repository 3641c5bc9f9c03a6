"""Simple rivals of a shipped model on the sets that judge it.

nearest class mean   the class whose mean has the highest rank correlation with the
                     sample: on as many genes as the model has, those of largest t
                     statistic (as in the curve of the pairs), and on all genes that
                     the training sets and the judging set have
one gene per class   the gene that alone tells the class best in the training sets; its
                     AUC within the judging set (a threshold would not fit another
                     platform)

AUCs are of one class against the rest, by how far its score is above the best of the
others, mean over the classes of the set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from anndata import AnnData
from scipy import sparse
from scipy.stats import rankdata

from optirank._util.numbers import balanced_accuracy, value_scale
from optirank.panel.samples import class_sums
from optirank.ranks.orders import places_in_sample
from optirank.ranks.scoring import by_class
from optirank_lab.baselines.nearest_mean import SpearmanCentroid
from optirank_lab.benchmark import designs
from optirank_lab.benchmark.sets import Set, log_values
from optirank_lab.data.profiles import origin_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


LABEL = "cell_type"
MODEL = "model"
AS_MANY_GENES = "nearest class mean, as many genes"
ALL_GENES = "nearest class mean, all genes"
ONE_GENE = "one gene per class"
_GENES = 300  # that may be the best one of a class


@dataclass(frozen=True)
class JudgedScores:
    """Scores of a set by a model that had not seen it."""

    data: AnnData
    rows: NDArray  # positions of the samples that are judged
    classes: NDArray
    scores: NDArray  # (rows, 1 or classes)
    predicted: NDArray
    left_out: bool  # the set is one of the training sets
    n_genes: int  # of the model

    @property
    def truth(self) -> NDArray:
        """The classes of the samples."""
        return self.data.obs[LABEL].to_numpy()[self.rows].astype(str)


def rivals_of_set(judged: JudgedScores, parts: Sequence[AnnData]) -> pd.DataFrame:
    """Accuracy and AUC of the model and its rivals on one set."""
    training = [part for part in parts if origin_of(part) != origin_of(judged.data)]
    genes = common_genes([*training, judged.data])
    matrices = [labelled_matrix(part, genes) for part in training]
    X = sparse.vstack([matrix for matrix, _ in matrices]).tocsr()
    y = np.concatenate([labels for _, labels in matrices])
    new = columns_of(judged.data, genes)[judged.rows]
    truth = judged.truth
    scores = (
        by_class(judged.scores[:, 0]) if judged.scores.shape[1] == 1 else judged.scores
    )
    single, names = one_gene_auc(matrices, X, y, new, truth, genes)
    rows = [
        (
            MODEL,
            "",
            balanced_accuracy(truth, judged.predicted),
            mean_auc(scores, judged.classes.astype(str), truth),
        )
    ]
    best = genes_of_best_t(matrices)[: judged.n_genes]
    for method, columns in ((AS_MANY_GENES, best), (ALL_GENES, slice(None))):
        nearest = SpearmanCentroid().fit(X[:, columns], y)
        cut = new[:, columns]
        auc = mean_auc(nearest.correlations(cut), nearest.classes_, truth)
        rows.append((method, "", balanced_accuracy(truth, nearest.predict(cut)), auc))
    rows.append((ONE_GENE, names, np.nan, single))
    table = pd.DataFrame(rows, columns=["method", "genes", "balanced_accuracy", "auc"])
    table.insert(0, "set", origin_of(judged.data))
    table.insert(1, "in_training", "yes" if judged.left_out else "no")
    return table


def genes_of_best_t(matrices: list[tuple[sparse.csr_matrix, NDArray]]) -> NDArray:
    """Positions of all genes, those of largest t statistic in the training sets first.

    Each set orders the genes by log values, and a gene counts by its mean place.
    """
    places = []
    for X, y in matrices:
        values = log_values(X, value_scale(X))
        genes = np.arange(X.shape[1])
        order = designs.genes_of_best_t(Set("", X, values, y, genes), len(genes))
        places.append(np.argsort(order))
    return np.argsort(np.mean(places, axis=0), kind="stable")


def baselines_of(rivals: pd.DataFrame) -> dict[str, float]:
    """Means over the sets, by what the card says of them."""
    accuracy = rivals.groupby("method")["balanced_accuracy"].mean()
    auc = rivals.groupby("method")["auc"].mean()
    return {
        AS_MANY_GENES: float(accuracy[AS_MANY_GENES]),
        ALL_GENES: float(accuracy[ALL_GENES]),
        "AUC of this model": float(auc[MODEL]),
        f"AUC of the {AS_MANY_GENES}": float(auc[AS_MANY_GENES]),
        f"AUC of the {ALL_GENES}": float(auc[ALL_GENES]),
        f"AUC of {ONE_GENE}": float(auc[ONE_GENE]),
    }


def common_genes(parts: Sequence[AnnData]) -> list[str]:
    """The genes that all sets have, in the order of the first."""
    shared = set.intersection(*(set(map(str, part.var_names)) for part in parts))
    return [gene for gene in map(str, parts[0].var_names) if gene in shared]


def columns_of(data: AnnData, genes: list[str]) -> sparse.csr_matrix:
    """The values of some genes."""
    place = pd.Index(map(str, data.var_names)).get_indexer(genes)
    return sparse.csr_matrix(sparse.csc_matrix(data.X)[:, place])


def labelled_matrix(
    data: AnnData, genes: list[str]
) -> tuple[sparse.csr_matrix, NDArray]:
    """Values and labels of the samples that have one."""
    labels = data.obs[LABEL]
    known = labels.notna().to_numpy()
    return columns_of(data, genes)[known], labels.to_numpy()[known].astype(str)


def one_gene_auc(
    matrices: list[tuple[sparse.csr_matrix, NDArray]],
    X: sparse.csr_matrix,
    y: NDArray,
    new: sparse.csr_matrix,
    truth: NDArray,
    genes: list[str],
) -> tuple[float, str]:
    """Mean AUC of the best gene of each class, chosen in training; and these genes."""
    classes, codes = np.unique(y, return_inverse=True)
    sums = class_sums(places_in_sample(X), codes, len(classes))
    columns = sums.best_genes(_GENES)
    of_training = []
    for values, labels in matrices:
        of_training.append(gene_aucs(values[:, columns].toarray(), labels, classes))
    mean = np.nanmean(of_training, axis=0)  # (classes, genes)
    of_query = gene_aucs(new[:, columns].toarray(), truth, classes)
    aucs = []
    names = []
    for code in np.flatnonzero(np.isin(classes, truth)):
        best = int(np.abs(mean[code] - 0.5).argmax())
        rising = mean[code, best] >= 0.5
        auc = of_query[code, best]
        aucs.append(auc if rising else 1.0 - auc)
        names.append(genes[columns[best]])
    return float(np.mean(aucs)), " ".join(dict.fromkeys(names))


def gene_aucs(values: NDArray, labels: NDArray, classes: NDArray) -> NDArray:
    """AUC (classes, genes) of each gene for each class against the rest; NaN
    without one.
    """
    ranks = rankdata(values, axis=0)
    aucs = np.full((len(classes), values.shape[1]), np.nan)
    for code, label in enumerate(classes):
        own = labels == label
        n_own = own.sum()
        n_others = len(own) - n_own
        if n_own and n_others:
            least = n_own * (n_own + 1) / 2
            aucs[code] = (ranks[own].sum(axis=0) - least) / (n_own * n_others)
    return aucs


def mean_auc(scores: NDArray, classes: NDArray, truth: NDArray) -> float:
    """Mean over the classes that are there of the AUC of their margins."""
    margins = margins_of(np.nan_to_num(scores, neginf=-1e9))
    aucs = gene_aucs(margins, truth, classes)
    given = np.flatnonzero(np.isin(classes, truth))
    return float(np.mean([aucs[code, code] for code in given]))


def margins_of(scores: NDArray) -> NDArray:
    """How far each score is above the best of the others."""
    margins = np.empty(scores.shape)
    for code in range(scores.shape[1]):
        others = np.delete(scores, code, axis=1)
        margins[:, code] = scores[:, code] - others.max(axis=1)
    return margins
