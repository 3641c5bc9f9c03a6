"""The models that come with optirank: train each as models.toml says, judge it, write
its file.

    python benchmarks/make_models.py [--data FOLDER] [--out src/optirank/models] [NAME
    ...]

FOLDER has the sets that ``optirank-lab datasets fetch stand-ins`` writes there. The same
sets and libraries give the same bytes. Each model is judged on whole data sets that had
no part in its training: a set that it is trained on is labelled by a model of the
others. A class that no such set can judge by at least ten samples is left out of the
training. A candidate is shipped where every class has a sensitivity and a specificity
of at least 80 % on every set with ten samples of it (of other classes); a file of any
other candidate is removed. Where a recipe has a tree of labels, classes that two other
studies do not tell apart become their parent, and the model is trained again (see
`model_levels`); it is shipped where the rest is told apart. All counts go to results/models.csv, simple rivals on the
same sets to results/model_rivals.csv.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from anndata import AnnData
from model_levels import (
    ENOUGH,
    FEWEST,
    at_levels,
    judgements,
    leaf_counts,
    level_counts,
    level_problems,
    shipped_tree,
    study_of,
    with_levels,
)
from model_rivals import JudgedScores, baselines_of, rivals_of_set
from studies import header

import optirank
from optirank._util.files import write_text
from optirank.data.genes import join_profiles
from optirank.data.objects import profiles_of
from optirank.data.profiles import FILE_COLUMN, DataError, duplicates
from optirank.model import Tree
from optirank.model.card import Card, JudgedSet
from optirank.verbs.labelling import label_profiles
from optirank.verbs.samples import MIN_CLASS
from optirank.verbs.training import TrainingOptions, TrainingResult, class_counts, train
from optirank_lab.data.conversion import read_expression
from optirank_lab.data.profiles import changed, merged_genes, origin_of, take_genes
from optirank_lab.data.registry import data_folder, find_entry

if TYPE_CHECKING:
    from optirank import Model

HERE = Path(__file__).parent
ROOT = HERE.parent
RECIPES = HERE / "models.toml"
LABEL = "cell_type"
RESULTS = ("models", "model_rivals")


class Candidate(NamedTuple):
    """A model with what other data sets say of it and of its rivals."""

    model: Model
    rivals: pd.DataFrame
    problems: list[str]  # why it is not shipped


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="models to make; default: all")
    parser.add_argument(
        "--data", type=Path, default=data_folder(), help="folder of .h5ad files"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "src/optirank/models")
    parser.add_argument("--recipes", type=Path, default=RECIPES, help="a .toml file")
    parser.add_argument(
        "--results", type=Path, help="folder of the tables; default: results"
    )
    options = parser.parse_args()
    recipes = read_recipes(options.recipes)
    unknown = sorted(set(options.names) - set(recipes))
    if unknown:
        parser.error(
            f"no model is called {unknown[0]!r}: there are {', '.join(recipes)}"
        )
    names = options.names or list(recipes)
    refuse_missing_sets({name: recipes[name] for name in names}, options.data)
    options.out.mkdir(parents=True, exist_ok=True)
    tables: dict[str, list[pd.DataFrame]] = {name: [] for name in RESULTS}
    for name in names:
        candidate = make(name, recipes[name], options.data)
        size = ship(name, candidate, options.out)
        shipped = f"{size / 1e3:.0f} kB" if size else "not shipped"
        model = candidate.model
        n_classes = len(model.classes)
        print(f"{name:22} {n_classes:2} classes {model.n_genes:4} genes  {shipped}")
        for problem in candidate.problems:
            print(f"{'':22} {problem}")
        tables["models"].append(counts(name, model.card, size > 0))
        tables["model_rivals"].append(candidate.rivals)
    if not options.names or options.results is not None:
        folder = options.results or ROOT / "results"
        folder.mkdir(parents=True, exist_ok=True)
        first = header("python benchmarks/make_models.py", options.data)
        for name, parts in tables.items():
            text = pd.concat(parts).to_csv(index=False, float_format="%.6g")
            write_text(folder / f"{name}.csv", first + text)


def ship(name: str, candidate: Candidate, folder: Path) -> int:
    """Write the file of a candidate that is good enough; its size in bytes, else 0."""
    path = folder / f"{name}.optirank"
    if candidate.problems:
        path.unlink(missing_ok=True)
        return 0
    optirank.save(candidate.model, path, overwrite=True)
    return path.stat().st_size


def read_recipes(path: Path = RECIPES) -> dict[str, dict]:
    """The recipes by name."""
    return tomllib.loads(path.read_text("utf-8"))


def is_pooled(recipe: dict) -> bool:
    """Whether the training sets are taken as one, and do not judge each other."""
    return recipe.get("pooled", False)


def sets_of(recipe: dict) -> list[str]:
    """All data sets that a recipe needs."""
    return [*recipe["train"], *recipe.get("judge", ())]


def refuse_missing_sets(recipes: dict[str, dict], data: Path) -> None:
    """Exit before any work where the folder lacks a set."""
    wanted = dict.fromkeys(
        name for recipe in recipes.values() for name in sets_of(recipe)
    )
    missing = [name for name in wanted if not (data / f"{name}.h5ad").is_file()]
    if missing:
        sys.exit(
            f"{data} lacks {', '.join(missing)}: optirank-lab datasets fetch stand-ins "
            f"--data {data}"
        )


def make(name: str, recipe: dict, data: Path) -> Candidate:
    """Train and judge one model."""
    parts = [read_set(data, set_name, recipe) for set_name in recipe["train"]]
    others = [read_set(data, set_name, recipe) for set_name in recipe.get("judge", ())]
    if recipe.get("genes_of_judges", False):
        measured = {gene for other in others for gene in other.var_names}
        parts = [
            take_genes(part, np.flatnonzero(part.var_names.isin(measured)))
            for part in parts
        ]
    if "tree" in recipe:
        return make_with_tree(name, recipe, parts, others)
    classes = judgeable([] if is_pooled(recipe) else parts, others, parts)
    parts = [restricted(part, classes) for part in parts]
    others = [restricted(other, classes) for other in others]
    return make_flat(name, recipe, parts, others)


def make_with_tree(
    name: str,
    recipe: dict,
    parts: Sequence[AnnData],
    others: Sequence[AnnData],
) -> Candidate:
    """Train and judge a model whose labels are a tree, at the levels that it can tell.

    Samples of the training that are known to a coarser label alone are left out.
    """
    tree = Tree(recipe["tree"])
    numbers = [sample_numbers(part) for part in parts]
    tree = tree.of_classes(
        leaf
        for leaf in tree.leaves
        if sum(counted.get(leaf, 0) for counted in numbers) >= MIN_CLASS
    )
    merged: list[str] = []
    while True:
        fine = [restricted(part, tree.leaves) for part in parts]
        candidate = make_flat(name, recipe, fine, others, tree)
        judged = judgements(candidate.model, others, LABEL, recipe.get("studies", {}))
        table = level_counts(tree, judged)
        problems = level_problems(tree.leaves, table)
        smaller = shipped_tree(tree, table)
        if smaller == tree:
            model = with_levels(candidate.model, tree, table, merged)
            return candidate._replace(model=model)
        merged += problems
        parts = [at_levels(part, LABEL, smaller, tree) for part in parts]
        others = [at_levels(other, LABEL, smaller, tree) for other in others]
        tree = smaller


def make_flat(
    name: str,
    recipe: dict,
    parts: Sequence[AnnData],
    others: Sequence[AnnData],
    tree: Tree | None = None,
) -> Candidate:
    """Train and judge one model on the labels as they are."""
    several = len(parts) > 1
    pooled = is_pooled(recipe)
    profiles = [profiles_of(part) for part in parts]
    if several:
        profiles = join_profiles(profiles, [origin_of(part) for part in parts])
    result = train(
        profiles,
        TrainingOptions(
            label=LABEL,
            n_genes=recipe.get("genes", "auto"),
            batch=FILE_COLUMN if several and not pooled else None,
            tree=None if tree is None else tree.parents,
            ontology=recipe.get("ontology"),
            name=name,
            description=recipe["description"],
        ),
    )
    classes = [str(label) for label in result.model.classes]
    leaves = [restricted(other, classes) for other in others]
    scores = other_scores(result.model, leaves)
    if not pooled:
        scores = [*left_out_scores(result, parts), *scores]
    rivals = pd.concat(
        [rivals_of_set(judged, parts) for judged in scores], ignore_index=True
    )
    rivals.insert(0, "model", name)
    card = complete_card(result, recipe, others)
    card = replace(card, baselines=baselines_of(rivals))
    model = replace(result.model, card=card)
    return Candidate(model, rivals, problems_of(card, recipe))


def judgeable(
    studies: Sequence[AnnData],
    others: Sequence[AnnData],
    parts: Sequence[AnnData],
) -> list[str]:
    """The classes of the training sets that a set without a part in it can judge.

    Such a set has ten samples of the class. A training set that is a study of its own
    judges the model of the others, which needs samples of the class there.
    """
    numbers = [sample_numbers(study) for study in studies]
    elsewhere = [sample_numbers(other) for other in others]
    classes = []
    for label in sorted({label for part in parts for label in sample_numbers(part)}):
        by_others = any(counted.get(label, 0) >= FEWEST for counted in elsewhere)
        by_parts = any(
            own.get(label, 0) >= FEWEST
            and sum(counted.get(label, 0) for counted in numbers if counted is not own)
            >= MIN_CLASS
            for own in numbers
        )
        if by_others or by_parts:
            classes.append(label)
    return classes


def sample_numbers(data: AnnData) -> dict[str, int]:
    """Samples of each class."""
    counted = data.obs[LABEL].dropna().value_counts()
    return {str(label): int(number) for label, number in counted.items()}


def restricted(data: AnnData, classes: Sequence[str]) -> AnnData:
    """The same samples, without the labels of other classes."""
    labels = data.obs[LABEL]
    kept = labels.where(labels.isin(classes))
    return changed(data, obs=data.obs.assign(**{LABEL: kept}))


def read_set(data: Path, name: str, recipe: dict | None = None) -> AnnData:
    """A data set with the labels of a recipe; None where a sample's label is none
    of them.
    """
    found = read_expression(data / f"{name}.h5ad", label=LABEL)
    # Symbols that one package made unique by an Ensembl identifier
    genes = [re.sub(r"_ENSG\d+$", "", str(gene)) for gene in found.var_names]
    labels = found.obs[LABEL].astype(str).to_numpy(dtype=object)
    if recipe is not None and "labels" in recipe:
        names = recipe["labels"]
        labels = np.array([names.get(label) for label in labels], dtype=object)
    obs = found.obs.assign(**{LABEL: labels})
    renamed = changed(found, genes=genes, obs=obs, source=name)
    return merged_genes(renamed, "sum") if duplicates(renamed.var_names) else renamed


def left_out_scores(
    result: TrainingResult, parts: Sequence[AnnData]
) -> list[JudgedScores]:
    """Scores of each training set by the model of the others."""
    if len(parts) < 2:
        return []
    held_out = result.held_out
    columns = [name for name in held_out if name.startswith("score_")]
    judged = []
    for part in parts:
        rows = held_out[held_out["source"] == origin_of(part)]
        place = pd.Index(part.obs_names).get_indexer(rows["sample"])
        scores = rows[columns].to_numpy()
        predicted = rows["predicted"].to_numpy().astype(str)
        model = result.model
        judged.append(
            JudgedScores(
                part, place, model.classes, scores, predicted, True, model.n_genes
            )
        )
    return judged


def other_scores(model: Model, others: Sequence[AnnData]) -> list[JudgedScores]:
    """Scores of sets that had no part in training."""
    judged = []
    for other in others:
        rows = np.flatnonzero(other.obs[LABEL].notna().to_numpy())
        names = [str(gene) for gene in other.var_names]
        scores = model.decision_function(other.X[rows], names)
        labels = label_profiles(profiles_of(other), model)
        predicted = labels.classes[labels.chosen[rows]].astype(str)
        scores = scores[:, None] if scores.ndim == 1 else scores
        judged.append(
            JudgedScores(
                other, rows, model.classes, scores, predicted, False, model.n_genes
            )
        )
    return judged


def complete_card(
    result: TrainingResult, recipe: dict, others: Sequence[AnnData]
) -> Card:
    """The card of the model with all sets that judge it, and the terms of their use."""
    model = result.model
    judged = [
        replace(of_set, platform=platform_of(of_set.name), terms=terms_of(of_set.name))
        for of_set in model.card.judged
        if not is_pooled(recipe)
    ]
    judged += [judged_set(model, other) for other in others]
    train_sets = recipe["train"]
    return replace(
        model.card,
        tissue=recipe["tissue"],
        species=recipe["species"],
        source=", ".join(f"{name}.h5ad" for name in train_sets),
        batch="data set" if len(train_sets) > 1 and not is_pooled(recipe) else "",
        terms="; ".join(f"{name}: {terms_of(name)}" for name in train_sets),
        judged=tuple(judged),
        command="make models",
        # The numbers do not depend on the other libraries
        versions={"optirank": optirank.__version__},
    )


def judged_set(model: Model, other: AnnData) -> JudgedSet:
    """How a set that had no part in training was labelled, whatever genes it lacks.

    Of a tree, a sample that is known to a coarser label alone counts among the others
    of the leaves that are not below it.
    """
    labels = label_profiles(profiles_of(other), model)
    known = other.obs[LABEL].notna().to_numpy()
    truth = other.obs[LABEL][known]
    predicted = labels.classes[labels.chosen[known]]
    if model.tree is None:
        classes = class_counts(truth, pd.Series(predicted), model.classes)
    else:
        classes = leaf_counts(model.tree, truth, predicted)
    missing = ""
    if labels.missing:
        missing = f"; lacks {len(labels.missing)} of {labels.record['n_genes']} genes"
    return JudgedSet(
        name=origin_of(other),
        classes=classes,
        platform=platform_of(origin_of(other)) + missing,
        left_out=False,
        terms=terms_of(origin_of(other)),
    )


def platform_of(name: str) -> str:
    """Accession and platform of a set; nothing for a set that is not registered."""
    try:
        entry = find_entry(name)
    except DataError:
        return ""
    return f"{entry.accession}, {entry.technology}"


def terms_of(name: str) -> str:
    """Terms of use of a set; nothing for a set that is not registered."""
    try:
        return find_entry(name).terms
    except DataError:
        return ""


def problems_of(card: Card, recipe: dict) -> list[str]:
    """Why a model is not shipped: classes that are not judged, or not good enough."""
    return class_problems(counts("", card, False), recipe)


def class_problems(table: pd.DataFrame, recipe: dict) -> list[str]:
    """The same from the counts of one model."""
    if "drop" in recipe:
        return [recipe["drop"]]
    if "tree" in recipe:
        studies = table["set"].map(
            lambda name: study_of(name, recipe.get("studies", {}))
        )
        rows = table.rename(columns={"class": "label"}).assign(study=studies)
        return level_problems(rows["label"].unique(), rows)
    problems = []
    for label, rows in table.groupby("class", sort=True):
        judging = rows[rows["n"] >= FEWEST]
        if not (judging["n_others"] >= FEWEST).any():
            problems.append(f"{label}: no set has {FEWEST} samples of it and of others")
        for row in judging.itertuples():
            sensitivity = row.right / row.n
            if sensitivity < ENOUGH:
                problems.append(f"{label}: sensitivity {sensitivity:.0%} on {row.set}")
        for row in rows[rows["n_others"] >= FEWEST].itertuples():
            specificity = 1 - row.false / row.n_others
            if specificity < ENOUGH:
                problems.append(f"{label}: specificity {specificity:.0%} on {row.set}")
    return problems


def counts(name: str, card: Card, shipped: bool) -> pd.DataFrame:
    """One line per data set and class: right labels, samples, wrong labels
    of others.
    """
    rows = [
        {
            "model": name,
            "shipped": "yes" if shipped else "no",
            "set": judged.name,
            "in_training": "yes" if judged.left_out else "no",
            "class": label,
            "right": counted.right,
            "n": counted.n,
            "false": counted.false,
            "n_others": counted.n_others,
        }
        for judged in card.judged
        for label, counted in judged.classes.items()
    ]
    return pd.DataFrame(rows)


if __name__ == "__main__":
    main()
