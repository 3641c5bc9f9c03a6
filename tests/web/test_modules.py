"""The page's modules under Node say what `optirank predict` says, to the letter."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from web_cases import MODELS, cells, expected, page_options, same_record

from optirank.io.homologs import ensembl_ids_of, homolog_table
from optirank.model import load
from optirank.web.model_data import (
    WORDS,
    gene_tables,
    generator_state,
    model_data,
    packed_json,
)
from optirank.web.page_file import bundle

HERE = Path(__file__).parent
MODULES = HERE.parents[1] / "src" / "optirank" / "web" / "page"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(model, tasks):
    """What the modules make of files with options."""
    node = shutil.which("node")
    if node is None:
        pytest.skip(
            "no Node here to run the page's modules with: apt-get install nodejs"
        )
    given = {
        "model": packed_json(model_data(model)),
        "tables": packed_json(gene_tables([model])),
        "words": WORDS | {"generator": generator_state()},
        "tasks": [
            {"path": str(path), "options": page_options(options)}
            for path, options in tasks
        ],
    }
    done = subprocess.run(
        [node, str(HERE / "label.mjs"), str(MODULES)],
        input=json.dumps(given),
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def agree(model, tasks):
    """Modules and predict say the same of all tasks; gives what predict says."""
    theirs = [expected(path, model, options) for path, options in tasks]
    for ours, said in zip(run(model, tasks), theirs, strict=True):
        if said.error:
            assert ours.get("error") == said.error
            continue
        assert "error" not in ours, ours
        assert ours["notes"] == said.notes
        assert ours["alarms"] == said.warnings
        assert ours["csv"].encode() == said.csv
        np.testing.assert_allclose(
            ours["probabilities"], np.ravel(said.probabilities), atol=1e-12
        )
        same_record(ours["record"], said.record)
    return theirs


@pytest.mark.parametrize("name", MODELS)
def test_every_shipped_model_gives_the_same_labels(name, folder):
    model = load(name)
    frame = cells(model)
    ties = frame.where(frame > 2, 0)
    ties.iloc[0] = 0
    ties.iloc[1, 5:] = 0
    half = frame.drop(columns=list(model.path_genes[::2]))
    strange = np.random.default_rng(1).permutation(frame.columns)
    frame.to_csv(folder / "all.csv")
    ties.to_csv(folder / "ties.csv")
    half.T.to_csv(folder / "half.tsv", sep="\t")
    frame.set_axis(strange, axis=1).to_csv(folder / "scrambled.csv")
    frame.iloc[:1].to_csv(folder / "one.csv")
    columns = {"genes_in": "columns"}
    said = agree(
        model,
        [
            (folder / "all.csv", columns),
            (folder / "ties.csv", columns | {"unknown_rate": 0.05}),
            (folder / "half.tsv", {"genes_in": "rows"}),
            (folder / "scrambled.csv", columns),
            (folder / "one.csv", columns | {"threshold": 0.8}),
            (folder / "all.csv", columns | {"target_error": 0.1}),
        ],
    )
    assert len(set(said[0].labels.labels)) == len(model.classes)
    assert any("the same value in all genes" in note for note in said[1].notes)
    assert said[2].labels.missing


def test_tables_are_read_by_the_same_rules(folder):
    model = load("blood-human")
    frame = cells(model)
    logs = np.log1p(frame).round(4)
    logs.to_csv(folder / "comma.txt", sep=";", decimal=",")
    text = frame.to_csv().replace("\n", "\r\n").replace("sample 3", '"sample, ""3"""')
    (folder / "quotes.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    (folder / "utf16.tsv").write_text(frame.to_csv(sep="\t"), encoding="utf-16")
    with gzip.open(folder / "packed.csv.gz", "wt") as file:
        file.write(frame.to_csv())
    described = frame.assign(donor=[f"d{k}" for k in range(len(frame))])
    described.to_csv(folder / "described.csv")
    rows = frame.T.reset_index(names="symbol")
    rows.index = [f"probe{k}" for k in range(len(rows))]
    rows.to_csv(folder / "rows.csv")
    r_style = frame.T.to_csv().partition("\n")
    (folder / "r.csv").write_text(r_style[0].lstrip(",") + "\n" + r_style[2])
    (logs - logs.mean()).to_csv(folder / "centred.csv")
    z_scores = (logs - logs.mean()) / logs.std().replace(0, 1)
    z_scores.to_csv(folder / "z.csv")
    columns, in_rows = {"genes_in": "columns"}, {"genes_in": "rows"}
    agree(
        model,
        [
            (folder / "comma.txt", columns),
            (folder / "quotes.csv", columns),
            (folder / "utf16.tsv", columns),
            (folder / "packed.csv.gz", columns),
            (folder / "described.csv", columns | {"annotations": ["donor"]}),
            (folder / "rows.csv", in_rows | {"gene_column": "symbol"}),
            (folder / "r.csv", in_rows),
            (folder / "centred.csv", columns),
            (folder / "z.csv", columns),
        ],
    )


def test_names_of_genes_are_found_as_predict_finds_them(folder):
    model = load("pancreas-human")
    frame = cells(model)
    ids = ensembl_ids_of(frame.columns)
    versions = [f"{name}.{k % 9}" for k, name in enumerate(ids)]
    frame.set_axis(versions, axis=1).to_csv(folder / "ensembl.csv")
    pairs = [line.split("\t") for line in homolog_table().read_text().splitlines()]
    mouse = {human: name for name, human in pairs}
    frame.rename(columns=mouse).to_csv(folder / "mouse.csv")
    frame.rename(columns=str.lower).to_csv(folder / "lower.csv")
    few = {name: name.lower() for name in list(model.genes[:4])}
    frame.rename(columns=few).to_csv(folder / "few.csv")
    twice = frame.rename(columns={"other1": "other2", "other3": model.genes[0]})
    twice.to_csv(folder / "twice.csv")
    (np.log1p(twice)).to_csv(folder / "logs.csv")
    frame.assign(**{model.genes[1].lower(): 1, model.genes[1].title(): 2}).drop(
        columns=model.genes[1]
    ).to_csv(folder / "ambiguous.csv")
    columns = {"genes_in": "columns"}
    said = agree(
        model,
        [
            (folder / "ensembl.csv", columns),
            (folder / "mouse.csv", columns),
            (folder / "lower.csv", columns),
            (folder / "lower.csv", columns | {"homologs": "case"}),
            (folder / "few.csv", columns),
            (folder / "twice.csv", columns),
            (folder / "logs.csv", columns),
            (folder / "ambiguous.csv", columns),
        ],
    )
    assert any("translated from Ensembl ids" in note for note in said[0].notes)
    assert any("between mouse and human" in note for note in said[1].notes)
    assert "another case only" in said[2].error
    assert any("counts are summed" in note for note in said[5].notes)


def test_files_that_cannot_be_labelled_are_refused_in_the_same_words(folder):
    model = load("blood-human")
    frame = cells(model)
    genes = list(model.path_genes)
    frame.drop(columns=genes).to_csv(folder / "none.csv")
    frame.drop(columns=genes[1:]).to_csv(folder / "one-gene.csv")
    words = frame.astype(object)
    words.loc["sample 2", model.genes[3]] = "high"
    words.to_csv(folder / "words.csv")
    gaps = frame.astype(float)
    gaps.loc["sample 1", model.genes[:2]] = np.nan
    gaps.to_csv(folder / "gaps.csv")
    frame.iloc[:0].to_csv(folder / "header.csv")
    (folder / "empty.csv").write_text("")
    (folder / "single.csv").write_text("a\n1\n2\n")
    frame.to_csv(folder / "table.csv")
    columns = {"genes_in": "columns"}
    said = agree(
        model,
        [
            (folder / "none.csv", columns),
            (folder / "one-gene.csv", columns),
            (folder / "words.csv", columns),
            (folder / "gaps.csv", columns),
            (folder / "header.csv", columns),
            (folder / "empty.csv", columns),
            (folder / "single.csv", columns),
            (folder / "table.csv", columns | {"annotations": ["donor"]}),
            (folder / "table.csv", columns | {"target_error": 0.0001}),
            (folder / "table.csv", columns | {"target_error": 3}),
        ],
    )
    assert all(one.error for one in said)


def test_a_table_that_lies_the_other_way_is_said_to(folder):
    model = load("blood-human")
    cells(model).to_csv(folder / "table.csv")
    said = expected(folder / "table.csv", model, {"genes_in": "rows"}).error
    (ours,) = run(model, [(folder / "table.csv", {"genes_in": "rows"})])
    names = re.compile(r"\(.*? and \d+ more\)")  # predict takes them from a set
    assert names.sub("", ours["error"]) == names.sub("", said)
    assert "use genes_in='columns'" in said


def test_classes_are_left_out_as_predict_leaves_them_out(folder):
    model = load("pancreas-human").subset(["alpha", "beta", "delta"])
    panel = model.panel
    kept = panel.genes[panel.coef[0] == 0]
    if len(kept) < 2:  # every gene votes for every class: take a vote away
        from dataclasses import replace

        coef = panel.coef.copy()
        coef[0, :50] = 0
        model = replace(model, panels={model.n_genes: replace(panel, coef=coef)})
        kept = panel.genes[:50]
    cells(model)[list(kept)].to_csv(folder / "without.csv")
    columns = {"genes_in": "columns"}
    said = agree(
        model,
        [
            (folder / "without.csv", columns),
            (folder / "without.csv", columns | {"drop_classes": True}),
        ],
    )
    assert "no gene with a vote" in said[0].error
    assert any("LEFT OUT" in note for note in said[1].notes)


def test_orientation_is_told_by_the_genes_of_the_model(folder):
    model = load("blood-human")
    frame = cells(model)
    frame.to_csv(folder / "a.csv")
    frame.T.to_csv(folder / "b.csv")
    ours = run(model, [(folder / "a.csv", {}), (folder / "b.csv", {})])
    assert [one["record"]["options"]["genes_in"] for one in ours] == ["columns", "rows"]
    assert ours[0]["csv"] == ours[1]["csv"]


def test_names_of_the_modules_do_not_collide():
    for entry in ("app", "worker"):
        assert "import" not in bundle(entry).split()


def test_a_model_with_reference_sets_is_refused_in_clear_words():
    import pandas as pd

    from optirank import OptirankClassifier
    from optirank.model import Model

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 8))).add_prefix("g")
    fitted = OptirankClassifier(n_reference=4).fit(X, np.arange(40) % 2)
    with pytest.raises(TypeError, match="reference sets of its own"):
        model_data(Model.from_estimator(fitted))
