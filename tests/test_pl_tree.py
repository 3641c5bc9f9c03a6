"""The plot of a tree of labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import optirank.pl as pl
from example_model import trained_example
from optirank.data.profiles import DataError
from optirank.model import Tree

mpl = pytest.importorskip("matplotlib")


def test_the_tree_shows_samples_and_confidence_of_every_label():
    mpl.use("Agg")
    model = trained_example()[0]
    first, second, *others = map(str, model.classes)
    parents = {"both": "", first: "both", second: "both", **dict.fromkeys(others, "")}
    with_tree = replace(model, tree=Tree(parents))
    obs = pd.DataFrame(
        {"optirank": [first, "both", second, "unassigned"],
         "optirank_confidence": [0.9, 0.7, 0.8, 0.3]}
    )  # fmt: skip
    ax = pl.tree(obs, with_tree)
    names = [text.get_text().strip() for text in ax.get_yticklabels()]
    assert names == list(with_tree.tree.labels)
    texts = [text.get_text() for text in ax.texts]
    assert texts[0] == "3 (75.0 %), confidence 0.80"
    assert np.isclose(sum(bar.get_width() for bar in ax.patches[: len(names)]), 3)
    with pytest.raises(DataError, match="no tree of labels"):
        pl.tree(obs, model)
    mpl.pyplot.close("all")
