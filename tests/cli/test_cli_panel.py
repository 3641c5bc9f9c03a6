"""`optirank panel`: the genes of a model, as a table and as a figure."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from example_model import as_anndata, panel_names, trained_example
from optirank import OptirankClassifier
from optirank.cli.app import app
from optirank.cli.errors import BAD_INPUT
from optirank.datasets import make_unstable_ranks
from optirank.datasets.example import make_example
from optirank.model import load, panel_table, save, subset


def panel(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["panel", *map(str, arguments)], env={"COLUMNS": "120"})


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("panel") / "model.optirank"
    save(trained_example()[0], path)
    return path


def test_the_table_has_genes_roles_and_a_weight_a_class(model_file, tmp_path):
    done = panel(model_file, "--out", tmp_path / "panel.csv")
    assert done.exit_code == 0, done.stderr
    model = trained_example()[0]
    table = pd.read_csv(tmp_path / "panel.csv")
    pd.testing.assert_frame_equal(table, panel_table(model), check_dtype=False)
    assert set(table["gene"]) == set(panel_names(model))
    assert set(table["role"]) <= {"reference", "weight", "both"}
    assert f"{len(table)} genes" in done.stdout
    assert table["gene"][0] in done.stdout


def test_the_terminal_alone_will_do(model_file, tmp_path):
    done = panel(model_file)
    assert done.exit_code == 0
    assert "--out panel.csv writes them all" in done.stdout


def test_the_terminal_tells_class_and_side_apart(tmp_path):
    data = make_unstable_ranks(100, 20, 8, random_state=0)
    labels = np.array(["ill", "well"])[data.y.astype(int)]
    model = OptirankClassifier(n_reference=4, l1=1e-3, side="both").fit(data.X, labels)
    save(model, tmp_path / "both.optirank")
    done = panel(tmp_path / "both.optirank")
    assert done.exit_code == 0, done.stderr
    row, gene = np.unravel_index(np.abs(model.coef_).argmax(), model.coef_.shape)
    first = next(line for line in done.stdout.splitlines() if line.split()[:1] == [f"x{gene}"])
    assert first.split()[-2:] == ["well", ("rising", "falling")[row]]
    assert float(first.split()[-3]) == pytest.approx(model.coef_[row, gene], rel=1e-2)


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_figure(ending, model_file, tmp_path):
    pytest.importorskip("matplotlib")
    figure = tmp_path / f"panel.{ending}"
    assert panel(model_file, "--figure", figure).exit_code == 0
    assert figure.stat().st_size > 5000


def test_a_figure_of_two_classes(tmp_path):
    pytest.importorskip("matplotlib")
    save(subset(trained_example()[0], ["b cell", "t cell"]), tmp_path / "two.optirank")
    done = panel(tmp_path / "two.optirank", "--figure", tmp_path / "two.png", "--genes", 10)
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "two.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "/nowhere/panel.csv"], "/nowhere"),
        (["--figure", "/nowhere/panel.png"], "/nowhere"),
        (["--figure", "panel.docx"], ".png, .svg or .pdf"),
        (["--data", "reference.h5ad"], "--data is for --max-genes"),
        (["--for", "query.h5ad"], "--for is for --max-genes"),
        (["--curve", "curve.png"], "--curve is for --max-genes"),
        (["--max-genes", "20"], "name the data (--data) and the file (--save)"),
        (["--max-genes", "20", "--data", "x.h5ad", "--save", "x"], "name it (label=, --label)"),
    ],
)
def test_bad_input_ends_with_2_and_one_line(arguments, message, model_file):
    done = panel(model_file, *arguments)
    assert done.exit_code == BAD_INPUT
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_smaller_panel_is_trained_again(tmp_path):
    reference, query = make_example(150, 60)
    as_anndata(reference).write_h5ad(tmp_path / "reference.h5ad")
    as_anndata(query).write_h5ad(tmp_path / "query.h5ad")
    save(subset(trained_example()[0], ["b cell", "t cell", "nk cell"]), tmp_path / "old.optirank")
    done = panel(
        *(tmp_path / "old.optirank", "--max-genes", 25, "--data", tmp_path / "reference.h5ad"),
        *("--label", "cell_type", "--save", tmp_path / "new.optirank", "--budget", "20s"),
        *("--curve", tmp_path / "curve.png"),
        *("--out", tmp_path / "panel.csv", "--for", tmp_path / "query.h5ad", "--format", "h5ad"),
    )
    assert done.exit_code == 0, done.stderr
    assert "on held-out samples" in done.stdout
    assert "Panels on held-out samples" in done.stdout
    assert "chosen" in done.stdout
    assert (tmp_path / "curve.png").stat().st_size > 5000
    new = load(tmp_path / "new.optirank")
    genes = pd.read_csv(tmp_path / "panel.csv")["gene"]
    assert sorted(new.classes_) == ["b cell", "nk cell", "t cell"]
    assert (new.reference_ == new.reference_[0]).all()
    assert len(genes) == new.genes_.sum() <= 25
    assert set(genes) == set(panel_names(new)) <= set(query.gene_names)


def test_a_missing_model_is_one_line(tmp_path):
    done = panel(tmp_path / "nothing.optirank")
    assert done.exit_code == BAD_INPUT
    assert "nothing.optirank" in done.stderr


def test_without_matplotlib_it_says_what_to_install(model_file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    done = panel(model_file, "--figure", tmp_path / "panel.png")
    assert done.exit_code == BAD_INPUT
    assert "pip install 'optirank[report]'" in done.stderr
