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


def agree(model, folder, tasks):
    """Modules and predict say the same of all tasks, pairs of the name of a file and
    options; gives what predict says.
    """
    tasks = [(folder / name, options) for name, options in tasks]
    theirs = [expected(path, model, options) for path, options in tasks]
    for ours, said in zip(run(model, tasks), theirs, strict=True):
        if said.error:
            assert ours.get("error") == said.error
            continue
        assert "error" not in ours, ours
        compare(ours, said, 1e-12)
        same_csv(ours["csv"], said.csv)
    return theirs


@pytest.mark.parametrize("name", MODELS)
def test_every_shipped_model_gives_the_same_labels(name, folder):
    model = load(name)
    frame = cells(model)
    ties = frame.where(frame > 2, 0)
    ties.iloc[0] = 0
    ties.iloc[1, 5:] = 0
    strange = np.random.default_rng(1).permutation(frame.columns)
    frame.to_csv("all.csv")
    ties.to_csv("ties.csv")
    frame.drop(columns=list(model.genes[::2])).T.to_csv("half.tsv", sep="\t")
    frame.set_axis(strange, axis=1).to_csv("scrambled.csv")
    frame.iloc[:1].to_csv("one.csv")
    said = agree(
        model,
        folder,
        [
            ("all.csv", {}),
            ("ties.csv", {}),
            ("half.tsv", {}),
            ("scrambled.csv", {}),
            ("one.csv", {"threshold": 0.8}),
            ("all.csv", {"target_error": 0.1}),
            ("all.csv", {"target_error": 0.0001}),
        ],
    )
    assert len(set(said[0].labels.labels)) == len(model.classes)
    assert any("the same value in all genes" in note for note in said[1].notes)
    assert said[2].labels.missing


