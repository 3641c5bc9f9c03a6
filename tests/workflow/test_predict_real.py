"""predict_file on real data from other platforms, and its memory on large files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score

from optirank import OptirankClassifier
from optirank.datasets import load_dataset
from optirank.model import remember_training, save
from optirank.workflow.predict import predict_file

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def trained(data, **settings):
    y = data.labels("cell_type").to_numpy()
    model = OptirankClassifier(**settings).fit(data.X, y)
    return remember_training(model, data.X, y, genes=data.gene_names)


def score(query: Path, model, out: Path, **options):
    done = predict_file(query, model, out, **options)
    truth = load_dataset(query.stem, query.parent).labels("cell_type")
    labels = pd.read_csv(out, index_col="sample")["label"]
    known = truth.isin(model.classes_).to_numpy()
    return done, balanced_accuracy_score(truth.to_numpy()[known], labels.to_numpy()[known])


def test_golub_to_armstrong_lacks_genes_and_works(data_folder, tmp_path):
    golub = load_dataset("golub_leukemia", data_folder)
    model = trained(golub, n_reference=0.05, l2=1e-2, side="both")
    query = data_folder / "armstrong_leukemia.h5ad"
    done, found = score(query, model, tmp_path / "labels.csv")
    share = len(done.missing) / model.genes_.sum()
    assert 0.1 < share < 0.25
    assert found > 0.8
    assert any("genes are missing" in note for note in done.notes)
    assert (done.losses["n_missing"] > 0).all()


def test_baron_to_segerstolpe(data_folder, tmp_path):
    baron = load_dataset("baron_h1", data_folder)
    there = set(load_dataset("segerstolpe_1000g", data_folder).gene_names)
    common = [gene for gene in baron.gene_names if gene in there]
    kinds = ["alpha", "beta", "delta", "ductal", "endothelial", "gamma"]
    kept = np.flatnonzero(baron.labels("cell_type").isin(kinds).to_numpy())[::4]
    model = trained(
        baron.select_genes(common).select_samples(kept),
        n_reference=0.05,
        l1=1e-3,
        l2=1e-2,
        tol=1e-3,
    )
    query = data_folder / "segerstolpe_1000g.h5ad"
    done, found = score(query, model, tmp_path / "labels.csv", clusters="cell_type")
    assert not done.missing
    assert found > 0.9
    assert (done.clusters["cluster"] == done.clusters["label"]).mean() > 0.8


@pytest.mark.slow
def test_memory_stays_flat(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    from bench_predict import make_model
    from bench_predict_file import measure, write_cells

    save(make_model(), tmp_path / "model.optirank")
    peaks = []
    for n_cells in (20_000, 60_000):
        query = tmp_path / f"{n_cells}.h5ad"
        write_cells(query, n_cells)
        found = measure(query, tmp_path / "model.optirank", tmp_path / "labels.csv")
        assert found[0] == n_cells
        peaks.append(found[-1])
        query.unlink()
    assert max(peaks) < 1000
    assert peaks[1] - peaks[0] < 60  # the large file holds 320 MB more
