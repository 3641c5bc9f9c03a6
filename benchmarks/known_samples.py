"""The samples that choices were made on, so that no independent test uses them.

    python benchmarks/known_samples.py [--data DIR ...]

writes known_samples.npz beside this file from all .h5ad sets of the folders: per set
the 30 genes that vary most between its samples, and one digest per sample, of the order
of these genes in it. An order is the same on another scale, and needs no other gene: a
set that was renamed or logged, or that lost samples or other genes, is still known. One
that lost some of the 30 is not. The file has no value of any sample.
"""

from __future__ import annotations

import argparse
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optirank._util.files import replacing
from optirank_lab.benchmark import sets
from optirank_lab.benchmark.sets import Set, dense
from optirank_lab.benchmark.tasks import BenchmarkTask
from optirank_lab.data.registry import local_paths

if TYPE_CHECKING:
    from numpy.typing import NDArray

FILE = Path(__file__).with_name("known_samples.npz")
N_GENES = 30  # whose order tells samples apart
SIGNIFICANT = 4  # digits: copies of a set are often rounded to so many
BYTES = 5  # of a digest: two samples of a million agree by chance once in ten thousand
DISTINCT = 10  # ranks at least: cells with hardly any counts are alike by chance
FEWEST = 3  # samples of a set that agree by chance are fewer
SHARE = 0.01  # and so is this share of a large set


class Known(NamedTuple):
    """A set that choices were made on."""

    name: str
    genes: NDArray
    digests: frozenset[bytes]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, nargs="+", required=True)
    arrays = {}
    for folder in parser.parse_args().data:
        for name in local_paths(folder):
            samples = sets.load(name, BenchmarkTask(name, name), folder)
            genes = most_variable(samples)
            arrays[f"{name}.genes"] = genes.astype(str)
            arrays[f"{name}.digests"] = np.array(
                [list(digest) for digest in digests(samples, genes)], dtype=np.uint8
            ).reshape(-1, BYTES)
    with replacing(FILE) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)
    print(f"{FILE}: {len(arrays) // 2} sets")


def most_variable(samples: Set) -> NDArray:
    """The genes whose ranks vary most between the samples."""
    values = dense(samples.raw)
    ranks = values.argsort(axis=1, kind="stable").argsort(axis=1)
    order = np.argsort(-ranks.std(axis=0), kind="stable")
    return np.sort(samples.genes[order[:N_GENES]].astype(str))


def digests(samples: Set, genes: NDArray) -> Iterator[bytes]:
    """Of each sample, a digest of the order of some genes; equal values are one rank.

    Samples in which too few values differ have none.
    """
    places = {name: place for place, name in enumerate(samples.genes)}
    values = dense(samples.raw[:, [places[gene] for gene in genes]])
    for row in values.astype(np.float64):
        size = 10.0 ** (np.floor(np.log10(np.maximum(np.abs(row), 1e-300))))
        rounded = np.round(row / size, SIGNIFICANT - 1) * size
        order = np.unique(rounded.astype(np.float32), return_inverse=True)[1]
        if order.max() >= DISTINCT - 1:
            yield hashlib.sha256(order.astype(np.uint8)).digest()[:BYTES]


def known_sets(file: Path | io.BytesIO = FILE) -> list[Known]:
    """The sets of the file."""
    with np.load(file, allow_pickle=False) as arrays:
        names = [key.removesuffix(".genes") for key in arrays if key.endswith(".genes")]
        return [
            Known(
                name,
                arrays[f"{name}.genes"],
                frozenset(row.tobytes() for row in arrays[f"{name}.digests"]),
            )
            for name in names
        ]


def why_known(samples: Set, known: list[Known]) -> str:
    """Which known set has samples of this one, and how many; "" where none has."""
    genes = {*samples.genes}
    for other in known:
        if samples.name.lower() == other.name.lower():
            return f"{samples.name} is a set that choices were made on"
        if not genes.issuperset(other.genes.tolist()):
            continue
        own = [*digests(samples, other.genes)]
        n_shared = sum(digest in other.digests for digest in own)
        if n_shared >= max(FEWEST, SHARE * len(own)):
            return (
                f"{n_shared} of the {len(own)} samples of {samples.name} are in "
                f"{other.name}, which choices were made on"
            )
    return ""


if __name__ == "__main__":
    main()
