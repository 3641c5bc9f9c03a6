"""Registered sets are built from their raw files, equal to the sets that figures
come from.
"""

from __future__ import annotations

import functools
import http.server
import io
import shutil
import tarfile
import threading
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from expression_files import assert_equal, dense, make
from optirank.datasets import DataError
from optirank_lab import load_dataset
from optirank_lab.data.building import build
from optirank_lab.data.conversion import read_expression, write_h5ad
from optirank_lab.data.fetching import ByHandError, download, fetch, fetch_all
from optirank_lab.data.profiles import labels_of
from optirank_lab.data.raw import RawFiles
from optirank_lab.data.registry import (
    STAND_INS,
    WIDE,
    RemoteFile,
    describe,
    find_entry,
    group_of_sets,
)
from optirank_lab.data.rules import ReadRules

QUICK = (
    "bladder_gse1827",  # genes with missing values are dropped
    "cepo_lawlor_betaductal",  # one of three batches of a file
    "crcmsi_gse27544",  # cleaned: names, missing values, alphabetical order
    "gps_osmfish",  # labels joined by the names of cells
    "kang_pbmc_stim",  # one of two files of the same name
    "mesc_batch2",  # the other one
    "nki_er",  # four digits, the strongest probe per gene
)
QUICK_WIDE = (
    "bladder_gse37317",  # four digits by another rule
    "pbmc_3pv1",  # one of three assays of a file
    "sorted5_mudan",  # labels in the names of cells, some cells of each class
)
# obs of cleaned sets has these on top of what the stored sets have
ADDED = {"platform", "dataset", "cell_type_original"}


def assert_built(name, data, data_folder):
    """A set that was built is the stored one: names, values, annotations."""
    built = read_expression(data / f"{name}.h5ad")
    stored = read_expression(data_folder / f"{name}.h5ad")
    assert_equal(built, stored)
    assert built.X.dtype == stored.X.dtype
    assert set(built.obs) - ADDED <= set(stored.obs) <= set(built.obs)
    for column in stored.obs:
        expected = list(stored.obs[column].astype(str))
        assert list(built.obs[column].astype(str)) == expected


@pytest.mark.parametrize("name", QUICK)
def test_small_sets_are_built_bit_for_bit(name, raw_files, data_folder, tmp_path):
    fetch(find_entry(name), tmp_path, given=raw_files)
    assert_built(name, tmp_path, data_folder)


@pytest.fixture(scope="module")
def built_folder(tmp_path_factory):
    """One folder for all sets, so that raw files that sets share are copied once."""
    return tmp_path_factory.mktemp("built")


def test_forty_two_public_sets_stand_in():
    assert len(group_of_sets(STAND_INS)) == 42


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry", group_of_sets(STAND_INS), ids=lambda entry: entry.name
)
def test_every_stand_in_is_built_bit_for_bit(
    entry, raw_files, data_folder, built_folder
):
    fetch(entry, built_folder, given=raw_files)
    if (data_folder / f"{entry.name}.h5ad").is_file():
        assert_built(entry.name, built_folder, data_folder)


def assert_built_from_source(name, raw_files, data):
    """The set that was built has the samples, labels and values of the stored one,
    which lacks genes that its partners lack.
    """
    stored_path = raw_files.parents[1] / "wide" / "sets" / f"{name}.h5ad"
    if not stored_path.is_file():
        pytest.skip(f"no set {stored_path.name} here")
    built = read_expression(fetch(find_entry(name), data, given=raw_files))
    stored = read_expression(stored_path)
    assert_equal(built[:, stored.var_names], stored)
    assert list(built.obs["cell_type"]) == list(stored.obs["cell_type"])


@pytest.mark.parametrize("name", QUICK_WIDE)
def test_further_sets_are_built_bit_for_bit(name, raw_files, tmp_path):
    assert_built_from_source(name, raw_files, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [entry.name for entry in group_of_sets(WIDE) if not entry.untried]
)
def test_every_further_set_is_built_bit_for_bit(name, raw_files, built_folder):
    assert_built_from_source(name, raw_files, built_folder)


