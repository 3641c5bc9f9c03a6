"""The models that come with optirank: train each as models.toml says, judge it, write its file.

    python benchmarks/make_models.py [--data FOLDER] [--out src/optirank/models] [NAME ...]

FOLDER has the sets that ``optirank datasets fetch stand-ins`` writes there. The same sets and
libraries give the same bytes. Each model is judged on whole data sets that had no part in its
training: a set it is trained on is labelled by a model of the others. A candidate below 85 % on one
of them is not written, and a file of that name is removed. All counts go to results/models.csv.
"""

from __future__ import annotations

import argparse
import copy
import re
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from studies import header

import optirank
from optirank.io.data import DataError, ExpressionData
from optirank.io.joined import FILE_COLUMN, JoinedProfiles
from optirank.io.reading import read_expression
from optirank.panel.elimination import Panel
from optirank.workflow.evaluate import evaluate_profiles
from optirank.workflow.explain import judged
from optirank.workflow.predict import PredictOptions, label_profiles
from optirank.workflow.train import TrainingOptions, train
from optirank_lab.data.registry import data_folder, find_entry

HERE = Path(__file__).parent
ROOT = HERE.parent
LABEL = "cell_type"
ENOUGH = 0.85  # balanced accuracy on each other data set
UNKNOWN_RATE = 0.05  # of held-out samples, at which unknown types are counted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="models to make; default: all")
    parser.add_argument(
        "--data", type=Path, default=data_folder(), help="folder of .h5ad files"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "src/optirank/models")
    parser.add_argument(
        "--results", type=Path, help="default: results/models.csv where all are made"
    )
    options = parser.parse_args()
    recipes = read_recipes()
    if unknown := sorted(set(options.names) - set(recipes)):
        parser.error(
            f"no model is called {unknown[0]!r}: there are {', '.join(recipes)}"
        )
    names = options.names or list(recipes)
    options.out.mkdir(parents=True, exist_ok=True)
    tables, left_out = [], []
    for name in names:
        wanted = sets_of(recipes[name])
        missing = [
            one for one in wanted if not (options.data / f"{one}.h5ad").is_file()
        ]
        if missing:  # its file stays as it is
            left_out.append(name)
            print(f"{name:22} not made: {options.data} lacks {', '.join(missing)}")
            continue
        model = make(name, recipes[name], options.data)
        mean, lowest, n_sets = judged(model.training_summary_)
        path, good = options.out / f"{name}.optirank", n_sets > 0 and lowest >= ENOUGH
        if good:
            optirank.save(model, path, overwrite=True)
        else:
            path.unlink(missing_ok=True)
        told = f"{path.stat().st_size / 1e3:.0f} kB" if good else "not shipped"
        print(
            f"{name:22} {len(model.classes_):2} classes {len(model.panel_):4} genes  "
            f"{n_sets} sets, mean {100 * mean:5.1f}, lowest {100 * lowest:5.1f}  {told}"
        )
        tables.append(counts(name, model, good))
    if left_out:
        sys.exit(
            f"fetch what is missing: optirank datasets fetch NAME --data {options.data}"
        )
    results = options.results or (
        None if options.names else ROOT / "results/models.csv"
    )
    if results is not None:
        results.write_text(
            header() + pd.concat(tables).to_csv(index=False), encoding="utf-8"
        )


def read_recipes() -> dict[str, dict]:
    """The recipes by name."""
    return tomllib.loads((HERE / "models.toml").read_text("utf-8"))


def sets_of(recipe: dict) -> list[str]:
    """All data sets that a recipe needs."""
    every = [
        *recipe["train"],
        *(one["set"] for one in judges(recipe)),
        *recipe.get("for", ()),
    ]
    return list(dict.fromkeys(every))


def judges(recipe: dict) -> list[dict]:
    """The sets that judge a model, each with the label of all its samples where it has one."""
    return [
        {"set": one} if isinstance(one, str) else one for one in recipe.get("judge", ())
    ]


