"""The lines of the page on atlases label a SOMA store as its cells in memory."""

from __future__ import annotations

import re
from pathlib import Path

import anndata
import pytest

import optirank
from example_model import as_anndata, trained_example

tiledbsoma_io = pytest.importorskip("tiledbsoma.io")
PAGE = Path(__file__).parents[2] / "docs" / "atlases.md"


@pytest.mark.filterwarnings("default")
def test_the_lines_of_the_page_label_a_soma_store(tmp_path, monkeypatch):
    model, query = trained_example()
    adata = as_anndata(query)
    optirank.save(model, tmp_path / "model.optirank")
    without_extras = anndata.AnnData(adata.X, adata.obs[[]], adata.var[[]])
    store = str(tmp_path / "atlas.soma")
    tiledbsoma_io.from_anndata(store, without_extras, "RNA", X_layer_name="raw")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    lines = next(block for block in blocks if "import tiledbsoma" in block)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    lines = lines.replace('"atlas.soma"', repr(store))
    exec(lines.replace("BLOCK = 20_000", "BLOCK = 7"), names)
    labelled = names["adata"]
    assert isinstance(labelled, anndata.AnnData)
    optirank.tl.annotate(adata, model)
    assert labelled.obs_names.tolist() == adata.obs_names.tolist()
    for column in ("optirank", "optirank_confidence"):
        assert labelled.obs[column].tolist() == adata.obs[column].tolist()
