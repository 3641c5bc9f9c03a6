"""The registry, the catalogue of a folder, label names, fetching and building."""

from __future__ import annotations

import functools
import gc
import http.server
import io
import tarfile
import threading
import warnings
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from expression_files import make, write_tenx_folder
from optirank.datasets import DataError, catalogue, checking, load_dataset, registry
from optirank.datasets.building import build
from optirank.datasets.fetching import ByHandError, download, fetch, instructions
from optirank.datasets.labels import harmonise, tables
from optirank.datasets.registry import RemoteFile, find_entry
from optirank.datasets.writing import write_h5ad, write_table

PAPER = ["tcga", "brca", "pcawg", "met500", "baron", "muraro", "segerstolpe", "mws", "tm10x"]


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_) -> None:
        pass


@pytest.fixture
def served(tmp_path):
    """A folder and the local address that serves it."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(QuietHandler, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()
    with warnings.catch_warnings():  # pooch leaves the answer to a failed request open
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_every_data_set_of_the_paper_is_registered_with_its_facts():
    assert set(PAPER) < set(registry.registry())
    for entry in registry.registry().values():
        for fact in (entry.title, entry.accession, entry.source, entry.licence, entry.labels):
            assert fact.strip()
        assert entry.files or entry.by_hand
        assert {"label"} <= set(entry.read)
        for file in entry.files:
            assert file.url.startswith("https://")
        assert entry.source.startswith("https://")


def test_names_are_found_in_any_case_and_by_alias():
    assert find_entry("Murano").name == "muraro"
    assert find_entry("TCGA").name == "tcga"
    with pytest.raises(DataError, match=r"'nothing'.*tcga"):
        find_entry("nothing")


def test_labels_get_common_names():
    assert list(harmonise(["Colon", "Rectum", "Breast"], "tcga")) == [
        "colorectal",
        "colorectal",
        "breast",
    ]
    assert list(harmonise(["pp", "duct", "alpha cell", "t_cell"], "muraro")) == [
        "gamma",
        "ductal",
        "alpha",
        "t cell",
    ]
    unknown = harmonise(["unclassified cell", None, np.nan, "co-expression cell"], "segerstolpe")
    assert pd.isna(unknown).all()
    assert set(tables()["sets"]) <= set(registry.registry())


def test_harmonising_twice_changes_nothing():
    for name, table in tables()["sets"].items():
        for target in table.values():
            if target:
                assert list(harmonise([target], name)) == [target]


def test_download_checks_the_hash_where_it_is_known(served, tmp_path):
    folder, address = served
    (folder / "a.txt").write_bytes(b"content")
    right = sha256(b"content").hexdigest()
    for known in (None, right):
        target = tmp_path / str(known)
        path = download(RemoteFile("a.txt", f"{address}/a.txt", known), target)
        assert path.read_bytes() == b"content"
    with pytest.raises(DataError, match="hash"):
        download(RemoteFile("a.txt", f"{address}/a.txt", "0" * 64), tmp_path / "wrong")
    assert not (tmp_path / "wrong" / "a.txt").exists()


def test_a_failed_download_names_the_address_and_the_way_out(served, tmp_path):
    _, address = served
    with pytest.raises(DataError, match=r"/none\.txt could not be fetched.*put it at") as error:
        download(RemoteFile("none.txt", f"{address}/none.txt"), tmp_path)
    assert "404" in str(error.value)
    assert not (tmp_path / "none.txt").exists()


def test_fetching_without_pooch_says_which_line_installs_it(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pip install 'optirank\[data\]'"):
        download(RemoteFile("a", "http://127.0.0.1:9/a"), tmp_path)


def _baron_archive() -> bytes:
    """An archive shaped as the one of GEO: a table a donor, mouse donors among them."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as pack:
        for donor in ("human1", "human2", "mouse1"):
            frame = pd.DataFrame(
                {"barcode": "ACGT", "assigned_cluster": ["alpha", "t_cell", "beta"]},
                index=[f"{donor}_lib1.final_cell_{k}" for k in range(3)],
            )
            frame[["INS", "GCG"]] = [[1, 5], [0, 0], [9, 2]]
            data = io.BytesIO()
            frame.to_csv(data, compression="gzip")
            member = tarfile.TarInfo(f"../GSM2_{donor}_umifm_counts.csv.gz")
            member.size = data.tell()
            data.seek(0)
            pack.addfile(member, data)
    return content.getvalue()


