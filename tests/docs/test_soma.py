"""The lines for SOMA stores on the page about atlases, on a small local store."""

from __future__ import annotations

import pytest
from doc_blocks import ROOT, read_blocks

import optirank
from example_model import as_anndata, trained_example


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of tiledbsoma and its dependencies
def test_the_lines_of_the_page_label_a_soma_store(tmp_path, monkeypatch):
    soma_io = pytest.importorskip("tiledbsoma.io")
    model, query = trained_example()
    adata = as_anndata(query)
    del adata.layers["double"]
    optirank.save(model, tmp_path / "model.optirank")
    store = str(tmp_path / "atlas.soma")
    soma_io.from_anndata(store, adata, measurement_name="RNA", X_layer_name="raw")
    optirank.tl.annotate(adata, model)
    monkeypatch.chdir(tmp_path)
    blocks = read_blocks(ROOT / "docs" / "atlases.md")
    code = next(block.code for block in blocks if "import tiledbsoma" in block.code)
    namespace: dict = {}
    code = code.replace('"atlas.soma"', repr(store))
    exec(code, namespace)
    labelled = namespace["adata"].obs
    assert labelled["optirank"].tolist() == adata.obs["optirank"].tolist()
