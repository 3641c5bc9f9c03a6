"""Tables of the shipped models and of the candidates that are not."""

from __future__ import annotations

import pandas as pd
from make_models import class_problems, read_recipes, terms_of
from model_rivals import NEAREST_MEAN, NEAREST_MEAN_FEW
from tables import as_text, percent, read, table


@table
def models() -> pd.DataFrame:
    """Each shipped model on every data set that the labelling model had not seen."""
    rows = read("models")
    rows = rows[rows["shipped"] == "yes"]
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
    """The shipped models beside the nearest class mean and single genes, mean
    over sets.
    """
    rows = read("model_rivals")
    shipped = read("models").query("shipped == 'yes'")["model"].unique()
    rows = rows[rows["model"].isin(shipped)]
    records = []
    for model, part in rows.groupby("model", sort=False):
        means = part.groupby("method")[["balanced_accuracy", "auc"]].mean()
        genes = part["genes"].dropna().str.split().explode().unique()
        records.append(
            {
                "model": model,
                "sets": str(part["set"].nunique()),
                "accuracy": percent(means.loc["model", "balanced_accuracy"]),
                "nearest class mean": percent(
                    means.loc[NEAREST_MEAN, "balanced_accuracy"]
                ),
                "nearest class mean, as many genes": percent(
                    means.loc[NEAREST_MEAN_FEW, "balanced_accuracy"]
                ),
                "AUC": f"{means.loc['model', 'auc']:.3f}",
                "AUC, nearest class mean": (f"{means.loc[NEAREST_MEAN, 'auc']:.3f}"),
                "AUC, one gene per class": (
                    f"{means.loc['one gene per class', 'auc']:.3f}"
                ),
                "these genes": ", ".join(genes),
            }
        )
    return pd.DataFrame(records)


@table
def model_terms() -> pd.DataFrame:
    """Terms of use of the training sets of the shipped models."""
    shipped = read("models").query("shipped == 'yes'")["model"].unique()
    recipes = read_recipes()
    records = [
        {"model": model, "training set": name, "terms": terms_of(name)}
        for model in shipped
        for name in recipes[model]["train"]
    ]
    return pd.DataFrame(records)


@table
def dropped_models() -> pd.DataFrame:
    """Candidates that are not shipped, and why."""
    rows = read("models")
    reasons = {
        model: "; ".join(class_problems(part))
        for model, part in rows[rows["shipped"] == "no"].groupby("model", sort=False)
    }
    frame = pd.DataFrame({"why": pd.Series(reasons)})
    return as_text(frame, "candidate")
