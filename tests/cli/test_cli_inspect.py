"""`optirank inspect`: what a model is, and why a sample got its label."""

from __future__ import annotations

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from example_model import as_anndata, trained_example
from optirank import OptirankClassifier, OptirankClassifierCV, __version__
from optirank.cli.app import app
from optirank.cli.errors import BAD_INPUT
from optirank.datasets import make_unstable_ranks
from optirank.model import Predictor, save, subset


def inspect(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["inspect", *map(str, arguments)], env={"COLUMNS": "120"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inspect")
    model, query = trained_example()
    model.training_summary_ |= {"balanced_accuracy": 0.912, "recall": {"t cell": 0.75}}
    save(model, folder / "model.optirank")
    save(subset(model, ["b cell", "t cell"]), folder / "two.optirank")
    as_anndata(query).write_h5ad(folder / "query.h5ad")
    return folder


def test_what_a_model_is(folder):
    done = inspect(folder / "model.optirank")
    assert done.exit_code == 0, done.stderr
    words = ["OptirankClassifier", f"optirank {__version__}, schema 2", "n_reference 12", "0.912"]
    words += ["90 samples", "example", "dendritic cell", "0.750"]
    for word in words:
        assert word in done.stdout


def test_what_a_search_is(tmp_path):
    data = make_unstable_ranks(120, 20, 12, random_state=0)
    search = OptirankClassifierCV((3, 1.0), (0,), (1e-3,), cv=2).fit(data.X, data.y)
    save(search, tmp_path / "search.optirank")
    done = inspect(tmp_path / "search.optirank")
    assert done.exit_code == 0, done.stderr
    assert f"balanced_accuracy {search.best_score_:.3f}" in done.stdout
    assert "genes cannot be found by name" in done.stdout
    assert "OptirankClassifierCV" in done.stdout


def test_contributions_sum_to_the_score(folder, tmp_path):
    model, query = trained_example()
    sample = query.sample_names[7]
    out = tmp_path / "why.csv"
    done = inspect(
        *(folder / "model.optirank", "--explain", folder / "query.h5ad", "--sample", sample),
        *("--out", out, "--genes", 5),
    )
    assert done.exit_code == 0, done.stderr
    expected = Predictor(model, query.gene_names).predict(query.X[[7]])
    assert f"{sample}: {expected.labels[0]}, confidence" in done.stdout
    table = pd.read_csv(out)
    sums = table.groupby("class")["contribution"].sum()
    for label, score in zip(model.classes_, expected.scores[0], strict=True):
        assert sums[label] == pytest.approx(score)
    heaviest = table[(table["class"] == expected.labels[0]) & (table["gene"] != "(intercept)")]
    assert heaviest["gene"].iloc[0] in done.stdout
    assert "more genes" in done.stdout


def test_the_first_sample_and_another_class(folder, tmp_path):
    query = trained_example()[1]
    file = tmp_path / "query.data"
    file.symlink_to(folder / "query.h5ad")
    options = ("--explain", file, "--format", "h5ad", "--class", "monocyte")
    done = inspect(folder / "model.optirank", *options)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith(f"{query.sample_names[0]}: ")
    assert "For monocyte, score" in done.stdout


def test_two_sides_are_told_apart_and_sum_to_the_score(tmp_path):
    data = make_unstable_ranks(100, 20, 8, random_state=0)
    X = pd.DataFrame(data.X, columns=[f"g{j}" for j in range(20)])
    model = OptirankClassifier(n_reference=4, l1=0.0, side="both").fit(X, data.y)
    save(model, tmp_path / "both.optirank")
    X.head(2).to_csv(tmp_path / "query.csv")
    options = ("--explain", tmp_path / "query.csv", "--genes-in", "columns", "--genes", 3)
    done = inspect(tmp_path / "both.optirank", *options, "--out", tmp_path / "why.csv")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.count("(intercept)") == 1
    assert done.stdout.count("rising") == done.stdout.count("falling") == 3
    assert "17 more genes" in done.stdout
    table = pd.read_csv(tmp_path / "why.csv")
    score = model.decision_function(X.head(1))[0]
    assert table["contribution"].sum() == pytest.approx(score)
    assert f"score {score:+.4f}" in done.stdout


def test_classes_that_lack_genes_can_be_left_out(folder):
    missing = ("--explain", folder / "query.h5ad", "--max-missing", "0.0")
    refused = inspect(folder / "model.optirank", *missing)
    assert refused.exit_code == BAD_INPUT
    lacking = Predictor(trained_example()[0], trained_example()[1].gene_names).bound.losses
    gone = [loss.label for loss in lacking if loss.n_missing]
    assert 0 < len(gone) <= 3
    done = inspect(folder / "model.optirank", *missing, "--drop-classes")
    assert done.exit_code == 0, done.stderr
    assert "LEFT OUT" in done.stderr
    assert not any(str(label) in done.stdout for label in gone)


@pytest.mark.parametrize("label", ["b cell", "t cell"])
def test_two_classes_have_one_score(label, folder):
    options = ("--explain", folder / "query.h5ad", "--class", label)
    done = inspect(folder / "two.optirank", *options)
    assert done.exit_code == 0, done.stderr
    assert "For t cell, score" in done.stdout
    assert "(below 0: b cell)" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sample", "x"], "--sample is for --explain"),
        (["--class", "x"], "--class is for --explain"),
        (["--explain", "QUERY", "--sample", "x"], "no sample 'x'"),
        (["--explain", "QUERY", "--class", "x"], "no class 'x'"),
        (["--explain", "nothing.h5ad"], "nothing.h5ad does not exist"),
        (["--explain", "QUERY", "--layer", "counts"], "no layer 'counts'"),
        (["--explain", "QUERY", "--out", "/nowhere/x.csv"], "/nowhere"),
    ],
)
def test_bad_input_ends_with_2_and_one_line(arguments, message, folder):
    given = [str(folder / "query.h5ad") if one == "QUERY" else one for one in arguments]
    done = inspect(folder / "model.optirank", *given)
    assert done.exit_code == BAD_INPUT, done.stdout
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_control_characters_of_names_are_shown_as_escapes(tmp_path):
    model, _ = trained_example()
    model.classes_ = model.classes_.astype(object)
    model.classes_[0] = "b \x1b[31mcell\x07"
    model.training_summary_ |= {"source": "\x1b]0;title\x07"}
    save(model, tmp_path / "m.optirank")
    done = inspect(tmp_path / "m.optirank")
    assert done.exit_code == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert "\x07" not in done.stdout
    assert "b \\x1b[31mcell\\x07" in done.stdout
