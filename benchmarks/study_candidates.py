"""Which problems of the evidence could give a model that comes with optirank.

    python benchmarks/study_candidates.py [--data DIR] [--out DIR] [--jobs N] [--quick]

For every ordered pair of sets, a model of the reference as `optirank train` makes it by
default labels the query. Writes candidates.csv: of each class, the samples of the query
that got its label rightly, all of them, and samples of other classes that got it.
The genes are those that both sets have; a model that is shipped has to do with the
genes that a query happens to have, and is judged by make_models.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from studies import Rows, labelled, options, over_pairs, trained

if TYPE_CHECKING:
    from optirank_lab.benchmark.sets import Set
    from optirank_lab.benchmark.tasks import BenchmarkTask


def main() -> None:
    table = over_pairs(study, options(__doc__))["candidates"]
    shares = table.assign(sensitivity=table["right"] / table["n"])
    print(shares.groupby("tissue")["sensitivity"].describe().round(2).to_string())


def study(pair: BenchmarkTask, reference: Set, query: Set) -> Rows:
    """One row per class of one pair."""
    labels = labelled(trained(reference, "auto"), query)
    given = labels.classes[labels.chosen].astype(str)
    truth = np.asarray(query.labels).astype(str)
    rows = []
    for label in np.unique(truth):
        mine = truth == label
        called = given == label
        rows.append(
            {
                "reference": reference.name,
                "query": query.name,
                "class": label,
                "right": int((mine & called).sum()),
                "n": int(mine.sum()),
                "false": int((~mine & called).sum()),
                "n_others": int((~mine).sum()),
            }
        )
    return {"candidates": rows}


if __name__ == "__main__":
    main()
