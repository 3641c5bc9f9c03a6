"""A trained model beyond its fit: the model file, the gene panel, prediction on new data.

>>> from optirank.model import Predictor, load
>>> predictor = Predictor(load("model.optirank"), query.columns)  # doctest: +SKIP
>>> predictor.notes()  # how genes were found, what is missing  # doctest: +SKIP
>>> predictor.predict(query).table(query.index)  # doctest: +SKIP
"""

from optirank.model.archive import ModelFileError
from optirank.model.confidence import (
    Calibration,
    ErrorControl,
    Withholding,
    fit_calibration,
    fit_error_control,
)
from optirank.model.explanation import explain, export_table, panel_table
from optirank.model.file import load, save
from optirank.model.genes import (
    BoundModel,
    ClassLoss,
    GeneMatch,
    MissingGenesError,
    bind,
    match_genes,
)
from optirank.model.linear import describe_training, panel_ranks
from optirank.model.novelty import Novelty, fit_novelty
from optirank.model.predictor import Prediction, Predictor, mixed_word, withheld_word
from optirank.model.query import Adaptation, ValueSummary, match_prevalences

__all__ = [
    "Adaptation",
    "BoundModel",
    "Calibration",
    "ClassLoss",
    "ErrorControl",
    "GeneMatch",
    "MissingGenesError",
    "ModelFileError",
    "Novelty",
    "Prediction",
    "Predictor",
    "ValueSummary",
    "Withholding",
    "bind",
    "describe_training",
    "explain",
    "export_table",
    "fit_calibration",
    "fit_error_control",
    "fit_novelty",
    "load",
    "match_genes",
    "match_prevalences",
    "mixed_word",
    "panel_ranks",
    "panel_table",
    "save",
    "withheld_word",
]
