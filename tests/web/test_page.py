"""The page in a real browser: the labels of `optirank predict`, no request, no complaint."""

from __future__ import annotations

import json
import shutil

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
_CONTROLS = {
    "genes_in": "genes-in",
    "gene_column": "gene-column",
    "layer": "layer",
    "threshold": "threshold",
    "target_error": "target-error",
}
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
    options = options or {}
    values = dict.fromkeys(_CONTROLS.values(), "")
    values |= {_CONTROLS[name]: options[name] for name in options if name in _CONTROLS}
    session.run(
        f"for (const [id, value] of Object.entries({json.dumps(values)}))"
        " document.getElementById(id).value = value;"
        f"document.getElementById('invert').checked = {json.dumps('invert' in options)};"
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
    session.choose_file("#file", path)
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
    options = options or {}
    model = _made()[name] if name in _made() else load(name)
    theirs = expected(path, model, options)
    error = choose(session, path, name, options)
    if theirs.error:
        assert error == theirs.error
        return None, theirs
    assert error == ""
    ours = session.run(_TAKE)
    compare(ours, theirs, 1e-6)
    same_csv(saved(session, f"{path.stem}-labels.csv").decode(), theirs.csv)
    return ours, theirs


@pytest.mark.parametrize("name", MODELS)
def test_every_shipped_model_labels_as_predict_does(name, session, tmp_path):
    frame = cells(load(name))
    frame.iloc[0] = 0
    frame = frame.drop(columns=list(load(name).genes[1::2]))
    frame.T.to_csv(tmp_path / "half.csv")
    ours, _ = agree(session, tmp_path / "half.csv", name)
    assert "the same value in all genes" in ours["shown"]
    assert "genes are missing" in ours["shown"]


@pytest.mark.parametrize("storage", ["csr", "csc", "dense"])
def test_h5ad_files_are_read_however_they_are_stored(storage, session, tmp_path):
    frame = cells(load("blood-human"))
    wrong = frame.set_axis(frame.columns[::-1], axis=1)
    path = as_h5ad(frame, tmp_path / f"{storage}.h5ad", storage)
    agree(session, path)
    as_h5ad(wrong, tmp_path / "raw.h5ad", storage, raw=_anndata(path))
    with_layer = _anndata(path)
    with_layer.layers["counts"] = with_layer.X
    with_layer.X = with_layer.X * 0
    with_layer.write_h5ad(tmp_path / "layer.h5ad")
    agree(session, tmp_path / "raw.h5ad", options={"layer": "raw"})
    agree(session, tmp_path / "layer.h5ad", options={"layer": "counts"})
    ours, _ = agree(session, tmp_path / "layer.h5ad")
    assert "the same value in all genes" in ours["shown"]


@pytest.mark.parametrize("storage", ["csr", "csc", "dense"])
def test_files_are_checked_by_other_genes(storage, session, tmp_path):
    frame = telling_pair()[1].to_df()
    path = as_h5ad(frame, tmp_path / f"{storage}.h5ad", storage)
    ours, _ = agree(session, path, "telling")
    assert "agreement of other genes" in ours["shown"]
    strange = np.random.default_rng(0).permutation(frame.columns)
    scrambled = frame.set_axis(strange, axis=1)
    path = as_h5ad(scrambled, tmp_path / "scrambled.h5ad", storage)
    ours, _ = agree(session, path, "telling")
    assert "may all be wrong" in ours["shown"]


def test_labels_of_a_tree_are_shown_from_coarse_to_fine(session, tmp_path):
    frame = cells(load("pancreas-human"), 30)
    blurred = frame.rolling(3, min_periods=1).mean().round().astype(int)
    blurred.to_csv(tmp_path / "tree.csv")
    ours, _ = agree(session, tmp_path / "tree.csv", "with a tree")
    assert "The tree of labels" in ours["shown"]
    session.run("document.querySelector('.grid table').focus()")
    session.press("ArrowDown")
    session.press("Enter")
    session.wait_for("document.getElementById('sample').open")
    shown = session.run("document.getElementById('sample').innerText")
    assert "From coarse to fine" in shown
    session.run("document.getElementById('sample').close()")


def test_raw_is_read_where_x_lacks_the_genes(session, tmp_path):
    frame = cells(load("blood-human"))
    raw = _anndata(as_h5ad(frame, tmp_path / "all.h5ad", "csr"))
    few = frame.iloc[:, ::4]
    as_h5ad(few, tmp_path / "few.h5ad", "csr", raw=raw)
    ours, _ = agree(session, tmp_path / "few.h5ad")
    assert "raw is read: X has" in ours["shown"]


def test_values_of_which_less_is_more_are_turned_round(session, tmp_path):
    cycles = 36 - np.log1p(cells(load("blood-human"))) * 3
    cycles.to_csv(tmp_path / "ct.csv")
    ours, _ = agree(session, tmp_path / "ct.csv", options={"invert": True})
    assert "values are inverted" in ours["shown"]


def _anndata(path):
    import anndata

    return anndata.read_h5ad(path)


def test_names_in_another_column_of_h5ad_are_found(session, tmp_path):
    frame = cells(load("pancreas-human"))
    data = _anndata(as_h5ad(frame, tmp_path / "a.h5ad", "csr"))
    data.var = pd.DataFrame(
        {
            "symbol": pd.Categorical(data.var_names),
            "length": np.arange(data.n_vars),
            "feature_types": ["Gene Expression"] * (data.n_vars - 1)
            + ["Antibody Capture"],
        },
        index=[f"ENSX{k}" for k in range(data.n_vars)],
    )
    data.write_h5ad(tmp_path / "columns.h5ad")
    ours, _ = agree(session, tmp_path / "columns.h5ad", "pancreas-human")
    assert "genes are named by the column 'symbol'" in ours["shown"]
    assert "1 features are left out" in ours["shown"]
    agree(
        session,
        tmp_path / "columns.h5ad",
        "pancreas-human",
        {"gene_column": "symbol"},
    )


def test_10x_files_are_read(session, tmp_path):
    frame = cells(load("lymphocytes-mouse"))
    matrix = sparse.csr_matrix(frame.to_numpy(np.int32))
    with h5py.File(tmp_path / "filtered.h5", "w") as file:
        group = file.create_group("matrix")
        for part in ("data", "indices", "indptr"):
            stored = getattr(matrix, part)
            group[part] = stored if part == "data" else stored.astype(np.int64)
        group["shape"] = np.array(matrix.shape[::-1])
        group["barcodes"] = np.array(list(frame.index), "S")
        features = group.create_group("features")
        features["id"] = np.array([f"ID{k}" for k in range(matrix.shape[1])], "S")
        features["name"] = np.array(list(frame.columns), "S")
        features["feature_type"] = np.array(["Gene Expression"] * matrix.shape[1], "S")
    agree(session, tmp_path / "filtered.h5", "lymphocytes-mouse")


@pytest.mark.filterwarnings("ignore:Variable names are not unique")
def test_genes_that_repeat_are_summed(session, tmp_path):
    frame = cells(load("blood-human"))
    twice = frame.rename(
        columns={"other1": "other2", "other3": load("blood-human").genes[0]}
    )
    ours, _ = agree(session, as_h5ad(twice, tmp_path / "twice.h5ad", "csr"))
    assert "their counts are summed" in ours["shown"]


def test_files_that_are_no_data_are_refused_in_clear_words(session, tmp_path):
    frame = cells(load("blood-human"))
    as_h5ad(frame, tmp_path / "whole.h5ad", "csr")
    content = (tmp_path / "whole.h5ad").read_bytes()
    (tmp_path / "cut.h5ad").write_bytes(content[: len(content) // 2])
    (tmp_path / "empty.h5ad").write_bytes(b"")
    (tmp_path / "text.h5ad").write_text("a,b\n1,2\n")
    (tmp_path / "binary.csv").write_bytes(content)
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "damaged.csv.gz").write_bytes(b"\x1f\x8b no gzip")
    as_h5ad(frame, tmp_path / "half.h5ad", "dense")
    with h5py.File(tmp_path / "half.h5ad", "r+") as file:
        del file["X"]
        file["X"] = frame.to_numpy(np.float16)
    as_h5ad(frame, tmp_path / "bits.h5ad", "csr")
    with h5py.File(tmp_path / "bits.h5ad", "r+") as file:
        indices = file["X/indices"][:]
        del file["X/indices"]
        file["X/indices"] = np.where(np.arange(len(indices)) == 5, 10**6, indices)
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    for name in ("empty.h5ad", "text.h5ad", "empty.csv"):
        agree(session, tmp_path / name)
    for name, error in {
        "cut.h5ad": "cut.h5ad cannot be read, it may be truncated or damaged: its HDF5",
        "binary.csv": "binary.csv cannot be read, it may be truncated or damaged",
        "damaged.csv.gz": "damaged.csv.gz cannot be read, it may be truncated or dam",
        "half.h5ad": "which this page does not read",
        "bits.h5ad": "entries outside its shape",
        "picture.png": "picture.png: its name has no ending of a format",
    }.items():
        assert error in choose(session, tmp_path / name)
    session.console.clear()  # HDF5 says more of the damaged file


def test_hostile_names_are_shown_as_text(session, tmp_path):
    model = load("blood-human")
    frame = cells(model, len(HOSTILE))
    frame.index = list(HOSTILE)
    frame = frame.rename(columns={f"other{k}": name for k, name in enumerate(HOSTILE)})
    path = as_h5ad(frame, tmp_path / "<img src=x onerror=alert(1)>.h5ad", "csr")
    theirs = expected(path, model, {})
    assert choose(session, path) == ""
    name = "_img_src_x_onerror_alert_1_-labels.csv"
    same_csv(saved(session, name).decode(), theirs.csv)
    session.run("document.querySelector('.grid table').focus()")
    session.press("Enter")
    session.wait_for("document.getElementById('sample').open")
    shown = session.run("document.getElementById('sample').innerText")
    assert "Sample <img src=x onerror=alert(1)>" in shown
    assert (
        session.run(
            "document.querySelectorAll('main img, dialog img, main script').length"
        )
        == 0
    )
    session.press("Escape")
    frame.T.to_csv(tmp_path / "hostile.csv")
    agree(session, tmp_path / "hostile.csv")


def test_a_sample_is_explained_as_the_model_explains_it(session, tmp_path):
    model = load("pancreas-human")
    frame = cells(model)
    frame.to_csv(tmp_path / "query.csv")
    _, theirs = agree(session, tmp_path / "query.csv", "pancreas-human")
    session.run("document.querySelector('.grid table').focus()")
    session.press("ArrowDown")
    session.press("Enter")
    session.wait_for("document.getElementById('sample').open")
    ours = session.run("last_explained.explanation")
    table = model.explain(frame.iloc[1:2])
    label = model.classes[theirs.labels.chosen[1]]
    table = table[table["class"] == label].set_index("gene")
    for line in ours["genes"]:
        known = table.loc[line["gene"], "contribution"]
        assert line["contribution"] == pytest.approx(known, abs=1e-12)
    assert ours["score"] == pytest.approx(table["contribution"].sum(), abs=1e-12)
    session.press("Escape")
    session.wait_for("!document.getElementById('sample').open")


def test_a_thousand_samples_are_sorted_searched_and_drawn_where_seen(session, tmp_path):
    frame = cells(load("blood-human"), 1000)
    frame.to_csv(tmp_path / "many.csv")
    _, theirs = agree(session, tmp_path / "many.csv")
    rows = "document.querySelectorAll('.grid tbody tr:not(.space)')"
    assert session.run(f"{rows}.length") < 100
    session.run("document.querySelectorAll('.grid th button')[2].click()")
    first = session.run(f"{rows}[0].cells[0].textContent")
    best = int(np.argmax(theirs.labels.confidence))
    assert (
        theirs.labels.confidence[int(first.split()[1])]
        == theirs.labels.confidence[best]
    )
    session.run(
        "{ const s = document.getElementById('search'); s.value = 'sample 99';"
        "s.dispatchEvent(new Event('input')) }"
    )
    assert (
        session.run("document.querySelector('.search .note').textContent")
        == "11 of 1,000 samples"
    )
    session.run("document.querySelector('.grid table').focus()")
    session.press("End")
    assert session.run("document.querySelector('[aria-selected=true]').rowIndex") == 11


def test_a_file_can_be_dropped_and_a_table_pasted(session, tmp_path):
    frame = cells(load("blood-human"))
    choose(session, as_h5ad(frame, tmp_path / "other.h5ad", "csr"))
    frame.to_csv(tmp_path / "dropped.tsv", sep="\t")
    session.run("scrollTo(0, 0); window.last_labels = null")
    session.drop_file(tmp_path / "dropped.tsv")
    session.wait_for("window.last_labels")
    assert session.run("last_labels.labels.source") == "dropped.tsv"
    session.run("window.last_labels = null")
    session.run(
        f"document.getElementById('text').value = {json.dumps(frame.to_csv(sep=chr(9)))};"
        "document.getElementById('label-text').click()"
    )
    session.wait_for("window.last_labels")
    assert session.run("last_labels.labels.names.length") == len(frame)


def test_work_can_be_cancelled(session, tmp_path):
    path = as_h5ad(cells(load("blood-human"), 400), tmp_path / "long.h5ad", "dense")
    session.run("document.getElementById('error').hidden = true")
    session.choose_file("#file", path)
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


def test_everything_has_a_name_for_a_screen_reader(session, tmp_path):
    cells(load("blood-human")).to_csv(tmp_path / "a.csv")
    choose(session, tmp_path / "a.csv")
    tree = session.send("Accessibility.getFullAXTree")["nodes"]
    wanted = (
        "button",
        "textbox",
        "combobox",
        "checkbox",
        "searchbox",
        "grid",
        "spinbutton",
    )
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
        ("xin_980g", "pancreas-human"),
        ("golub_leukemia", "leukaemia-human"),
        ("nki_er", "breast-er-human"),
        ("crcmsi_gse27544", "colorectal-msi-human"),
        ("tm_10x_immune", "lymphocytes-mouse"),
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
    path = tmp_path / source.name
    shutil.copyfile(source, path)
    agree(session, path, name)
