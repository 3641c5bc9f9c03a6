"""Several sources in one training: how much a source counts that has few samples of a class.

    python benchmarks/study_sources.py

The recipes of models.toml that are trained on several data sets are trained with sources of n
samples of a class counting n / (n + added), for several values of ``added`` ("all": as many as they
have samples). ``left_out`` is the accuracy on each set of a model of the others, ``joint`` that of
the model of all sets, which has seen the set: where it is low, the source was learned in place of
the class. Writes sources.csv.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from joblib import Parallel, delayed
from make_models import counted, make, read_recipes, read_set, sets_of
from studies import Rows, collect, options

from optirank.workflow import preparation

ADDED = {"0": 0, "5": 5, "10": 10, "20": 20, "50": 50, "100": 100, "all": 1e12}


def main() -> None:
    args = options(__doc__)
    recipes = {
        name: recipe
        for name, recipe in read_recipes().items()
        if len(recipe["train"]) > 1
        and all(
            (args.data / f"{one}.h5ad").is_file()
            for one in sets_of(recipe | {"judge": []})
        )
    }
    added = {"10": 10, "all": 1e12} if args.quick else ADDED
    study = partial(one_recipe, data=args.data, added=added)
    parts = (delayed(study)(name, recipe) for name, recipe in recipes.items())
    collect(
        Parallel(n_jobs=args.jobs, return_as="generator")(parts), args, len(recipes)
    )


def one_recipe(name: str, recipe: dict, data, added: dict[str, float]) -> Rows:
    """Left-out and joint accuracy on each set of a recipe."""
    rows = []
    for text, value in added.items():
        preparation._FULL_SOURCE = value
        model = make(name, recipe | {"judge": []}, data)
        for one in model.training_summary_["sources"]:
            joint = counted(read_set(data, one["name"], recipe), model)
            left_out, joint = (
                np.mean([right / n for right, n in found.values()])
                for found in (one["classes"], joint)
            )
            row = {"model": name, "set": one["name"], "added": text}
            rows.append(row | {"left_out": left_out, "joint": joint})
    return {"sources": rows}


if __name__ == "__main__":
    main()
