"""The synthetic model, the generated example and the readers of files."""

from optirank.datasets.synthetic import make_unstable_ranks
from optirank.io.data import DataError
from optirank.io.reading import open_expression, read_expression

__all__ = [
    "DataError",
    "make_unstable_ranks",
    "open_expression",
    "read_expression",
]
