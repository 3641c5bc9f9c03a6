"""Units of a benchmark on a device, with NumPy standing in for the GPU."""

import numpy as np
import pytest

from optirank.benchmark.running.work import fit_grid


@pytest.mark.usefixtures("numpy_as_device")
def test_a_unit_on_a_device_scores_as_on_the_cpu():
    from optirank.benchmark.classifiers import get
    from optirank.benchmark.designs import make_problem
    from optirank.benchmark.synthetic import GRIDS, Point, Settings, SyntheticTasks

    settings = Settings(
        repeats=1, sweeps=(), grid=GRIDS["paper"], base=Point(20, 12, 150, 0.2, 0.05), seed=0
    )
    source = SyntheticTasks.of(settings)
    plan = settings.plan()
    unit = next(one for one in plan.units if one.classifier == "optirank")
    design = next(one for one in source.designs(unit.task) if one.key == unit.design)
    split = next(one for one in design.splits if one.index == unit.split)
    problem = make_problem(design, split, unit.positive, None)
    grid = {"n_reference": (0.2, 1.0), "l1": (0.0, 1e-3), "l2": (1e-3,)}
    parts = [*problem.validation, *problem.tests.values()]
    for name in ("optirank", "rank-lr"):
        classifier = get(name)
        own = {key: values for key, values in grid.items() if key in classifier.grid}
        here = fit_grid(classifier, problem, own, parts)
        there = fit_grid(classifier, problem, own, parts, device="cuda")
        assert [one.setting for one in here] == [one.setting for one in there]
        for one, other in zip(here, there, strict=True):
            for a, b in zip(one.scores, other.scores, strict=True):
                assert np.mean((a > 0) == (b > 0)) > 0.9


@pytest.mark.usefixtures("without_gpu")
def test_a_gpu_that_is_not_there_is_an_error_before_any_work(tmp_path):
    from typer.testing import CliRunner

    from optirank.cli.app import app

    out = tmp_path / "results"
    result = CliRunner().invoke(app, ["simulate", "--device", "cuda", "--out", str(out)])
    assert result.exit_code != 0
    assert "optirank[gpu]" in result.output + str(result.exception)
    assert not out.exists()
