"""Why a model gave a sample of a file its label."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from optirank._util.names import some
from optirank.io.data import DataError
from optirank.io.genes import check_case
from optirank.io.homologs import Homologs, in_names_of
from optirank.io.reading import open_expression
from optirank.model.explanation import deciding_pairs, explain
from optirank.model.file import as_model
from optirank.ranks.scoring import best_class, by_class

if TYPE_CHECKING:
    from optirank.io.data import Profiles
    from optirank.model import Predictor


@dataclass(frozen=True)
class Explanation:
    """Why a sample got its label.

    Attributes
    ----------
    sample, label, confidence : the sample, its label, and how probable that is.
    scores : class, score and probability, the most probable first.
    table : what each gene contributes to each class, see `optirank.model.explain`.
    pairs : of each class, the pairs of genes whose votes count most; empty for the
        paper's classifiers.
    notes : sentences about the genes.
    """

    sample: str
    label: Any
    confidence: float
    scores: pd.DataFrame
    table: pd.DataFrame
    pairs: dict[str, pd.DataFrame]
    notes: tuple[str, ...]

    def of_class(self, label: str | None = None) -> tuple[str, pd.DataFrame]:
        """The class explained, and the contributions to its score.

        ``label`` None is the label given. A model of two classes has one score:
        contributions are turned so that a positive one speaks for the class explained.
        """
        asked = str(self.label if label is None else label)
        classes = [str(name) for name in self.scores["class"]]
        if asked not in classes:
            raise ValueError(
                f"the model has no class {asked!r}: its classes are {some(classes, 20)}"
            )
        names = self.table["class"].astype(str)
        if asked in set(names):
            return asked, self.table.loc[names == asked]
        turned = self.table.copy()  # two classes: the score of the other one, turned
        for column in ("weight", "contribution"):
            turned[column] = -turned[column]
        return asked, turned.assign(**{"class": asked})


def explain_sample(
    path: str | os.PathLike[str],
    model: Any,
    sample: str,
    *,
    homologs: Homologs = None,
    drop_classes: bool = False,
    **reading: Any,
) -> Explanation:
    """Why a sample of a file got its label.

    ``reading`` are options of :func:`optirank.datasets.read_expression`; only the genes of
    the model's panel are read, of that sample.
    """
    fitted = as_model(model)
    with open_expression(path, **reading) as opened:
        names = opened.sample_names.astype(str)
        where = np.flatnonzero(names == sample)
        if not len(where):
            raise DataError(
                f"{path} has no sample {sample!r}: there are {some(names, 5)}"
            )
        opened = in_names_of(opened, fitted.path_genes, homologs=homologs)
        genes = [str(name) for name in opened.gene_names]
        predictor = fitted.bind(
            genes, other_names=opened.other_gene_names, drop_classes=drop_classes
        )
        if homologs != "case":
            check_case(predictor.match)
        return explain_row(opened, predictor, int(where[0]))


def explain_row(profiles: Profiles, predictor: Predictor, row: int) -> Explanation:
    """Why a sample, by its position in profiles that the predictor is bound to."""
    sample = next(iter(profiles.blocks(predictor.columns, 1, np.array([row]))))
    scores = predictor.narrowed().scores(sample.X)
    probabilities = predictor.probabilities(scores)[0]
    model = predictor.model
    chosen = int(best_class(scores)[0])
    used = [str(profiles.gene_names[column]) for column in predictor.columns]
    ranking = pd.DataFrame(
        {
            "class": model.classes,
            "score": by_class(scores)[0],
            "probability": probabilities,
        }
    ).sort_values("probability", ascending=False, kind="stable", ignore_index=True)
    pairs = {}
    if model.votes:
        pairs = {
            str(label): deciding_pairs(model, sample.X, label, used)
            for label in model.classes
        }
    return Explanation(
        sample=str(profiles.sample_names[row]),
        label=model.classes[chosen],
        confidence=float(probabilities[chosen]),
        scores=ranking,
        table=explain(model, sample.X, used),
        pairs=pairs,
        notes=(*profiles.notes, *predictor.notes()),
    )