def test_counts_are_recovered_from_natural_logarithms(tmp_path):
    counts = np.array([[3, 0, 7], [1, 1, 8]])
    totals = [20, 30]  # of all genes, of which the table has some
    shares = counts / counts.sum(axis=1, keepdims=True)
    table = pd.DataFrame(np.log1p(shares * 1e4).T, ["A", "B", "C"], ["x", "y"])
    table.to_csv(tmp_path / "values.csv")
    about = pd.DataFrame({"type": ["t", "u"], "total": totals})
    about.to_csv(tmp_path / "about.csv", index=False)
    rules = ReadRules(
        matrix="values.csv", totals="about.csv:total", label="about.csv:type"
    )
    entry = replace(find_entry("pbmc3k"), n_samples=2, n_genes=3, read=rules, files=())
    built = build(entry, tmp_path, tmp_path)
    expected = np.rint(shares * np.array(totals)[:, None])
    np.testing.assert_array_equal(dense(built.X), expected)


def test_the_entries_fit_the_sets_that_are_there(data_folder):
    paths = {path.stem: path for path in data_folder.glob("*.h5ad")}
    entries = [entry for entry in group_of_sets(STAND_INS) if entry.name in paths]
    assert len(entries) >= 32
    for entry in entries:
        local = describe(paths[entry.name])
        assert (local.n_samples, local.n_genes) == (entry.n_samples, entry.n_genes)
        assert set(entry.read.labels.values()) <= set(local.classes), entry.name


