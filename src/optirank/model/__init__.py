"""A trained model beyond its fit: the model file, the gene panel, prediction on new data.

>>> from optirank.model import Predictor, load
>>> predictor = Predictor(load("model.optirank"), query.columns)  # doctest: +SKIP
>>> predictor.notes()  # how genes were found, what is missing  # doctest: +SKIP
>>> predictor.predict(query).table(query.index)  # doctest: +SKIP
"""

from optirank.model.archive import ModelFileError
from optirank.model.calibration import Calibration, fit_calibration
from optirank.model.experience import Experience, gather_experience
from optirank.model.explanation import explain
from optirank.model.file import load, save
from optirank.model.genes import GeneMatch, match_genes
from optirank.model.missing import BoundModel, ClassLoss, MissingGenesError, bind
from optirank.model.panel import panel_table
from optirank.model.predict import Prediction, Predictor, predict_samples
from optirank.model.promises import Outcomes, Rejection, fit_rejection
from optirank.model.subsets import subset
from optirank.model.training import remember_training

__all__ = [
    "BoundModel",
    "Calibration",
    "ClassLoss",
    "Experience",
    "GeneMatch",
    "MissingGenesError",
    "ModelFileError",
    "Outcomes",
    "Prediction",
    "Predictor",
    "Rejection",
    "bind",
    "explain",
    "fit_calibration",
    "fit_rejection",
    "gather_experience",
    "load",
    "match_genes",
    "panel_table",
    "predict_samples",
    "remember_training",
    "save",
    "subset",
]
