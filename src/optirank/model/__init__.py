"""The model that training makes: its file, its genes in new data, prediction.

>>> import optirank
>>> model = optirank.load("pancreas-human")
>>> model.predict(query)  # a data frame, samples x genes  # doctest: +SKIP
>>> model.predict_proba(query)  # calibrated  # doctest: +SKIP
"""

from optirank.model.card import Card
from optirank.model.file import ModelFileError, load, save
from optirank.model.model import MissingGenesError, Model
from optirank.model.tree import Tree

__all__ = [
    "Card",
    "MissingGenesError",
    "Model",
    "ModelFileError",
    "Tree",
    "load",
    "save",
]
