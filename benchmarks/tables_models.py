"""Tables of the shipped models and of the candidates that are not."""

from __future__ import annotations

import pandas as pd
from model_levels import FEWEST
from model_rivals import ALL_GENES, AS_MANY_GENES, MODEL
from tables import number, percent, read, table

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
