"""The page in a real browser: the labels of `optirank predict`, no request, no complaint."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from web_cases import (
    MODELS,
    as_h5ad,
    cells,
    compare,
    expected,
    same_csv,
    with_tree,
)

from browser import open_session
from example_model import telling_model, telling_pair
from optirank.model import load
from optirank.web.page_file import page

# What the worker says is kept, so that a test sees all digits
_KEEP = """
const Plain = Worker;
window.Worker = class extends Plain {
  constructor(address) {
    super(address);
    window.has_file = true;
    this.addEventListener("message", ({ data }) => { window["last_" + data.type] = data; });
  }
};
"""
_CONTROLS = ("genes-in", "gene-column", "layer", "threshold", "target-error")
_TAKE = """({
  names: last_labels.labels.names,
  probabilities: Array.from(last_labels.labels.probabilities),
  notes: last_labels.labels.notes,
  alarms: last_labels.labels.alarms,
  record: last_labels.labels.record,
  shown: document.getElementById('labels').innerText,
})"""
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    '"><script>alert(1)</script>',
    "=HYPERLINK(1)",
    "a,b\nc",
    "\u202egnp.exe",
    "ünïcödé 🧬",
    "__proto__",
    "constructor",
)


def _made():
    """Models that store further genes, and that have a tree."""
    return {
        "telling": telling_model(),
        "with a tree": with_tree(load("pancreas-human")),
    }


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    (folder / "page.html").write_text(
        page([*map(load, MODELS), *_made().values()], h5ad=True), encoding="utf-8"
    )
    with open_session(folder) as opened:
        opened.send("Page.addScriptToEvaluateOnNewDocument", source=_KEEP)
        opened.open(folder / "page.html")
        opened.wait_for("document.body.dataset.ready")
        opened.save_downloads(folder)
        yield opened


@pytest.fixture(autouse=True)
def quiet(session, tmp_path, monkeypatch):
    """Files are in the working directory; the browser must not complain or ask."""
    monkeypatch.chdir(tmp_path)
    session.console.clear()
    session.requests.clear()
    yield
    assert not session.console
    assert all(address.startswith("blob:null/") for address in session.requests)


def choose(session, path, model=MODELS[0], options=None):
    """Choose model, options and file; the error that is shown, or ""."""
    asked = {name.replace("_", "-"): x for name, x in (options or {}).items()}
    values = {control: asked.get(control, "") for control in _CONTROLS}
    session.run(
        f"for (const [id, value] of Object.entries({json.dumps(values)}))"
        " document.getElementById(id).value = value;"
        f"document.getElementById('invert').checked = {json.dumps('invert' in asked)};"
    )
    if session.run("document.getElementById('model').value") != model:
        session.run(
            "window.last_labels = window.last_error = null;"
            f"document.getElementById('model').value = {json.dumps(model)};"
            "document.getElementById('model').dispatchEvent(new Event('change'))"
        )
        title = f"document.getElementById('title').textContent.endsWith('{model}')"
        session.wait_for(title)  # and the file before is labelled again
        session.wait_for("!window.has_file || window.last_labels || window.last_error")
    session.run("window.last_labels = window.last_error = null")
    session.run("document.getElementById('file').value = ''")
    session.choose_file("#file", Path(path).resolve())
    session.wait_for("window.last_labels || window.last_error")
    if session.run("document.getElementById('error').hidden"):
        return ""
    return session.run("document.getElementById('error').textContent")


def saved(session, name):
    """The content of the file that the page saves."""
    out = session.folder / name
    out.unlink(missing_ok=True)
    session.download("document.getElementById('save-csv').click()")
    return out.read_bytes()


def agree(session, path, name=MODELS[0], options=None):
    """The page shows and saves what predict says; gives both."""
    model = _made()[name] if name in _made() else load(name)
    theirs = expected(Path(path), model, options or {})
    error = choose(session, path, name, options)
    if theirs.error:
        assert error == theirs.error
        return None, theirs
    assert error == ""
    ours = session.run(_TAKE)
    compare(ours, theirs.labels, 1e-6)
    same_csv(saved(session, f"{Path(path).stem}-labels.csv").decode(), theirs.csv)
    return ours, theirs


@pytest.mark.parametrize("name", ["breast-er-human", "lymphocytes-mouse"])
def test_tables_are_labelled_as_predict_labels_them(name, session):
    frame = cells(load(name))
    frame.iloc[0] = 0
    frame.drop(columns=load(name).genes[1::2]).T.to_csv("half.csv")
    ours, _ = agree(session, "half.csv", name)
    assert "the same value in all genes" in ours["shown"]
    assert "genes are missing" in ours["shown"]


@pytest.mark.parametrize("storage", ["csr", "csc", "dense"])
def test_h5ad_files_are_read_however_they_are_stored(storage, session):
    frame = telling_pair()[1].to_df()
    ours, _ = agree(session, as_h5ad(frame, Path("right.h5ad"), storage), "telling")
    assert "agreement of other genes" in ours["shown"]
    strange = np.random.default_rng(0).permutation(frame.columns)
    scrambled = as_h5ad(frame.set_axis(strange, axis=1), Path("wrong.h5ad"), storage)
    ours, _ = agree(session, scrambled, "telling")
    assert "may all be wrong" in ours["shown"]


def test_layers_and_raw_are_read(session):
    frame = cells(load("blood-human"))
    data = anndata.read_h5ad(as_h5ad(frame, Path("a.h5ad"), "csr"))
    wrong = frame.set_axis(frame.columns[::-1], axis=1)
    as_h5ad(wrong, Path("raw.h5ad"), "csc", raw=data)
    as_h5ad(frame.iloc[:, ::4], Path("few.h5ad"), "dense", raw=data)
    data.layers["counts"] = data.X
    data.X = data.X * 0
    data.write_h5ad("layer.h5ad")
    agree(session, "raw.h5ad", options={"layer": "raw"})
    agree(session, "layer.h5ad", options={"layer": "counts"})
    ours, _ = agree(session, "layer.h5ad")
    assert "the same value in all genes" in ours["shown"]
    ours, _ = agree(session, "few.h5ad")
    assert "raw is read: X has" in ours["shown"]


def open_sample(session, number=0):
    """The text of the page of a sample, opened by keys."""
    session.run("document.querySelector('.grid table').focus()")
    for _ in range(number):
        session.press("ArrowDown")
    session.press("Enter")
    session.wait_for("document.getElementById('sample').open")
    text = session.run("document.getElementById('sample').innerText")
    session.press("Escape")
    session.wait_for("!document.getElementById('sample').open")
    return text


def test_labels_of_a_tree_are_shown_from_coarse_to_fine(session):
    frame = cells(load("pancreas-human"), 30)
    frame.rolling(3, min_periods=1).mean().round().astype(int).to_csv("tree.csv")
    ours, _ = agree(session, "tree.csv", "with a tree")
    assert "The tree of labels" in ours["shown"]
    assert "From coarse to fine" in open_sample(session, 1)


@pytest.mark.filterwarnings("ignore:Variable names are not unique")
def test_features_of_h5ad_become_genes_as_in_predict(session):
    frame = cells(load("pancreas-human"))
    repeated = {"other1": "other2", "other3": load("pancreas-human").genes[0]}
    twice = as_h5ad(frame.rename(columns=repeated), Path("twice.h5ad"), "csr")
    ours, _ = agree(session, twice, "pancreas-human")
    assert "their counts are summed" in ours["shown"]
    data = anndata.read_h5ad(as_h5ad(frame, Path("a.h5ad"), "csr"))
    types = ["Gene Expression"] * (data.n_vars - 1) + ["Antibody Capture"]
    symbols = pd.Categorical(data.var_names)
    columns = {"symbol": symbols, "length": range(data.n_vars), "feature_types": types}
    data.var = pd.DataFrame(columns, [f"ENSX{k}" for k in range(data.n_vars)])
    data.write_h5ad("columns.h5ad")
    ours, _ = agree(session, "columns.h5ad", "pancreas-human")
    assert "genes are named by the column 'symbol'" in ours["shown"]
    assert "1 features are left out" in ours["shown"]
    agree(session, "columns.h5ad", "pancreas-human", {"gene_column": "symbol"})


def test_10x_files_are_read(session):
    frame = cells(load("lymphocytes-mouse"))
    matrix = sparse.csr_matrix(frame.to_numpy(np.int32))
    with h5py.File("filtered.h5", "w") as file:
        group = file.create_group("matrix")
        group["data"] = matrix.data
        group["indices"] = matrix.indices.astype(np.int64)
        group["indptr"] = matrix.indptr.astype(np.int64)
        group["shape"] = np.array(matrix.shape[::-1])
        group["barcodes"] = np.array(list(frame.index), "S")
        features = group.create_group("features")
        features["id"] = np.array([f"ID{k}" for k in range(matrix.shape[1])], "S")
        features["name"] = np.array(list(frame.columns), "S")
        features["feature_type"] = np.array(["Gene Expression"] * matrix.shape[1], "S")
    agree(session, "filtered.h5", "lymphocytes-mouse")


def test_files_that_are_no_data_are_refused_in_clear_words(session):
    frame = cells(load("blood-human"))
    content = as_h5ad(frame, Path("whole.h5ad"), "csr").read_bytes()
    for name, written in {
        "cut.h5ad": content[: len(content) // 2],
        "empty.h5ad": b"",
        "text.h5ad": b"a,b\n1,2\n",
        "binary.csv": content,
        "empty.csv": b"",
        "damaged.csv.gz": b"\x1f\x8b no gzip",
        "picture.png": b"\x89PNG",
    }.items():
        Path(name).write_bytes(written)
    with h5py.File(as_h5ad(frame, Path("half.h5ad"), "dense"), "r+") as file:
        del file["X"]
        file["X"] = frame.to_numpy(np.float16)
    with h5py.File(as_h5ad(frame, Path("bits.h5ad"), "csr"), "r+") as file:
        file["X/indices"][5] = 10**6
    for name in ("empty.h5ad", "text.h5ad", "empty.csv"):
        agree(session, name)
    for name, error in {
        "cut.h5ad": "cut.h5ad cannot be read, it may be truncated or damaged: its HDF5",
        "binary.csv": "binary.csv cannot be read, it may be truncated or damaged",
        "damaged.csv.gz": "damaged.csv.gz cannot be read, it may be truncated or dam",
        "half.h5ad": "which this page does not read",
        "bits.h5ad": "entries outside its shape",
        "picture.png": "picture.png: its name has no ending of a format",
    }.items():
        assert error in choose(session, name)
    session.console.clear()  # HDF5 says more of the damaged file


def test_hostile_names_are_shown_as_text(session):
    model = load("blood-human")
    frame = cells(model, len(HOSTILE)).set_axis(HOSTILE, axis=0)
    frame = frame.rename(columns={f"other{k}": name for k, name in enumerate(HOSTILE)})
    path = as_h5ad(frame, Path("<img src=x onerror=alert(1)>.h5ad"), "csr")
    assert choose(session, path) == ""
    ours = saved(session, "_img_src_x_onerror_alert_1_-labels.csv")
    same_csv(ours.decode(), expected(path, model, {}).csv)
    assert "Sample <img src=x onerror=alert(1)>" in open_sample(session)
    hostile = "document.querySelectorAll('main img, dialog img, main script').length"
    assert session.run(hostile) == 0
    frame.T.to_csv("hostile.csv")
    agree(session, "hostile.csv")


def test_a_sample_is_explained_as_the_model_explains_it(session):
    model = load("pancreas-human")
    frame = cells(model)
    frame.to_csv("query.csv")
    _, theirs = agree(session, "query.csv", "pancreas-human")
    assert "gene by gene" in open_sample(session, 1)
    ours = session.run("last_explained.explanation")
    table = model.explain(frame.iloc[1:2])
    label = model.classes[theirs.labels.chosen[1]]
    known = table[table["class"] == label].set_index("gene")["contribution"]
    for line in ours["genes"]:
        assert line["contribution"] == pytest.approx(known[line["gene"]], abs=1e-12)
    assert ours["score"] == pytest.approx(known.sum(), abs=1e-12)


def test_a_thousand_samples_are_sorted_searched_and_drawn_where_seen(session):
    frame = cells(load("blood-human"), 1000)
    frame.to_csv("many.csv")
    _, theirs = agree(session, "many.csv")
    rows = "document.querySelectorAll('.grid tbody tr:not(.space)')"
    assert session.run(f"{rows}.length") < 100
    session.run("document.querySelectorAll('.grid th button')[2].click()")
    number = int(session.run(f"{rows}[0].cells[0].textContent").split()[1])
    assert theirs.labels.confidence[number] == theirs.labels.confidence.max()
    session.run(
        "{ const s = document.getElementById('search'); s.value = 'sample 99';"
        "s.dispatchEvent(new Event('input')) }"
    )
    found = session.run("document.querySelector('.search .note').textContent")
    assert found == "11 of 1,000 samples"
    session.run("document.querySelector('.grid table').focus()")
    session.press("End")
    assert session.run("document.querySelector('[aria-selected=true]').rowIndex") == 11


def test_a_file_can_be_dropped_and_a_table_pasted(session):
    frame = cells(load("blood-human"))
    frame.to_csv("dropped.tsv", sep="\t")
    session.run("scrollTo(0, 0); window.last_labels = null")
    session.drop_file(Path("dropped.tsv").resolve())
    session.wait_for("window.last_labels")
    assert session.run("last_labels.labels.source") == "dropped.tsv"
    session.run("window.last_labels = null")
    session.run(
        f"document.getElementById('text').value = {json.dumps(frame.to_csv(sep=chr(9)))};"
        "document.getElementById('label-text').click()"
    )
    session.wait_for("window.last_labels")
    assert session.run("last_labels.labels.names.length") == len(frame)


def test_work_can_be_cancelled(session):
    path = as_h5ad(cells(load("blood-human"), 400), Path("long.h5ad"), "dense")
    session.choose_file("#file", Path(path).resolve())
    session.run("document.getElementById('cancel').click()")
    assert session.run("document.getElementById('working').hidden")
    assert choose(session, path) == ""


def test_the_page_may_not_connect_to_anything(session):
    asked = "fetch('https://example.org').then(() => 'sent', () => 'refused')"
    assert session.run(asked) == "refused"
    image = (
        "new Promise((done) => { const i = new Image(); i.onerror = () => done('refused');"
        "i.onload = () => done('sent'); i.src = 'https://example.org/x.png'; })"
    )
    assert session.run(image) == "refused"
    assert all("Content Security Policy" in text for text in session.console)
    assert not session.requests
    session.console.clear()


def test_everything_has_a_name_for_a_screen_reader(session):
    cells(load("blood-human")).to_csv("a.csv")
    choose(session, "a.csv")
    tree = session.send("Accessibility.getFullAXTree")["nodes"]
    wanted = [
        "button",
        "textbox",
        "combobox",
        "checkbox",
        "searchbox",
        "grid",
        "spinbutton",
    ]
    nameless = [
        node["role"]["value"]
        for node in tree
        if node.get("role", {}).get("value") in wanted
        and not node.get("ignored")
        and not node.get("name", {}).get("value")
    ]
    assert not nameless


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("kang_pbmc_stim", "blood-human"),
        ("nki_er", "breast-er-human"),
        ("tm_10x_immune", "blood-human"),  # another species
        ("baron_h1", "blood-human"),  # another tissue
        ("brain_merfish", "blood-human"),  # none of the genes
    ],
)
def test_real_sets_get_the_labels_of_predict(
    data, name, session, data_folder, tmp_path
):
    source = data_folder / f"{data}.h5ad"
    if not source.is_file():
        pytest.skip(f"{source} is not there")
    agree(session, shutil.copyfile(source, source.name), name)
