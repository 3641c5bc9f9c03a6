"""Run a scikit-learn estimator of the registry on a whole task: its defaults, one thread."""

from __future__ import annotations

from importlib import import_module, metadata

import numpy as np
import scipy.sparse as sp
from harness import Part, run


class EstimatorTool:
    """The estimator that the job names ("module:class"), with its parameters."""

    def __init__(self, job: dict) -> None:
        self.options = job["options"]
        module, _, name = self.options["estimator"].partition(":")
        self.make = getattr(import_module(module), name)
        package = self.options["package"]
        # optirank need not be installed to be run
        version = self.options["optirank"] if package == "optirank" else metadata.version(package)
        self.version = f"{package} {version}"

    def fit(self, train: Part, seed: int) -> None:
        """Fit to the values that the estimator is to see."""
        sees = self.options["sees"]
        self.measured = sees == "measured" or (sees == "counts" and train.kind == "counts")
        model = self.make(**self.options["params"])
        if "random_state" in model.get_params():
            model.set_params(random_state=seed)
        self.model = model.fit(self._values(train), train.labels)

    def n_genes(self) -> int:
        """Genes with a non-zero entry, for any class."""
        found = np.atleast_2d(getattr(self.model, self.options["genes"]))
        return int(np.count_nonzero(found.any(axis=0)))

    def predict(self, part: Part) -> list[str]:
        """The labels."""
        return self.model.predict(self._values(part)).tolist()

    def warm_up(self) -> None:
        """Fit small examples: compiled code is loaded by the first fit, and is no part of it."""
        random = np.random.default_rng(0)
        X = random.poisson(1.0, size=(60, 40)).astype(np.float32)
        model = self.make(**self.options["params"])
        few = {name: 2 for name in ("n_trees", "n_estimators") if name in model.get_params()}
        model.set_params(**few)
        for share in (1.0, 0.05):  # dense and sparse
            part = sp.csr_matrix(X * (random.random(X.shape) < share))
            model.fit(part, np.arange(60) % 3).predict(part)

    def _values(self, part: Part):
        return part.X if self.measured else part.log


if __name__ == "__main__":
    run(EstimatorTool)
