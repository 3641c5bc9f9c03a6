"""The synthetic model, the registry of real data sets and the readers of files."""

from optirank.datasets.synthetic import make_unstable_ranks

__all__ = ["make_unstable_ranks"]
