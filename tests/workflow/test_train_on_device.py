"""Training on a device, with NumPy standing in for the GPU."""

from __future__ import annotations

import numpy as np
import pytest

from optirank.datasets import DataError
from optirank.solver.device import backend, problems
from optirank.tuning.family import Samples
from optirank.tuning.search import fold_units, search
from optirank.workflow.grids import Average, Grid, make_families, panel_grids
from optirank.workflow.preparation import prepare
from optirank.workflow.train import train, train_prepared
from training_cases import small

FIRST = (0.2, 1e-2, 1e-2, "best")
AVERAGE = Average(((0.2, 1e-2, 1e-2), (0.2, 3e-2, 1e-2)), "best")
GRIDS = (Grid((FIRST, (1.0, 1e-2, 1e-2, "best")), AVERAGE), Grid((FIRST,)))


@pytest.fixture
def numpy_as_device(monkeypatch):
    """What a GPU would do is done by the twin in NumPy."""
    twin = backend.backend_of("numpy")
    monkeypatch.setattr(problems, "backend_of", lambda device: twin)
    monkeypatch.setattr(backend, "backend_of", lambda device: twin)
    monkeypatch.setattr("optirank.workflow.train.fit_into", lambda *_: (0, 2))


@pytest.fixture(scope="module")
def data():
    return small(60, 24)


def test_a_training_on_a_device_finds_what_the_cpu_finds(numpy_as_device, data):
    said = []
    options = {"grids": GRIDS, "n_folds": 2}
    here = train(data, "cell_type", **options)
    there = train(data, "cell_type", device="cuda", say=said.append, **options)
    assert there.path["score"].to_numpy() == pytest.approx(here.path["score"].to_numpy(), abs=0.05)
    shifted = "transfer_score"
    assert there.path[shifted].to_numpy() == pytest.approx(here.path[shifted].to_numpy(), abs=0.05)
    assert there.settings == here.settings  # the average
    assert there.model.coef_.shape == here.model.coef_.shape
    assert (there.held_out["predicted"] == here.held_out["predicted"]).mean() > 0.9
    assert any("on the GPU" in line for line in said)
    assert there.model.device == "cpu"  # a machine that reads the model may have no GPU


def test_one_panel_for_several_classes_is_trained_on_a_device(numpy_as_device, data):
    prepared = prepare(data, "cell_type", n_folds=2)
    found = train_prepared(
        prepared, grids=panel_grids(15)[1:], panel_size=15, n_jobs=1, device="cuda"
    )
    assert len(found.genes) <= 15
    assert found.model.shared_reference


def test_reference_candidates_hold_on_a_device(numpy_as_device, data):
    allowed = list(data.gene_names[::2])
    found = train(data, "cell_type", grids=GRIDS, n_folds=2, reference_from=allowed, device="cuda")
    used = found.model.feature_names_in_[found.model.reference_.any(axis=0)]
    assert len(used) > 0
    assert set(used) <= set(allowed)


def test_once_time_is_up_a_device_fits_nothing(numpy_as_device, data):
    stack = Samples(orders=problems.orders_for(data.X, "cuda"))
    codes = np.unique(data.labels("cell_type"), return_inverse=True)[1]
    half = np.arange(len(codes)) % 2 == 0
    folds = [(np.flatnonzero(half), np.flatnonzero(~half))]
    units = fold_units(stack, codes, folds, n_classes=codes.max() + 1)
    families = [*make_families(GRIDS[0], None), *make_families(panel_grids(15)[1], None)]
    (found,) = search(families, units, until=0.0)
    assert not found.complete().any()


def test_a_fixed_reference_set_is_refused_on_a_device(numpy_as_device, data):
    with pytest.raises(DataError, match=r"include.*CPU alone"):
        train(data, "cell_type", include=list(data.gene_names[:5]), device="cuda")


@pytest.mark.usefixtures("without_gpu")
def test_a_gpu_that_is_not_there_is_an_error_before_any_work(tmp_path, data):
    from typer.testing import CliRunner

    from optirank.cli.app import app

    out = tmp_path / "model.optirank"
    command = ["train", "missing.h5ad", "--label", "kind", "--out", str(out), "--device", "cuda"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert "optirank[gpu]" in result.output
    with pytest.raises(backend.DeviceError, match="optirank\\[gpu\\]"):
        train(data, "no such column", device="cuda")
    with pytest.raises(ValueError, match="device='tpu'"):
        train(data, "cell_type", device="tpu")