def test_tables_are_read_by_the_same_rules(folder):
    model = load("blood-human")
    frame = cells(model)
    logs = np.log1p(frame).round(4)
    rows = frame.T
    logs.to_csv("comma.txt", sep=";", decimal=",")
    text = frame.to_csv().replace("\n", "\r\n").replace("sample 3", '"sample, ""3"""')
    Path("quotes.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    Path("utf16.tsv").write_text(frame.to_csv(sep="\t"), encoding="utf-16")
    windows = frame.rename(index={"sample 2": "Müller €"}).to_csv().encode("cp1252")
    Path("windows.csv").write_bytes(windows)
    with gzip.open("packed.csv.gz", "wt") as file:
        file.write(frame.to_csv())
    frame.assign(donor=[f"d{k}" for k in range(len(frame))]).to_csv("described.csv")
    named = rows.reset_index(names="symbol")
    named.index = [f"probe{k}" for k in range(len(rows))]
    named.assign(entrez=range(len(rows))).to_csv("rows.csv")
    first, _, rest = rows.to_csv().partition("\n")
    Path("r.csv").write_text(f"{first.lstrip(',')}\n{rest}")
    Path("ended.csv").write_text(
        "\n".join(f"{x}," for x in frame.to_csv().splitlines())
    )
    Path("hash.tsv").write_text("# by hand\n#gene" + rows.to_csv(sep="\t"))
    (logs - logs.mean()).to_csv("centred.csv")
    ((logs - logs.mean()) / logs.std().replace(0, 1)).to_csv("z.csv")
    cycles = (36 - logs * 3).astype(object)
    cycles.iloc[0, :9] = "Undetermined"
    cycles.to_csv("ct.csv")
    plain = ["comma.txt", "quotes.csv", "utf16.tsv", "windows.csv", "packed.csv.gz"]
    plain += ["described.csv", "rows.csv", "r.csv", "ended.csv", "hash.tsv"]
    tasks = [(name, {}) for name in [*plain, "centred.csv", "z.csv"]]
    tasks += [("rows.csv", {"gene_column": "symbol"}), ("ct.csv", {"invert": True})]
    said = agree(model, folder, tasks)
    assert not [one.error for one in said if one.error]
    assert "Müller €".encode() in said[3].csv


def test_names_of_genes_are_found_as_predict_finds_them(folder):
    model = load("pancreas-human")
    frame = cells(model)
    genes = list(model.genes)
    frame.rename(columns=str.lower).to_csv("lower.csv")
    frame.rename(columns={name: name.lower() for name in genes[:4]}).to_csv("few.csv")
    twice = frame.rename(columns={"other1": "other2", "other3": genes[0]})
    twice.to_csv("twice.csv")
    np.log1p(twice).to_csv("logs.csv")
    two = {genes[1].lower(): 1, genes[1].title(): 2}
    frame.assign(**two).drop(columns=genes[1]).to_csv("ambiguous.csv")
    controls = {"other1": "BLANK_1", "other2": "NegPrb3"}
    frame.rename(columns=controls).to_csv("controls.csv")
    frame.rename(index={"sample 3": "sample 1"}).to_csv("names.csv")
    names = ["lower", "few", "twice", "logs", "ambiguous", "controls", "names"]
    said = agree(model, folder, [(f"{name}.csv", {}) for name in names])
    assert "in another case only" in said[0].error
    assert any("counts are summed" in note for note in said[2].notes)
    assert any("control probes" in note for note in said[5].notes)


def test_a_number_has_the_same_bits_however_it_is_written(folder):
    model = load("blood-human")
    genes = list(model.genes)
    numbers = np.random.default_rng(0).normal(20, 4, (2, len(genes))).clip(6)
    # The same number in columns with and without missing words is a tie
    numbers[0, :40] = np.repeat(numbers[0, :20], 2)
    written = pd.DataFrame(numbers, ["a", "b"], genes).astype(str)
    spellings = ["7.", ".5e1", "+8.25", " 9.1 ", "1.25E+1", "1e-400", "-0", "4e-7"]
    long = ["13.00000000000000000000000001", "12345678901234567890", "0." + "3" * 40]
    written.iloc[0, 40 : 40 + len(spellings + long)] = spellings + long
    written.to_csv("plain.csv")
    written.iloc[1, ::2] = "Undetermined"
    written.to_csv("words.csv")
    written.replace(r"\.", ",", regex=True).to_csv("comma.txt", sep=";")
    asked = {
        "plain.csv": {},
        "words.csv": {"invert": True},
        "comma.txt": {"invert": True},
    }
    said = agree(model, folder, [*asked.items()])
    assert not any(theirs.error for theirs in said)
    (ours,) = run(model, [(folder / "plain.csv", {})])
    values = {line["gene"]: float(line["value"]) for line in ours["explained"]["genes"]}
    read = pd.read_csv("plain.csv", index_col=0, float_precision="round_trip")
    assert values == read.iloc[0].to_dict()


def test_files_that_cannot_be_labelled_are_refused_in_the_same_words(folder):
    model = load("blood-human")
    frame = cells(model)
    frame.to_csv("table.csv")
    frame.drop(columns=list(model.genes)).to_csv("none.csv")
    frame.drop(columns=list(model.genes[1:])).to_csv("one-gene.csv")
    words = frame.astype(object)
    words.loc["sample 2", model.genes[3]] = "high"
    words.to_csv("words.csv")
    gaps = frame.astype(float)
    gaps.loc["sample 1", model.genes[:2]] = np.nan
    gaps.to_csv("gaps.csv")
    frame.iloc[:3].melt(ignore_index=False).reset_index().to_csv(
        "long.csv", index=False
    )
    lines = frame.T.to_csv().splitlines()
    lines[4] += ",7"
    Path("longer.csv").write_text("\n".join(lines))
    frame.iloc[:0].to_csv("header.csv")
    Path("empty.csv").write_text("")
    Path("single.csv").write_text("a\n1\n2\n")
    columns = {"genes_in": "columns"}
    said = agree(
        model,
        folder,
        [
            ("none.csv", {}),
            ("none.csv", columns),
            ("one-gene.csv", columns),
            ("words.csv", {}),
            ("gaps.csv", {}),
            ("long.csv", {}),
            ("longer.csv", {}),
            ("header.csv", {}),
            ("empty.csv", {}),
            ("single.csv", {}),
            ("table.csv", {"genes_in": "rows"}),
            ("table.csv", {"gene_column": "symbol"}),
            ("table.csv", {"target_error": 3}),
            ("table.csv", {"threshold": 0.5, "target_error": 0.5}),
        ],
    )
    assert all(one.error for one in said)


def test_labels_are_checked_by_other_genes_as_predict_checks_them(folder):
    model = telling_model()
    frame = telling_pair()[1].to_df()
    genes = frame.columns
    frame.to_csv("right.csv")
    mixed = np.random.default_rng(0).permutation(genes)
    frame.set_axis(mixed, axis=1).to_csv("scrambled.csv")
    others = [gene for gene in genes if gene not in set(model.genes)]
    blurred = frame.copy()
    blurred.loc[frame.index[1::2], others] = frame.loc[frame.index[::2], others].values
    blurred.to_csv("blurred.csv")
    frame.iloc[:4].to_csv("few.csv")
    frame[list(model.genes)].to_csv("panel.csv")
    checking = [gene for gene in model.further.genes if gene in frame]
    some = [*model.genes[:13], *checking[:30]]
    frame[some].to_csv("clear.csv")
    shuffled = frame.sample(frac=1.0, axis=1, random_state=0).set_axis(genes, axis=1)
    shuffled[some].to_csv("cut.csv")
    (-frame).to_csv("negative.csv")
    names = [
        "right",
        "scrambled",
        "blurred",
        "few",
        "panel",
        "clear",
        "cut",
        "negative",
    ]
    tasks = [(f"{name}.csv", {}) for name in names]
    said = agree(model, folder, [*tasks, ("scrambled.csv", {"target_error": 0.2})])
    assert said[0].record["agreement"] > 0.5
    assert "may all be wrong" in said[1].warnings[0]
    assert b",alarm\n" in said[1].csv
    assert any("takes two labels" in note for note in said[3].notes)
    assert any("a check takes 50" in note for note in said[4].notes)
    assert said[5].record["agreement"] > 0.5
    assert "nothing else checks" in said[6].warnings[-1]


def test_labels_of_a_tree_are_those_of_predict(folder):
    model = with_tree(load("pancreas-human"))
    frame = cells(model, 60)
    noise = np.random.default_rng(3).poisson(3, frame.shape)
    mixed = frame.rolling(3, min_periods=1).mean().round().astype(int) + noise
    frame.to_csv("clear.csv")
    mixed.to_csv("mixed.csv")
    said = agree(
        model,
        folder,
        [
            ("clear.csv", {}),
            ("mixed.csv", {}),
            ("mixed.csv", {"threshold": 0.8}),
            ("mixed.csv", {"target_error": 1.0}),
            ("mixed.csv", {"target_error": 0.2}),
        ],
    )
    assert {"2", "first"} & set(said[2].labels.labels)
    assert "coarser than a class" in " ".join(said[2].notes)
    assert b"leaf,leaf_confidence" in said[1].csv


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