def test_baron_is_fetched_and_becomes_a_local_data_set(served, tmp_path):
    folder, address = served
    (folder / "raw.tar").write_bytes(_baron_archive())
    remote = RemoteFile("GSE84133_RAW.tar", f"{address}/raw.tar")
    entry = replace(find_entry("baron"), files=(remote,))
    said = []
    data = tmp_path / "sets"
    path = fetch(entry, data, say=said.append)
    assert path == data / "baron.h5ad"
    assert any(address in text for text in said)
    read = load_dataset("baron", data)
    assert read.n_samples == 6
    assert list(read.gene_names) == ["INS", "GCG"]
    assert list(read.labels("cell_type"))[:3] == ["alpha", "t cell", "beta"]
    assert list(read.labels("donor")) == ["human1"] * 3 + ["human2"] * 3
    assert set(read.obs) >= {"dataset", "platform", "cell_type_original"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["served", "sets"]  # no way out of it
    assert checking.check(path).ok
    said.clear()
    assert fetch(entry, data, say=said.append) == path
    assert said == [f"{path} is there already"]


def test_tcga_counts_are_rebuilt_and_the_rules_of_the_paper_hold(tmp_path):
    home = tmp_path / "tcga"
    home.mkdir()
    counts = pd.DataFrame(
        np.log2(np.array([[1, 2, 3, 4], [0, 7, 8, 9], [5, 5, 5, 5]]) + 1.0),
        index=["ENSG01.4", "ENSG02.11", "__no_feature"],
        columns=["T1", "T2", "T3", "N1"],
    )
    counts.to_csv(home / "TCGA-COAD.star_counts.tsv.gz", sep="\t", index_label="Ensembl_ID")
    about = pd.DataFrame(
        {
            "sample_type.samples": ["Primary Tumor"] * 3 + ["Solid Tissue Normal"],
            "disease_type": ["Adenomas and Adenocarcinomas"] * 2 + ["Gliomas", "Gliomas"],
            "primary_site": ["Colon", "Rectum", "Colon", "Colon"],
        },
        index=["T1", "T2", "T3", "N1"],
    )
    about.to_csv(home / "TCGA-COAD.clinical.tsv.gz", sep="\t", index_label="sample")
    read = build(find_entry("tcga"), tmp_path)
    assert list(read.gene_names) == ["ENSG01", "ENSG02"]
    np.testing.assert_array_equal(read.X.toarray(), [[1, 0], [2, 7]])
    assert list(read.labels("cell_type")) == ["colorectal", "colorectal"]
    with pytest.raises(DataError, match=r"no column 'tissue'.*primary_site"):
        build(find_entry("tcga"), tmp_path, label="tissue")


def test_brca_takes_the_breast_tumours_of_tcga(tmp_path):
    data = make(np.arange(8.0).reshape(4, 2), labels=["breast", "breast", "stomach", "breast"])
    write_h5ad(data, tmp_path / "tcga.h5ad")
    entry = find_entry("brca")
    with pytest.raises(ByHandError, match=r"by hand:\n1\.") as steps:
        fetch(entry, tmp_path)
    assert str(tmp_path / "brca" / "samples.csv") in str(steps.value)
    (tmp_path / "brca" / "samples.csv").write_text("sample,brca\ns0,mutated\ns1,wild type\n")
    fetch(entry, tmp_path)
    read = load_dataset("BRCA", tmp_path)
    assert list(read.labels("cell_type")) == ["brca mutated", "brca wild type"]


def test_sets_of_singlecellnet_ask_for_the_conversion_then_read_it(served, tmp_path):
    folder, address = served
    (folder / "m.rda").write_bytes(b"RDX")
    remote = RemoteFile("stList_murano.rda", f"{address}/m.rda")
    entry = replace(find_entry("murano"), files=(remote,))
    with pytest.raises(ByHandError, match=r"Rscript .*convert_rda\.R .*stList_murano\.rda"):
        fetch(entry, tmp_path)
    assert files("optirank.datasets").joinpath("convert_rda.R").is_file()
    data = make(np.arange(1.0, 10.0).reshape(3, 3))
    home = write_tenx_folder(data, tmp_path / "muraro", version=2)
    about = pd.DataFrame({"kind": ["pp", "duct", "unclear"]}, index=data.sample_names)
    about.to_csv(home / "obs.csv")
    with pytest.raises(DataError, match=r"no column 'cell_type1'.*kind"):
        fetch(entry, tmp_path)
    fetch(entry, tmp_path, label="kind")
    assert list(load_dataset("Murano", tmp_path).labels("cell_type")) == ["gamma", "ductal"]


def test_a_folder_named_by_the_environment_is_a_catalogue(tmp_path, monkeypatch):
    data = make(np.ones((4, 3)))
    write_h5ad(data, tmp_path / "mine.h5ad")
    (tmp_path / "broken.h5ad").write_bytes(b"broken")
    monkeypatch.setenv("OPTIRANK_DATA", str(tmp_path))
    broken, mine = catalogue.local_sets()
    assert "not an HDF5 file" in broken.problem
    assert (mine.n_samples, mine.n_genes, mine.classes) == (4, 3, {"alpha": 2, "beta": 2})
    assert load_dataset("mine").n_samples == 4
    with pytest.raises(DataError, match=r"'yours'.*broken, mine"):
        load_dataset("yours")
    with pytest.raises(DataError, match="optirank datasets fetch baron"):
        load_dataset("baron")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_dataset("mine", tmp_path / "nowhere")


def test_without_a_folder_the_cache_is_looked_at(tmp_path, monkeypatch):
    monkeypatch.delenv("OPTIRANK_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert catalogue.local_sets() == []
    assert catalogue.data_folder() == tmp_path / "optirank"


def test_check_finds_what_is_wrong(tmp_path):
    values = np.ones((6, 3))
    values[1] = 0.0
    data = make(values, ["A", "B", "A"], labels=["a"] * 5 + ["b"])
    table = write_table(data, tmp_path / "t.csv")
    found = checking.check(table, genes_in="columns", label="cell_type")
    text = " ".join(found.notes)
    assert found.ok
    for word in ("occur more than once: A", "without any expression", "b (1)", "'platform'"):
        assert word in text
    values[2, 2] = np.nan
    found = checking.check(write_h5ad(make(values), tmp_path / "nan.h5ad"))
    assert found.errors == ["some values are missing or infinite: ranks need numbers"]
    assert "no column 'type'" in checking.check(tmp_path / "nan.h5ad", label="type").errors[0]


def test_the_real_sets_load_and_pass_the_check(data_folder):
    sets = catalogue.local_sets(data_folder)
    assert sets
    assert not [found.name for found in sets if found.problem]
    for found in sets:
        assert found.classes
        assert found.source["accession"]
    name = min(sets, key=lambda found: found.path.stat().st_size).name
    assert checking.check(catalogue.find_path(name, data_folder)).ok
    read = load_dataset(name, data_folder)
    assert {"cell_type", "dataset", "platform"} <= set(read.obs)


def test_instructions_name_the_folder(tmp_path):
    assert str(tmp_path / "pcawg" / "expression.tsv.gz") in instructions(
        find_entry("pcawg"), tmp_path
    )
