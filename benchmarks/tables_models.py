"""Tables of the shipped models and of the candidates that are not."""

from __future__ import annotations

import numpy as np
import pandas as pd
from make_models import class_problems, read_recipes
from model_levels import ENOUGH, FEWEST
from model_rivals import ALL_GENES, AS_MANY_GENES, MODEL, ONE_GENE
from tables import as_text, number, percent, read, table

from optirank import load
from optirank.verbs.performance import wilson


@table
def models() -> pd.DataFrame:
    """Each shipped model on every data set that the labelling model had not seen, on
    classes of ten samples.
    """
    rows = read("models")
    rows = rows[(rows["shipped"] == "yes") & (rows["n"] >= FEWEST)]
    records = []
    keys = ["model", "set", "in_training"]
    for (model, name, trained), part in rows.groupby(keys, sort=False):
        sensitivity = part["right"] / part["n"]
        worst = sensitivity.idxmin()
        records.append(
            {
                "model": model,
                "data set": name,
                "in training": trained,
                "classes": str(len(part)),
                "samples": str(part["n"].sum()),
                "accuracy": percent(sensitivity.mean()),
                "worst class": f"{part.loc[worst, 'class']} "
                f"{percent(sensitivity[worst], 0)}",
            }
        )
    return pd.DataFrame(records)


@table
def model_classes() -> pd.DataFrame:
    """Sensitivity and specificity of every class of the shipped models, per
    data set.
    """
    rows = read("models")
    rows = rows[rows["shipped"] == "yes"]
    return pd.DataFrame(
        {
            "model": rows["model"],
            "class": rows["class"],
            "data set": rows["set"],
            "samples": rows["n"].astype(str),
            "sensitivity": (rows["right"] / rows["n"]).map(percent),
            "others": rows["n_others"].astype(str),
            "specificity": (1 - rows["false"] / rows["n_others"]).map(percent),
        }
    )


@table
def model_rivals() -> pd.DataFrame:
    """Balanced accuracy of the shipped models and of the nearest class mean, mean over
    sets.
    """
    rows = shipped_rivals()
    accuracy = rows.pivot_table(
        index="model", columns="method", values="balanced_accuracy", sort=False
    )
    n_sets = rows.groupby("model", sort=False)["set"].nunique()
    return pd.DataFrame(
        {
            "model": accuracy.index,
            "genes": [str(load(name).n_genes) for name in accuracy.index],
            "sets": n_sets[accuracy.index].astype(str).to_numpy(),
            "this model": accuracy[MODEL].map(percent).to_numpy(),
            AS_MANY_GENES: accuracy[AS_MANY_GENES].map(percent).to_numpy(),
            ALL_GENES: accuracy[ALL_GENES].map(percent).to_numpy(),
        }
    )


@table
def model_aucs() -> pd.DataFrame:
    """Mean AUC of the shipped models and of their rivals, mean over sets."""
    rows = shipped_rivals()
    records = []
    for model, part in rows.groupby("model", sort=False):
        aucs = part.groupby("method")["auc"].mean().map("{:.3f}".format)
        genes = part["genes"].dropna().str.split().explode().unique()
        records.append(
            {
                "model": model,
                "this model": aucs[MODEL],
                AS_MANY_GENES: aucs[AS_MANY_GENES],
                ALL_GENES: aucs[ALL_GENES],
                ONE_GENE: aucs[ONE_GENE],
                "these genes": ", ".join(genes),
            }
        )
    return pd.DataFrame(records)


def shipped_rivals() -> pd.DataFrame:
    """The rows of model_rivals.csv of the models that are shipped."""
    rows = read("model_rivals")
    shipped = read("models").query("shipped == 'yes'")["model"].unique()
    return rows[rows["model"].isin(shipped)]


def class_counts(model: str, name: str, label: str) -> pd.Series:
    """The line of models.csv of a class of a model on one set."""
    rows = read("models").set_index(["model", "set", "class"])
    return rows.loc[(model, name, label)]


@number
def stimulated_monocytes() -> str:
    """Sensitivity for CD14 monocytes that were stimulated by interferon, in %."""
    counted = class_counts("blood-human", "kang_pbmc_stim", "CD14 monocyte")
    return percent(counted["right"] / counted["n"], 0)


@number
def megakaryocytes_right() -> str:
    """Megakaryocytes labelled right, of all sets."""
    rows = read("models").query("model == 'blood-human'")
    return str(rows.loc[rows["class"] == "megakaryocyte", "right"].sum())


@number
def msi_right() -> str:
    """Tumours of MSI labelled right in the only set that has ten of them."""
    counted = class_counts("colorectal-msi-human", "crcmsi_tcga", "MSI")
    return f"{counted['right']} of {counted['n']}"


@number
def msi_interval() -> str:
    """The interval of their sensitivity."""
    counted = class_counts("colorectal-msi-human", "crcmsi_tcga", "MSI")
    low, high = wilson(counted["right"] / counted["n"], counted["n"])
    return f"{percent(low, 0)} to {percent(high, 0)}"


@number
def endothelial_trained() -> str:
    """Endothelial cells in training of the model that labels the set with more."""
    counted = class_counts("pancreas-human", "segerstolpe_1000g", "endothelial")
    return str(counted["n"])


@table
def dropped_models() -> pd.DataFrame:
    """Candidates that are not shipped, and why."""
    rows = read("models")
    recipes = read_recipes()
    reasons = {
        model: "; ".join(class_problems(part, recipes[model]))
        for model, part in rows[rows["shipped"] == "no"].groupby("model", sort=False)
    }
    frame = pd.DataFrame({"why": pd.Series(reasons)})
    return as_text(frame, "candidate")


@table
def candidates() -> pd.DataFrame:
    """Of each problem, the training set whose model passes on most other sets."""
    rows = read("candidates")
    rows = rows[(rows["n"] >= FEWEST) & (rows["n_others"] >= FEWEST)]
    sensitivity = rows["right"] / rows["n"]
    specificity = 1 - rows["false"] / rows["n_others"]
    rows = rows.assign(lower=np.minimum(sensitivity, specificity))
    lowest = rows.loc[rows.groupby(["tissue", "reference", "query"])["lower"].idxmin()]
    records = []
    for problem, of_problem in lowest.groupby("tissue"):
        best = max(
            (part for _, part in of_problem.groupby("reference")),
            key=lambda part: ((part["lower"] >= ENOUGH).sum(), part["lower"].mean()),
        )
        figures = [
            f"{row['query']} {percent(row['lower'], 0)} ({row['class']})"
            for row in best.sort_values("lower", ascending=False).to_dict("records")
        ]
        records.append(
            {
                "problem": problem,
                "trained on": best["reference"].iloc[0],
                "passes": f"{(best['lower'] >= ENOUGH).sum()} of {len(best)}",
                "lowest sensitivity or specificity on": ", ".join(figures),
            }
        )
    return pd.DataFrame(records)
