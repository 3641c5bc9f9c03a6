"""k-TSP on the command line: `panel` and `inspect` show the pairs as rules, `predict` uses them."""

from __future__ import annotations

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from example_model import as_anndata, trained_example
from optirank import TopScoringPairsClassifier
from optirank.cli.app import app
from optirank.model import save
from optirank.model.votes import pair_table


def run(*arguments: object) -> Result:
    done = CliRunner().invoke(app, [*map(str, arguments)], env={"COLUMNS": "140"})
    assert done.exit_code == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A model file, a query, and the model."""
    folder = tmp_path_factory.mktemp("votes")
    _, query = trained_example()
    X = pd.DataFrame(query.X.toarray(), columns=query.gene_names)
    model = TopScoringPairsClassifier(5).fit(X, query.labels("cell_type").astype(str))
    save(model, folder / "model.optirank")
    as_anndata(query).write_h5ad(folder / "query.h5ad")
    return folder / "model.optirank", folder / "query.h5ad", model


def test_the_panel_is_shown_as_rules(files, tmp_path):
    path, _, model = files
    done = run("panel", path, "--out", tmp_path / "panel.csv", "--figure", tmp_path / "panel.png")
    rules = pair_table(model)["rule"]
    assert f"{model.genes_.sum()} genes in {len(rules)} pairs" in done.stdout
    for rule in rules:
        assert rule in done.stdout
    written = pd.read_csv(tmp_path / "panel.csv")
    assert set(written["gene"]) == set(model.feature_names_in_[model.genes_])
    assert set(written["rule"]) == set(rules)
    assert (tmp_path / "panel.png").stat().st_size > 1000


def test_inspect_shows_rules_and_the_votes_of_a_sample(files):
    path, query, model = files
    done = run("inspect", path)
    assert "k_max 5" in done.stdout
    assert pair_table(model)["rule"][0] in done.stdout
    done = run("inspect", path, "--explain", query)
    assert "vote" in done.stdout
    assert "+1" in done.stdout


def test_predict_gives_the_labels_of_the_model(files, tmp_path):
    path, query, model = files
    run("predict", query, "--model", path, "--out", tmp_path / "labels.csv")
    _, profiles = trained_example()
    X = pd.DataFrame(profiles.X.toarray(), columns=profiles.gene_names)
    written = pd.read_csv(tmp_path / "labels.csv")
    assert (written["label"] == model.predict(X)).mean() > 0.95  # the last bits decide some ties


def test_a_heat_map_shows_where_the_pairs_hold(files):
    import optirank.pl
    from optirank.datasets import read_expression

    path, query, model = files
    data = read_expression(query)
    adata = as_anndata(data)
    ax = optirank.pl.panel(path, adata, n_genes=2)
    shown = [label.get_text() for label in ax.get_yticklabels()]
    first, second = model.feature_names_in_[model.pairs_[0]]
    assert any(text.startswith(f"{first} > {second} ") for text in shown)
    values = ax.images[0].get_array() if ax.images else ax.collections[0].get_array()
    assert set(values.ravel().tolist()) <= {0.0, 0.5, 1.0}
