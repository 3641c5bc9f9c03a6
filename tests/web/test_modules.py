"""The page's modules under Node say what `optirank predict` says, to the letter."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from web_cases import (
    LABELLING,
    MODELS,
    READING,
    cells,
    compare,
    expected,
    same_csv,
    with_tree,
)

from example_model import telling_model, telling_pair
from optirank.model import load
from optirank.web.page_file import WORDS, bundle, packed_model

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
    names = LABELLING | READING
    defaults = dict.fromkeys(names.values())
    named = [
        {
            "path": str(path),
            "options": defaults | {names[k]: value for k, value in options.items()},
        }
        for path, options in tasks
    ]
    given = {"model": packed_model(model), "words": WORDS, "tasks": named}
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


def agree(model, files, options=None):
    """Modules and predict say the same of all files, given as bytes, texts or tables by
    name, with options by name; gives what predict says, by name.
    """
    tasks = []
    for name, content in files.items():
        if isinstance(content, pd.DataFrame):
            content = content.to_csv(sep="\t" if name.endswith(".tsv") else ",")
        if isinstance(content, str):
            content = content.encode()
        Path(name).write_bytes(content)
        tasks.append((Path(name).resolve(), (options or {}).get(name, {})))
    theirs = [expected(path, model, asked) for path, asked in tasks]
    for ours, said in zip(run(model, tasks), theirs, strict=True):
        if said.error:
            assert ours.get("error") == said.error
            continue
        assert "error" not in ours, ours
        compare(ours, said.labels, 1e-12)
        same_csv(ours["csv"], said.csv)
    return dict(zip(files, theirs, strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_every_shipped_model_gives_the_same_labels(name):
    model = load(name)
    frame = cells(model)
    ties = frame.where(frame > 2, 0)
    ties.iloc[0] = 0
    ties.iloc[1, 5:] = 0
    strange = np.random.default_rng(1).permutation(frame.columns)
    files = {
        "all.csv": frame,
        "ties.csv": ties,
        "half.tsv": frame.drop(columns=model.genes[::2]).T,
        "scrambled.csv": frame.set_axis(strange, axis=1),
        "one.csv": frame.iloc[:1],
        "target.csv": frame,
        "impossible.csv": frame,
    }
    options = {"one.csv": {"threshold": 0.8}, "target.csv": {"target_error": 0.1}}
    said = agree(model, files, options | {"impossible.csv": {"target_error": 0.0001}})
    assert len(set(said["all.csv"].labels.labels)) == len(model.classes)
    assert "the same value in all genes" in said["ties.csv"].labels.notes[-1]
    assert said["half.tsv"].labels.missing


def test_tables_are_read_by_the_same_rules():
    model = load("blood-human")
    frame = cells(model)
    logs = np.log1p(frame).round(4)
    rows = frame.T
    text = frame.to_csv()
    quoted = text.replace("\n", "\r\n").replace("sample 3", '"sample, ""3"""')
    named = rows.reset_index(names="symbol").assign(entrez=range(len(rows)))
    cycles = (36 - logs * 3).astype(object)
    cycles.iloc[0, :9] = "Undetermined"
    files = {
        "comma.txt": logs.to_csv(sep=";", decimal=","),
        "quotes.csv": b"\xef\xbb\xbf" + quoted.encode(),
        "utf16.tsv": frame.to_csv(sep="\t").encode("utf-16"),
        "windows.csv": text.replace("sample 2", "Müller €").encode("cp1252"),
        "packed.csv.gz": gzip.compress(text.encode()),
        "described.csv": frame.assign(donor=[f"d{k}" for k in range(len(frame))]),
        "rows.csv": named.add_prefix("probe", axis=0),
        "symbol.csv": named.add_prefix("probe", axis=0),
        "r.csv": rows.to_csv().lstrip(","),
        "ended.csv": text.replace("\n", ",\n"),
        "hash.tsv": "# by hand\n#gene" + rows.to_csv(sep="\t"),
        "centred.csv": logs - logs.mean(),
        "z.csv": (logs - logs.mean()) / logs.std().replace(0, 1),
        "ct.csv": cycles,
    }
    asked = {"symbol.csv": {"gene_column": "symbol"}, "ct.csv": {"invert": True}}
    said = agree(model, files, asked)
    assert not [one.error for one in said.values() if one.error]
    assert "Müller €".encode() in said["windows.csv"].csv


def test_names_of_genes_are_found_as_predict_finds_them():
    model = load("pancreas-human")
    frame = cells(model)
    genes = list(model.genes)
    twice = frame.rename(columns={"other1": "other2", "other3": genes[0]})
    two = frame.assign(**{genes[1].lower(): 1, genes[1].title(): 2})
    files = {
        "lower.csv": frame.rename(columns=str.lower),
        "few.csv": frame.rename(columns={name: name.lower() for name in genes[:4]}),
        "twice.csv": twice,
        "logs.csv": np.log1p(twice),
        "two.csv": two.drop(columns=genes[1]),
        "controls.csv": frame.rename(
            columns={"other1": "BLANK_1", "other2": "NegPrb3"}
        ),
        "names.csv": frame.rename(index={"sample 3": "sample 1"}),
    }
    said = agree(model, files)
    assert "in another case only" in said["lower.csv"].error
    assert "counts are summed" in said["twice.csv"].labels.notes[0]
    assert "control probes" in said["controls.csv"].labels.notes[0]


