"""Why a model gave a sample of a file its label."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from optirank._util.names import some
from optirank.io.data import DataError
from optirank.io.homologs import in_names_of
from optirank.io.reading import open_expression
from optirank.model.explanation import deciding_pairs, explain
from optirank.model.file import as_model
from optirank.ranks.scoring import by_class
from optirank.workflow.options import PredictOptions
from optirank.workflow.predict import label_profiles


@dataclass(frozen=True)
class Explanation:
    """Why a sample got its label.

    Attributes
    ----------
    sample, label, confidence : the sample, its label, and how probable that is.
    withheld_because : why the label is withheld; "" where it is given.
    scores : class, score and probability, the most probable first.
    table : what each gene contributes to each class, see `optirank.model.explain`.
    pairs : of each class, the pairs of genes whose votes count most; empty for the
        paper's classifiers.
    notes : sentences about the genes.
    """

    sample: str
    label: Any
    withheld_because: str
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
            return asked, self.table[names == asked]
        turned = self.table.copy()  # two classes: the score of the other one, turned
        for column in ("weight", "contribution"):
            turned[column] = -turned[column]
        return asked, turned.assign(**{"class": asked})


def explain_sample(
    path: str | os.PathLike[str],
    model: Any,
    sample: str,
    options: PredictOptions | None = None,
    **reading: Any,
) -> Explanation:
    """Why a sample of a file got its label, under the options it was labelled with.

    ``reading`` are options of :func:`optirank.datasets.read_expression`; only the genes of
    the model's panel are read.
    """
    fitted = as_model(model)
    asked = options or PredictOptions()
    with open_expression(path, known_genes=fitted.path_genes, **reading) as opened:
        names = opened.sample_names.astype(str)
        where = np.flatnonzero(names == sample)
        if not len(where):
            raise DataError(
                f"{path} has no sample {sample!r}: there are {some(names, 5)}"
            )
        labels = label_profiles(opened, fitted, asked)
        translated = in_names_of(opened, fitted.path_genes, homologs=asked.homologs)
        genes = [str(name) for name in translated.gene_names]
        predictor = fitted.bind(genes, drop_classes=asked.drop_classes)
        row = next(translated.blocks(predictor.columns, 1, where[:1]))
    position = int(where[0])
    bound = predictor.model
    scores = predictor.narrowed().scores(row.X)
    used = [genes[column] for column in predictor.columns]
    ranking = pd.DataFrame(
        {
            "class": bound.classes,
            "score": by_class(scores)[0],
            "probability": labels.probabilities[position],
        }
    ).sort_values("probability", ascending=False, kind="stable", ignore_index=True)
    pairs = {}
    if bound.votes:
        pairs = {
            str(label): deciding_pairs(bound, row.X, label, used)
            for label in bound.classes
        }
    return Explanation(
        sample=sample,
        label=bound.classes[labels.chosen[position]],
        withheld_because=str(labels.reasons[position]),
        confidence=float(labels.confidence[position]),
        scores=ranking,
        table=explain(bound, row.X, used),
        pairs=pairs,
        notes=(*labels.alarms, *labels.notes),
    )
