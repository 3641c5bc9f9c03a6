"""Models by name: shipped ones, those of a folder, files that win, and names that
are wrong.
"""

from __future__ import annotations

import shutil

import anndata
import numpy as np
import pytest

from example_model import trained_example
from optirank import load, save, tl
from optirank.model.file import find_model, known_models


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPTIRANK_MODELS", raising=False)
    return tmp_path


def test_shipped_models_are_found_by_name_everywhere(folder):
    names = list(known_models())
    assert names == sorted(names)
    assert {"pancreas-human", "blood-human"} <= set(names)
    for name in names:
        model = load(name)
        assert find_model(name).name == f"{name}.optirank"
        assert model.card.name == name
        assert model.votes
        assert len(model.genes) == model.n_genes


def test_a_file_of_the_same_name_wins_with_a_note(folder, caplog):
    model, _ = trained_example()
    save(model, folder / "pancreas-human")
    assert list(load("pancreas-human").classes) == list(model.classes)
    assert "the file pancreas-human is used, not the model of this name" in caplog.text
    caplog.clear()
    (folder / "pancreas-human").unlink()
    assert "beta" in load("pancreas-human").classes
    assert not caplog.text


def test_a_folder_of_more_models_is_named_by_a_variable(folder, monkeypatch, caplog):
    model, _ = trained_example()
    mine = folder / "mine"
    mine.mkdir()
    save(model, mine / "my-cells.optirank")
    shutil.copy(find_model("blood-human"), mine / "pancreas-human.optirank")
    monkeypatch.setenv("OPTIRANK_MODELS", str(mine))
    assert list(load("my-cells").classes) == list(model.classes)
    assert find_model("pancreas-human").parent == mine  # the user's own comes first
    assert find_model("blood-human").parent != mine
    assert not caplog.text
    monkeypatch.setenv("OPTIRANK_MODELS", str(folder / "nowhere"))
    assert "beta" in load("pancreas-human").classes
    with pytest.raises(
        FileNotFoundError, match="'my-cells' is neither a model file nor the name"
    ):
        load("my-cells")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "pancreas-humna",
            "neither a model file nor the name of a model; close names are pancreas-human",
        ),
        ("pancreas-human.optirank", "close names are pancreas-human"),
        ("qqqq", "there are blood-human, breast-er-human"),
        ("sub/pancreas-human", "close names are pancreas-human"),
        (".", "neither a model file nor the name of a model"),
    ],
)
def test_a_wrong_name_is_told_with_close_ones(name, message, folder):
    with pytest.raises(FileNotFoundError, match=message):
        load(name)


def test_anndata_is_annotated_by_name(folder):
    model = load("pancreas-human")
    kinds = np.arange(120) % len(model.classes)
    means = np.exp(8.0 * (model.panel.likeness.profiles[kinds].astype(float) - 0.5))
    cells = anndata.AnnData(np.random.default_rng(0).poisson(means).astype(np.float32))
    cells.var_names = model.genes
    cells.obs["cell_type"] = model.classes[kinds]
    tl.annotate(cells, "pancreas-human")
    right = cells.obs["optirank"].astype(str) == cells.obs["cell_type"].astype(str)
    assert right.mean() > 0.9
    done = tl.evaluate(cells, "pancreas-human", "cell_type")
    assert done.performance.n_right == right.sum()
    cells.var_names = [f"gene {k}" for k in range(cells.n_vars)]
    with pytest.raises(ValueError, match=r"genes.* present"):
        tl.annotate(cells, "pancreas-human")