def make(name: str, recipe: dict, data: Path) -> optirank.PanelClassifier:
    """Train and judge one model."""
    train_on = recipe["train"]
    parts = [read_set(data, one, recipe) for one in train_on]
    wanted = None
    if "for" in recipe:
        wanted = set.intersection(
            *(set(read_set(data, one).gene_names) for one in recipe["for"])
        )
    result = train(
        JoinedProfiles(parts) if len(parts) > 1 else parts[0],
        TrainingOptions(
            label=LABEL,
            batch=FILE_COLUMN if len(parts) > 1 else None,
            n_genes=recipe.get("genes", "auto"),
            available=None if wanted is None else sorted(wanted),
            name=name,
            description=recipe["description"],
        ),
    )
    model = narrowed(result.model)
    summary = model.training_summary_
    left_out = {one["name"]: one["classes"] for one in summary["sources"]}
    sources = [
        {
            "name": one,
            "about": about(one),
            "trained": True,
            "classes": left_out.get(one, {}),
        }
        for one in train_on
    ]
    for one in judges(recipe):
        found = read_set(data, one["set"], recipe, one.get("label"))
        classes = counted(found, model)
        lost = len(set(model.feature_names_in_) - set(found.gene_names))
        told = about(one["set"]) + (
            f"; lacks {lost} of {len(model.panel_)} genes" if lost else ""
        )
        sources.append(
            {"name": one["set"], "about": told, "trained": False, "classes": classes}
        )
        if told := unknown_types(model, found):
            summary.setdefault("unknown_types", told)
    summary |= {
        "sources": sources,
        "source": ", ".join(f"{one}.h5ad" for one in train_on),
        "batch": None if len(train_on) == 1 else "data set",
        "command": "make models",
        "tissue": recipe["tissue"],
        "species": recipe["species"],
        "versions": {
            "optirank": optirank.__version__
        },  # the numbers do not depend on the others
    }
    return model


def read_set(
    data: Path, name: str, recipe: dict | None = None, label: str | None = None
) -> ExpressionData:
    """A data set with the labels of a recipe; None where a sample's label is none of them."""
    found = read_expression(data / f"{name}.h5ad", label=LABEL)
    # Symbols that one package made unique by an Ensembl identifier
    genes = [re.sub(r"_ENSG\d+$", "", str(one)) for one in found.gene_names]
    labels = found.obs[LABEL].astype(str).to_numpy(dtype=object)
    if label is not None:
        labels[:] = label
    elif recipe is not None and "labels" in recipe:
        labels = np.array([recipe["labels"].get(one) for one in labels], dtype=object)
    obs = found.obs.assign(**{LABEL: labels})
    found = replace(
        found, gene_names=np.array(genes, dtype=object), obs=obs, source=name
    )
    return found.merge_duplicates("sum") if found.duplicated_genes else found


def counted(
    found: ExpressionData, model: optirank.PanelClassifier
) -> dict[str, list[int]]:
    """Right labels and samples of each class, whatever genes are missing."""
    done = evaluate_profiles(found, model, LABEL, PredictOptions(max_missing=1.0))
    table = done.performance.confusion
    return {
        name: [int(row[name]), int(row.sum())]
        for name, row in table.iterrows()
        if row.sum()
    }


def about(name: str) -> str:
    """Accession and platform of a set; nothing for a set that is not registered."""
    try:
        entry = find_entry(name)
    except DataError:
        return ""
    return f"{entry.accession}, {entry.technology}"


def unknown_types(model: optirank.PanelClassifier, found: ExpressionData) -> str:
    """How many samples of unknown types, and of known ones, lose their label."""
    known = found.obs[LABEL].isin(model.classes_).to_numpy()
    if known.all():
        return ""
    options = PredictOptions(max_missing=1.0, unknown_rate=UNKNOWN_RATE)
    withheld = label_profiles(found, model, options).withheld
    return (
        f"predict --unknown-rate {UNKNOWN_RATE:g} withholds {withheld[~known].sum()} of "
        f"{(~known).sum()} samples of other types in {found.source}, and {withheld[known].sum()} "
        f"of {known.sum()} of known ones"
    )


def narrowed(model: optirank.PanelClassifier) -> optirank.PanelClassifier:
    """The same model for data of the panel's genes alone: its file names no others."""
    panel = model.panel_
    small = copy.copy(model)
    small.n_features_in_ = len(panel)
    small.feature_names_in_ = np.asarray(model.feature_names_in_)[panel]

    def moved(novelty):
        return replace(novelty, genes=np.searchsorted(panel, novelty.genes))

    small.path_ = {
        size: Panel(
            np.searchsorted(panel, one.genes), one.coef, one.intercept, one.mean_ranks
        )
        for size, one in model.path_.items()
    }
    small.novelty_ = moved(model.novelty_)
    small.of_sizes_ = {
        size: one | {"novelty_": moved(one["novelty_"])}
        for size, one in model.of_sizes_.items()
    }
    small.training_summary_ = dict(model.training_summary_)
    return small._take(small.path_[max(small.path_)])


def counts(name: str, model: optirank.PanelClassifier, shipped: bool) -> pd.DataFrame:
    """One line per data set and class: right labels and samples."""
    rows = [
        {
            "model": name,
            "shipped": "yes" if shipped else "no",
            "set": one["name"],
            "in_training": "yes" if one["trained"] else "no",
            "class": label,
            "right": right,
            "n": n,
        }
        for one in model.training_summary_["sources"]
        for label, (right, n) in (one["classes"] or {"": (0, 0)}).items()
    ]
    return pd.DataFrame(rows)


if __name__ == "__main__":
    main()
