"""From counts to expression values, and the choice of genes."""

from optirank.preprocessing.anova import dataset_f_values, select_stable_genes
from optirank.preprocessing.counts import Downsample, LogCPM
from optirank.preprocessing.singlecellnet import SingleCellNetGenes

__all__ = [
    "Downsample",
    "LogCPM",
    "SingleCellNetGenes",
    "dataset_f_values",
    "select_stable_genes",
]