def test_a_column_is_read_by_its_place_in_a_table_without_header(tmp_path):
    (tmp_path / "labels.txt").write_text("c1\tT cell\nc2\tB cell\nc3\t\n")
    raw = RawFiles(find_entry("tm_10x_immune"), tmp_path)
    assert raw.texts("labels.txt:1") == ["T cell", "B cell", None]
    assert raw.texts("labels.txt:0") == ["c1", "c2", "c3"]
    with pytest.raises(DataError, match=r"labels\.txt has no column 'none'"):
        raw.texts("labels.txt:none")


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files, and the rest of one from a place on."""

    def log_message(self, *_) -> None:
        pass

    def do_GET(self) -> None:
        start = self.headers.get("Range", "bytes=0-")[6:-1]
        path = Path(self.translate_path(self.path))
        if start == "0" or not path.is_file():
            super().do_GET()
            return
        rest = path.read_bytes()[int(start) :]
        self.send_response(206)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest)


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


def test_a_download_is_checked_and_an_interrupted_one_completed(served, tmp_path):
    folder, address = served
    (folder / "a.txt").write_bytes(b"content")
    right = sha256(b"content").hexdigest()
    target = tmp_path / "a.txt"
    for known in (None, right):
        download(RemoteFile("a.txt", f"{address}/a.txt", known), target)
        assert target.read_bytes() == b"content"
    (tmp_path / "b.txt.part").write_bytes(b"con")
    download(RemoteFile("b.txt", f"{address}/a.txt", right), tmp_path / "b.txt")
    assert (tmp_path / "b.txt").read_bytes() == b"content"
    with pytest.raises(DataError, match="sha256"):
        download(RemoteFile("a.txt", f"{address}/a.txt", "0" * 64), tmp_path / "wrong")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.txt",
        "b.txt",
        "served",
    ]


def test_a_source_that_is_gone_is_told_and_the_others_are_built(
    served, raw_files, tmp_path
):
    gone = replace(
        find_entry("nki_er"), files=(RemoteFile("nkis.rda", f"{served[1]}/none"),)
    )
    said = []
    entries = [gone, find_entry("cepo_lawlor_betaductal")]
    problems = fetch_all(entries, tmp_path / "sets", given=raw_files, say=said.append)
    assert list(problems) == ["nki_er"]
    for word in ("/none could not be fetched", "the source is gone", "--from"):
        assert word in said[0]
    assert (tmp_path / "sets" / "cepo_lawlor_betaductal.h5ad").is_file()


def test_raw_files_of_another_content_are_refused(raw_files, tmp_path):
    entry = find_entry("nki_er")
    given = tmp_path / "given"
    given.mkdir()
    (given / "nkis.rda").write_bytes(b"other")
    with pytest.raises(
        DataError, match=r"nkis\.rda is not the file that is registered"
    ):
        fetch(entry, tmp_path, given=given)
    plain_name = given / "nkis.rda"
    shutil.copy(raw_files / entry.files[0].name, plain_name)
    assert fetch(entry, tmp_path, given=given).is_file()
    with pytest.raises(
        DataError, match=r"was built with 150 samples and 644 genes, not 7"
    ):
        build(replace(entry, n_samples=7), tmp_path / "raw", tmp_path)


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
    assert any(address in text for text in said)
    read = load_dataset("baron", data)
    assert list(read.var_names) == ["INS", "GCG"]
    assert list(labels_of(read, "cell_type"))[:3] == ["alpha", "t cell", "beta"]
    assert list(labels_of(read, "donor")) == ["human1"] * 3 + ["human2"] * 3
    assert set(read.obs) >= {"dataset", "platform", "cell_type_original"}
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "served",
        "sets",
    ]  # no way out of it
    said.clear()
    assert fetch(entry, data, say=said.append) == path
    assert said == [f"{path} is there already"]


def test_tcga_counts_are_rebuilt_and_the_rules_of_the_paper_hold(tmp_path):
    counts = pd.DataFrame(
        np.log2(np.array([[1, 2, 3, 4], [0, 7, 8, 9], [5, 5, 5, 5]]) + 1.0),
        index=["ENSG01.4", "ENSG02.11", "__no_feature"],
        columns=["T1", "T2", "T3", "N1"],
    )
    counts.to_csv(
        tmp_path / "TCGA-COAD.star_counts.tsv.gz", sep="\t", index_label="Ensembl_ID"
    )
    about = pd.DataFrame(
        {
            "sample_type.samples": ["Primary Tumor"] * 3 + ["Solid Tissue Normal"],
            "disease_type": ["Adenomas and Adenocarcinomas"] * 2
            + ["Gliomas", "Gliomas"],
            "primary_site": ["Colon", "Rectum", "Colon", "Colon"],
        },
        index=["T1", "T2", "T3", "N1"],
    )
    about.to_csv(tmp_path / "TCGA-COAD.clinical.tsv.gz", sep="\t", index_label="sample")
    read = build(find_entry("tcga"), tmp_path, tmp_path)
    assert list(read.var_names) == ["ENSG01", "ENSG02"]
    np.testing.assert_array_equal(dense(read.X), [[1, 0], [2, 7]])
    assert list(labels_of(read, "cell_type")) == ["colorectal", "colorectal"]


def test_brca_takes_the_breast_tumours_of_tcga(tmp_path):
    data = make(
        np.arange(8.0).reshape(4, 2), labels=["breast", "breast", "stomach", "breast"]
    )
    write_h5ad(data, tmp_path / "tcga.h5ad")
    entry = find_entry("brca")
    with pytest.raises(ByHandError, match=r"by hand:\n1\.") as steps:
        fetch(entry, tmp_path)
    assert str(tmp_path / "brca" / "samples.csv") in str(steps.value)
    (tmp_path / "brca" / "samples.csv").write_text(
        "sample,brca\ns0,mutated\ns1,wild type\n"
    )
    fetch(entry, tmp_path)
    read = load_dataset("BRCA", tmp_path)
    assert list(labels_of(read, "cell_type")) == ["brca mutated", "brca wild type"]
