"""Why a model gave a sample of a file its label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from optirank._util.names import some
from optirank.io.data import gene_names
from optirank.io.passes import blocks
from optirank.model.explanation import deciding_pairs, explain
from optirank.ranks.scoring import by_class

if TYPE_CHECKING:
    from anndata import AnnData
    from numpy.typing import NDArray

    from optirank.model import Predictor


class Explanation(NamedTuple):
    """Why a sample got its label.

    Attributes
    ----------
    sample, label, confidence : the sample, its label, and how probable that is.
    withheld_because : why the label is withheld; "" where it is given.
    scores : class, score and probability, the most probable first.
    table : what each gene contributes to each class, see `optirank.Model.explain`.
    pairs : of each class, the pairs of genes whose votes count most; empty for the
        paper's classifiers.
    """

    sample: str
    label: Any
    withheld_because: str
    confidence: float
    scores: pd.DataFrame
    table: pd.DataFrame
    pairs: dict[str, pd.DataFrame]

    def __repr__(self) -> str:
        withheld = f", withheld ({self.withheld_because})" * bool(self.withheld_because)
        return (
            f"Explanation of {self.sample}: {self.label}, confidence "
            f"{self.confidence:.3f}{withheld}; scores, table and pairs say why"
        )

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


def explain_row(
    adata: AnnData,
    predictor: Predictor,
    row: int,
    probabilities: NDArray[np.float64],
    withheld_because: str = "",
) -> Explanation:
    """Why a sample, by its position in data that the predictor is bound to.

    ``probabilities`` are those of its classes: learning from the query may have changed
    them, and its label is the most probable class.
    """
    used = gene_names(adata)[predictor.columns]
    sample = next(blocks(adata, used, 1, np.array([row])))
    scores = predictor.narrowed().scores(sample)
    model = predictor.model
    used = [str(gene) for gene in used]
    ranking = pd.DataFrame(
        {
            "class": model.classes,
            "score": by_class(scores)[0],
            "probability": probabilities,
        }
    ).sort_values("probability", ascending=False, kind="stable", ignore_index=True)
    pairs = {}
    for label in model.classes if model.votes else ():
        pairs[str(label)] = deciding_pairs(model, sample, label, used)
    chosen = int(probabilities.argmax())
    return Explanation(
        sample=str(adata.obs_names[row]),
        label=model.classes.tolist()[chosen],
        withheld_because=withheld_because,
        confidence=float(probabilities[chosen]),
        scores=ranking,
        table=explain(model, sample, used),
        pairs=pairs,
    )
