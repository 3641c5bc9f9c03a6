"""The registry, the catalogue of a folder, label names."""

from __future__ import annotations

import io
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest

from expression_files import make
from optirank.datasets import DataError
from optirank_lab import load_dataset
from optirank_lab.data.conversion import write_h5ad
from optirank_lab.data.registry import (
    STAND_INS,
    WIDE,
    describe,
    find_entry,
    group_of_sets,
    harmonise,
    local_paths,
    registry,
)

PAPER = [
    "tcga",
    "brca",
    "pcawg",
    "met500",
    "baron",
    "muraro",
    "segerstolpe",
    "mws",
    "tm10x",
]


def test_every_data_set_is_registered_with_its_facts():
    assert set(PAPER) < set(registry())
    for entry in registry().values():
        for fact in (entry.title, entry.accession, entry.source, entry.licence):
            assert fact.strip()
        assert entry.files or entry.by_hand
        assert entry.source.startswith("https://") or "on PyPI" in entry.source
        assert all(file.url.startswith(("https://", "pypi:")) for file in entry.files)
    for entry in [*group_of_sets(STAND_INS), *group_of_sets(WIDE)]:
        assert entry.paper
        assert entry.n_samples
        for file in entry.files:
            pinned = "raw.githubusercontent.com" in file.url or file.url.startswith(
                "pypi:"
            )
            assert pinned
            assert entry.untried or len(file.sha256) == 64


def test_the_sources_of_further_sets_name_those_that_are_built():
    table = files("optirank_lab.data").joinpath("wide_sources.csv").read_text("utf-8")
    sources = pd.read_csv(io.StringIO(table), keep_default_na=False).set_index("name")
    entries = {entry.name: entry for entry in group_of_sets(WIDE)}
    assert set(sources["built"]) == {"yes", "not verified", "no"}
    assert set(sources.index[sources["built"] != "no"]) == set(entries)
    for name, entry in entries.items():
        row = sources.loc[name]
        assert row["built"] == ("not verified" if entry.untried else "yes")
        assert row["samples"] == entry.n_samples
        assert row["modality"] == entry.modality
        if row["repository"].count("/"):
            assert row["commit"] in entry.files[0].url
    for column in ("repository", "path", "commit", "licence", "sha256"):
        assert sources[column].str.strip().all()


def test_names_are_found_in_any_case_and_by_alias():
    assert find_entry("Murano").name == "muraro"
    assert find_entry("TCGA").name == "tcga"
    with pytest.raises(DataError, match=r"'nothing'.*tcga"):
        find_entry("nothing")


@pytest.mark.parametrize(
    ("labels", "dataset", "names"),
    [
        (["Colon", "Rectum", "Breast"], "tcga", ["colorectal", "colorectal", "breast"]),
        (["pp", "duct", "t_cell"], "muraro", ["gamma", "ductal", "t cell"]),
        (["colorectal", "prostate"], "tcga", ["colorectal", "prostate"]),
    ],
)
def test_labels_get_common_names(labels, dataset, names):
    assert list(harmonise(labels, dataset)) == names
    unknown = harmonise(
        ["unclassified cell", None, np.nan, "co-expression cell"], "segerstolpe"
    )
    assert pd.isna(unknown).all()


def test_a_folder_named_by_the_environment_is_a_catalogue(tmp_path, monkeypatch):
    data = make(np.ones((4, 3)))
    write_h5ad(data, tmp_path / "mine.h5ad")
    (tmp_path / "broken.h5ad").write_bytes(b"broken")
    monkeypatch.setenv("OPTIRANK_DATA", str(tmp_path))
    broken, mine = map(describe, local_paths().values())
    assert "not an HDF5 file" in broken.errors[0]
    assert (mine.n_samples, mine.n_genes, mine.classes) == (
        4,
        3,
        {"alpha": 2, "beta": 2},
    )
    assert load_dataset("mine").n_obs == 4
    with pytest.raises(DataError, match=r"'yours'.*broken, mine"):
        load_dataset("yours")
    with pytest.raises(DataError, match="optirank-lab datasets fetch baron"):
        load_dataset("baron")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_dataset("mine", tmp_path / "nowhere")


def test_check_finds_what_is_wrong(tmp_path):
    values = np.ones((6, 3))
    values[1] = 0.0
    data = make(values, ["A", "B", "A"], labels=["a"] * 5 + ["b"])
    table = tmp_path / "t.csv"
    frame = pd.DataFrame(data.X.astype(int), data.obs_names, data.var_names)
    pd.concat([data.obs, frame], axis=1).to_csv(table)
    found = describe(table, values=True, genes_in="columns", exclude=["cell_type"])
    text = " ".join(found.notes)
    assert found.errors == []
    assert found.values == "counts"
    for word in (
        "occurs more than once",
        "without any expression",
        "b (1)",
        "'platform'",
    ):
        assert word in text
    values[2, 2] = np.nan
    found = describe(write_h5ad(make(values), tmp_path / "nan.h5ad"), values=True)
    assert found.errors == ["some values are missing or infinite: ranks need numbers"]
    assert "no column 'type'" in describe(tmp_path / "nan.h5ad", label="type").errors[0]