def test_a_number_has_the_same_bits_however_it_is_written(folder):
    model = load("blood-human")
    numbers = np.random.default_rng(0).normal(20, 4, (2, len(model.genes))).clip(6)
    # The same number in columns with and without missing words is a tie
    numbers[0, :40] = np.repeat(numbers[0, :20], 2)
    written = pd.DataFrame(numbers, ["a", "b"], model.genes).astype(str)
    spellings = ["7.", ".5e1", "+8.25", " 9.1 ", "1.25E+1", "1e-400", "-0", "4e-7"]
    spellings += ["13.0000000000000000000001", "12345678901234567890", "0." + "3" * 40]
    written.iloc[0, 40 : 40 + len(spellings)] = spellings
    words = written.copy()
    words.iloc[1, ::2] = "Undetermined"
    commas = words.replace(r"\.", ",", regex=True).to_csv(sep=";")
    files = {"plain.csv": written, "words.csv": words, "comma.txt": commas}
    inverted = {"words.csv": {"invert": True}, "comma.txt": {"invert": True}}
    assert not any(said.error for said in agree(model, files, inverted).values())
    (ours,) = run(model, [(folder / "plain.csv", {})])
    values = {line["gene"]: float(line["value"]) for line in ours["explained"]["genes"]}
    read = pd.read_csv("plain.csv", index_col=0, float_precision="round_trip")
    assert values == read.iloc[0].to_dict()


def test_files_that_cannot_be_labelled_are_refused_in_the_same_words():
    model = load("blood-human")
    frame = cells(model)
    words = frame.astype(object)
    words.loc["sample 2", model.genes[3]] = "high"
    gaps = frame.astype(float)
    gaps.loc["sample 1", model.genes[:2]] = np.nan
    lines = frame.T.to_csv().splitlines()
    lines[4] += ",7"
    files = {
        "none.csv": frame.drop(columns=model.genes),
        "none-there.csv": frame.drop(columns=model.genes),
        "one-gene.csv": frame.drop(columns=model.genes[1:]),
        "words.csv": words,
        "gaps.csv": gaps,
        "long.csv": frame.iloc[:3].melt(ignore_index=False),
        "longer.csv": "\n".join(lines),
        "header.csv": frame.iloc[:0],
        "empty.csv": "",
        "single.csv": "a\n1\n2\n",
        "turned.csv": frame,
        "unnamed.csv": frame,
        "error.csv": frame,
        "both.csv": frame,
    }
    columns = {"genes_in": "columns"}
    asked = {
        "none-there.csv": columns,
        "one-gene.csv": columns,
        "turned.csv": {"genes_in": "rows"},
        "unnamed.csv": {"gene_column": "symbol"},
        "error.csv": {"target_error": 3},
        "both.csv": {"threshold": 0.5, "target_error": 0.5},
    }
    assert all(one.error for one in agree(model, files, asked).values())


def test_labels_are_checked_by_other_genes_as_predict_checks_them():
    model = telling_model()
    frame = telling_pair()[1].to_df()
    genes = frame.columns
    mixed = np.random.default_rng(0).permutation(genes)
    others = {
        gene: frame[gene].to_numpy()[::-1] for gene in genes.difference(model.genes)
    }
    checking = [gene for gene in model.further.genes if gene in frame]
    some = [*model.genes[:13], *checking[:30]]
    shuffled = frame.sample(frac=1.0, axis=1, random_state=0).set_axis(genes, axis=1)
    files = {
        "right.csv": frame,
        "scrambled.csv": frame.set_axis(mixed, axis=1),
        "target.csv": frame.set_axis(mixed, axis=1),
        "blurred.csv": frame.assign(**others),
        "few.csv": frame.iloc[:4],
        "panel.csv": frame[list(model.genes)],
        "clear.csv": frame[some],
        "cut.csv": shuffled[some],
        "negative.csv": -frame,
    }
    said = agree(model, files, {"target.csv": {"target_error": 0.2}})
    assert said["right.csv"].labels.record["agreement"] > 0.5
    assert said["clear.csv"].labels.record["agreement"] > 0.5
    assert b",alarm\n" in said["scrambled.csv"].csv
    assert any("takes two labels" in note for note in said["few.csv"].labels.notes)
    assert any("a check takes 50" in note for note in said["panel.csv"].labels.notes)
    assert "nothing else checks" in said["cut.csv"].labels.warnings[-1]


def test_labels_of_a_tree_are_those_of_predict():
    model = with_tree(load("pancreas-human"))
    frame = cells(model, 60)
    noise = np.random.default_rng(3).poisson(3, frame.shape)
    mixed = frame.rolling(3, min_periods=1).mean().round().astype(int) + noise
    asked = {"sure.csv": {"threshold": 0.8}, "target.csv": {"target_error": 0.2}}
    names = ["mixed.csv", "sure.csv", "target.csv"]
    said = agree(model, {"clear.csv": frame} | dict.fromkeys(names, mixed), asked)
    assert {"2", "first"} & set(said["sure.csv"].labels.labels)
    assert "coarser than a class" in " ".join(said["sure.csv"].labels.notes)
    assert b"leaf,leaf_confidence" in said["mixed.csv"].csv


@pytest.mark.parametrize("entry", ["app", "worker"])
def test_names_of_the_modules_do_not_collide_and_none_ends_the_script(entry):
    text = bundle(entry)
    assert "import" not in text.split()
    assert "</script" not in text
    pattern = r"^(?:async )?(?:function\*?|const|let|class) (\w+)"
    names = re.findall(pattern, text, re.MULTILINE)
    assert len(names) > 50
    assert len(set(names)) == len(names)


def test_a_model_with_reference_sets_is_refused_in_clear_words():
    from optirank import OptirankClassifier
    from optirank.model import Model

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 8))).add_prefix("g")
    fitted = OptirankClassifier(n_reference=4).fit(X, np.arange(40) % 2)
    with pytest.raises(TypeError, match="reference sets of its own"):
        packed_model(Model.from_estimator(fitted))
