"""Made schema-1.optirank and schema-1.json, once; later versions must open the file as it is.

Not run by the tests. A new schema gets a file and a script of its own beside these.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from optirank import OptirankClassifier
from optirank.datasets import make_unstable_ranks
from optirank.model import fit_calibration, fit_rejection, remember_training, save

HERE = Path(__file__).parent


def main() -> None:
    data = make_unstable_ranks(240, 30, 18, random_state=7)
    middle = data.X[:, :5].mean(axis=1) > np.quantile(data.X[:, :5].mean(axis=1), 0.7)
    y = np.where(middle, "mixed", np.where(data.y == 1, "ill", "well"))
    X = pd.DataFrame(data.X.round(3), columns=[f"G{j:02d}" for j in range(30)])
    model = OptirankClassifier(n_reference=6, l2=1e-4, side="both").fit(X[:120], y[:120])
    remember_training(model, X[:120], y[:120], source="make_unstable_ranks, random_state=7")
    held_out = model.decision_function(X[120:])
    model.calibration_ = fit_calibration(held_out, y[120:], model.classes_)
    probabilities = model.calibration_.probabilities(held_out)
    right = model.classes_[probabilities.argmax(axis=1)] == y[120:]
    model.rejection_ = fit_rejection(probabilities.max(axis=1), right, 0.1)
    save(model, HERE / "schema-1.optirank")
    some = X[120:126]
    scores = model.decision_function(some)
    expected = {
        "classes": model.classes_.tolist(),
        "genes": X.columns.tolist(),
        "X": some.to_numpy().tolist(),
        "scores": scores.tolist(),
        "labels": model.predict(some).tolist(),
        "calibrated": model.calibration_.probabilities(scores).tolist(),
    }
    (HERE / "schema-1.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    main()
