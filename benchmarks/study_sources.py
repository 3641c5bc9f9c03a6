"""Several sources in one training: how much a source counts that has few samples of a
class.

    python benchmarks/study_sources.py

The recipes of models.toml that are trained on several data sets (not pooled) are
trained with sources of n samples of a class counting n / (n + added), for several values of
``added`` ("all": as many as they have samples). ``left_out`` is the accuracy on each
set of a model of the others, ``joint`` that of the model of all sets, which has seen
the set: where it is low, the source was learned in place of the class. Writes
sources.csv.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from make_models import (
    is_pooled,
    judged_set,
    make,
    read_recipes,
    read_set,
    restricted,
)
from studies import Rows, collect, options

from optirank.model.card import JudgedSet
from optirank.verbs import preparation

ADDED = {"0": 0, "10": 10, "100": 100, "all": 1e12}


def main() -> None:
    args = options(__doc__)
    recipes = {
        name: recipe
        for name, recipe in read_recipes().items()
        if len(recipe["train"]) > 1
        and not is_pooled(recipe)
        and all((args.data / f"{part}.h5ad").is_file() for part in recipe["train"])
    }
    added = {"10": 10, "all": 1e12} if args.quick else ADDED
    study = partial(rows_of_recipe, data=args.data, added=added)
    parts = (delayed(study)(name, recipe) for name, recipe in recipes.items())
    collect(
        Parallel(n_jobs=args.jobs, return_as="generator")(parts), args, len(recipes)
    )


def rows_of_recipe(
    name: str, recipe: dict, data: Path, added: dict[str, float]
) -> Rows:
    """Left-out and joint accuracy on each set of a recipe."""
    rows = []
    alone = recipe | {"judge": []}
    for text, value in added.items():
        preparation._FULL_SOURCE = value
        model = make(name, alone, data).model
        classes = [str(label) for label in model.classes]
        for judged in model.card.judged:
            part = restricted(read_set(data, judged.name, recipe), classes)
            row = {"model": name, "set": judged.name, "added": text}
            joint = accuracy(judged_set(model, part))
            rows.append(row | {"left_out": accuracy(judged), "joint": joint})
    return {"sources": rows}


def accuracy(judged: JudgedSet) -> float:
    """Balanced accuracy on a set."""
    return float(np.mean([counts.sensitivity for counts in judged.classes.values()]))


if __name__ == "__main__":
    main()
