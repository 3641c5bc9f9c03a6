"""The page's modules under Node say what `optirank predict` says, to the letter."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from web_cases import (
    MODELS,
    cells,
    expected,
    page_options,
    same_record,
    with_tree,
)

from example_model import telling_model, telling_pair
from optirank.datasets import read_expression
from optirank.io.homologs import HOMOLOG_TABLE, ensembl_ids_of, ensembl_symbols
from optirank.model import load
from optirank.web.page_file import (
    WORDS,
    bundle,
    gene_tables,
    generator_state,
    model_data,
    packed_json,
)

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
    pairs = [line.split("\t") for line in HOMOLOG_TABLE.read_text().splitlines()]
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


def test_a_mouse_gene_named_like_another_human_one_is_not_taken_for_it(folder):
    model = load("blood-human")
    pairs = [line.split("\t") for line in HOMOLOG_TABLE.read_text().splitlines()]
    mouse = {human: name for name, human in pairs}
    frame = cells(model, 70)
    others = [name for name in model.further.genes if name not in frame]
    assert "FYB" in model.further.genes  # the table has Fyb as FYB1
    values = np.random.default_rng(0).poisson(3, (len(frame), len(others)))
    frame = frame.join(pd.DataFrame(values, frame.index, others))
    names = [mouse.get(name, name.capitalize()) for name in frame.columns]
    ids = {symbol: key for key, symbol in ensembl_symbols().items() if "MUS" in key}
    frame.set_axis(names, axis=1).to_csv(folder / "mouse.csv")
    ids = [ids.get(name, name) for name in names]
    frame.set_axis(ids, axis=1).to_csv(folder / "ids.csv")
    columns = {"genes_in": "columns"}
    for said in agree(
        model, [(folder / "mouse.csv", columns), (folder / "ids.csv", columns)]
    ):
        assert said.record["agreement"] is not None


def test_the_genes_that_matter_are_said_to_be_missing(folder):
    model = load("lymphocytes-mouse")
    by_weight = np.abs(model.panel.coef).sum(axis=0).argsort()
    frame = cells(model).drop(columns=list(model.genes[by_weight[-30:]]))
    frame.to_csv(folder / "light.csv")
    (said,) = agree(model, [(folder / "light.csv", {"genes_in": "columns"})])
    assert any("of its weight" in note for note in said.notes)


def test_formats_that_say_where_their_genes_are(folder):
    model = load("blood-human")
    names = formats_in(folder, cells(model))
    said = agree(model, [(folder / name, {}) for name in names])
    assert not any(one.error for one in said), [one.error for one in said]
    assert any("named by the column" in note for note in said[-1].notes)


def formats_in(folder, frame):
    """The same samples as programs and collections write them; names of the files."""
    rows = frame.T
    logs = np.log1p(rows).round(4)
    text = rows.to_csv(sep="\t").partition("\n")[2]
    samples = list(rows.columns)
    about = rows.reset_index(names="Name")
    about.insert(1, "Description", "a gene")
    body = about.to_csv(sep="\t", index=False)
    n = f"{len(rows)}\t{len(samples)}"
    (folder / "a.gct").write_text(f"#1.2\n{n}\n{body}")
    about.insert(2, "Chip", "c")
    body = about.to_csv(sep="\t", index=False)
    head, _, below = body.partition("\n")
    dose = "\t".join(["dose", "na", "na", *("high" for _ in samples)])
    (folder / "b.gct").write_text(f"#1.3\n{n}\t2\t1\n{head}\n{dose}\n{below}")
    quoted = "\t".join(f'"{name}"' for name in samples)
    lines = "".join(f'"{line}\n'.replace("\t", '"\t', 1) for line in text.splitlines())
    (folder / "series_matrix.txt").write_text(
        '!Series_title\t"t"\n!Series_platform_id\t"GPL1"\n\n'
        f"!Sample_title\t{quoted}\n!series_matrix_table_begin\n"
        f'"ID_REF"\t{quoted}\n{lines}!series_matrix_table_end\n'
    )
    counted = rows.reset_index(names="Geneid")
    for place, name in enumerate(("Chr", "Start", "End", "Strand", "Length"), 1):
        counted.insert(place, name, 1)
    body = counted.to_csv(sep="\t", index=False)
    (folder / "fc.txt").write_text(f'# Program:featureCounts; Command:"x"\n{body}')
    one = rows.iloc[:, 0]
    pairs = [f"{gene}\t{count}\n" for gene, count in one.items()]
    (folder / "s1_htseq.txt").write_text("".join(pairs) + "__no_feature\t9\n")
    star = [f"{gene}\t{count}\t1\t2\n" for gene, count in one.items()]
    head = [f"N_{kind}\t5\t5\t5\n" for kind in ("unmapped", "noFeature")]
    (folder / "s1_ReadsPerGene.out.tab").write_text("".join(head + star))
    salmon = [f"{gene}\t900\t750\t{count}\t{count}\n" for gene, count in one.items()]
    header = "Name\tLength\tEffectiveLength\tTPM\tNumReads\n"
    (folder / "s1.sf").write_text(header + "".join(salmon))
    hugo = logs.reset_index(names="Hugo_Symbol")
    hugo.insert(1, "Entrez_Gene_Id", range(len(hugo)))
    hugo.to_csv(folder / "cbio.txt", sep="\t", index=False)
    entrez = logs.reset_index(names="symbol")
    entrez.insert(0, "Entrez_Gene_Id", range(len(entrez)))
    entrez.to_csv(folder / "entrez.txt", sep="\t", index=False)
    return [
        *("a.gct", "b.gct", "series_matrix.txt", "fc.txt", "s1_htseq.txt"),
        *("s1_ReadsPerGene.out.tab", "s1.sf", "cbio.txt", "entrez.txt"),
    ]


def test_tables_of_people_are_read_as_predict_reads_them(folder):
    model = load("blood-human")
    frame = cells(model)
    logs = np.log1p(frame).round(4)
    in_rows, in_columns = {"genes_in": "rows"}, {"genes_in": "columns"}
    coded = logs.copy()
    coded.iloc[2, 5] = coded.loc["sample 4", model.genes[7]] = -99
    coded.to_csv(folder / "coded.csv")
    twice = frame.rename(index={"sample 3": "sample 1"})
    twice.to_csv(folder / "twice.csv")
    entrez = [f"{name}|{k}" for k, name in enumerate(frame.columns)]
    frame.set_axis(entrez, axis=1).T.to_csv(folder / "entrez.csv")
    frame.add_prefix("GRCh38_").T.to_csv(folder / "genome.csv")
    cycles = (36 - logs * 3).astype(object)
    cycles.iloc[0, :9] = "Undetermined"
    cycles.to_csv(folder / "ct.csv")
    windows = frame.rename(index={"sample 2": "Müller €"}).to_csv().encode("cp1252")
    (folder / "windows.csv").write_bytes(windows)
    ended = [line + "," for line in frame.to_csv().splitlines()]
    (folder / "ended.csv").write_text("\n".join(ended))
    longer = [line + ",7" * (k == 4) for k, line in enumerate(frame.T.to_csv().split())]
    (folder / "longer.csv").write_text("\n".join(longer))
    (folder / "hash.tsv").write_text("# by hand\n#gene" + frame.T.to_csv(sep="\t"))
    age = logs.assign(age=50)[[*logs.columns[:500], "age", *logs.columns[500:]]]
    age.T.to_csv(folder / "age.csv")
    said = agree(
        model,
        [
            (folder / "coded.csv", in_columns),
            (folder / "coded.csv", in_columns | {"drop_missing": True}),
            (folder / "coded.csv", in_columns | {"any_scale": True}),
            (folder / "twice.csv", in_columns),
            (folder / "entrez.csv", in_rows),
            (folder / "genome.csv", in_rows),
            (folder / "ct.csv", in_columns),
            (folder / "ct.csv", in_columns | {"invert": True}),
            (folder / "windows.csv", in_columns),
            (folder / "ended.csv", in_columns),
            (folder / "longer.csv", in_rows),
            (folder / "age.csv", in_rows),
            (folder / "hash.tsv", in_rows),
        ],
    )
    assert "-99 stands for a missing one" in said[0].error
    assert "Undetermined" in said[6].error
    assert "Müller €".encode() in said[8].csv
    assert any("without their Entrez" in note for note in said[4].notes)


def test_a_number_has_the_same_bits_however_it_is_written(folder):
    model = load("blood-human")
    genes = list(model.genes)
    rng = np.random.default_rng(0)
    numbers = rng.normal(20, 4, (2, len(genes))).clip(6)
    # The same number in columns with and without words is a tie
    numbers[0, :40] = np.repeat(numbers[0, :20], 2)
    written = pd.DataFrame(numbers, ["a", "b"], genes).astype(str)
    spellings = ["7.", ".5e1", "+8.25", " 9.1 ", "1.25E+1", "1e-400", "-0", "4e-7"]
    long = ["13.00000000000000000000000001", "12345678901234567890", "0." + "3" * 40]
    written.iloc[0, 40 : 40 + len(spellings + long)] = spellings + long
    written.to_csv(folder / "plain.csv")
    written.iloc[1, ::2] = "Undetermined"
    written.to_csv(folder / "words.csv")
    written.replace(r"\.", ",", regex=True).to_csv(folder / "comma.txt", sep=";")
    names = ["plain.csv", "words.csv", "comma.txt"]
    asked = [{"genes_in": "columns", "any_scale": True} for _ in names]
    for options in asked[1:]:
        options["invert"] = True
    tasks = [
        (folder / name, options) for name, options in zip(names, asked, strict=True)
    ]
    agree(model, tasks)
    for (path, options), ours in zip(tasks, run(model, tasks), strict=True):
        theirs = read_expression(path, **options).to_df().iloc[0]
        found = {
            one["gene"]: one["value"]
            for one in ours["explained"]["classes"][0]["genes"]
        }
        assert found == {gene: theirs[gene] for gene in found}
        assert len(found) > 90


def test_files_without_a_table_are_refused_in_the_same_words(folder):
    model = load("blood-human")
    start = '!Series_title\t"t"\n!Series_supplementary_file\t"ftp://a/b.gz"\n'
    (folder / "cut.txt").write_text(start)
    empty = '!series_matrix_table_begin\n"ID_REF"\t"a"\n!series_matrix_table_end\n'
    (folder / "empty.txt").write_text(start + empty)
    (folder / "none.gct").write_text("#1.2\n5\t1\nName\n")
    (folder / "head.tsv").write_text("ENSG00000000003\t1\t2\nENSG00000000005\t1\t2\n")
    header = "Name\tLength\tEffectiveLength\tTPM\tNumReads\n"
    (folder / "s1.sf").write_text(f"{header}ENST00000000233.10\t1\t1\t3\t4\n")
    (folder / "fine.gct").write_text("#1.2\n1\t1\nName\tDescription\ts\nCD4\ta\t1\n")
    said = agree(
        model,
        [
            (folder / "cut.txt", {}),
            (folder / "empty.txt", {}),
            (folder / "none.gct", {}),
            (folder / "head.tsv", {}),
            (folder / "s1.sf", {}),
            (folder / "fine.gct", {"genes_in": "columns"}),
        ],
    )
    assert all(one.error for one in said)


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
    assert ours["error"] == said
    assert "use genes_in='columns'" in said


def test_labels_are_checked_by_other_genes_as_predict_checks_them(folder):
    model = telling_model()
    assert model.further is not None
    frame = telling_pair()[1].to_df()
    genes = frame.columns
    frame.to_csv(folder / "right.csv")
    mixed = np.random.default_rng(0).permutation(genes)
    frame.set_axis(mixed, axis=1).to_csv(folder / "scrambled.csv")
    others = [gene for gene in genes if gene not in set(model.genes)]
    blurred = frame.copy()
    blurred.loc[frame.index[1::2], others] = frame.loc[frame.index[::2], others].values
    blurred.to_csv(folder / "blurred.csv")
    frame.iloc[:4].to_csv(folder / "few.csv")
    frame[list(model.genes)].to_csv(folder / "panel.csv")
    checking = [gene for gene in model.further.genes if gene in frame]
    for name, table in (
        ("clear", frame),
        ("cut", frame.sample(frac=1.0, axis=1, random_state=0)),
    ):
        some = [*model.genes[:13], *checking[:30]]
        table.set_axis(genes, axis=1)[some].to_csv(folder / f"{name}.csv")
    (-frame).to_csv(folder / "negative.csv")
    gaps = frame.astype(float)
    gaps.iloc[1, ::40] = np.nan
    gaps.to_csv(folder / "gaps.csv")
    columns = {"genes_in": "columns"}
    said = agree(
        model,
        [
            (folder / "right.csv", columns | {"target_error": 0.2}),
            (folder / "scrambled.csv", columns),
            (folder / "scrambled.csv", columns | {"strict": True}),
            (folder / "scrambled.csv", columns | {"target_error": 0.2}),
            (folder / "blurred.csv", columns),
            (folder / "few.csv", columns | {"target_error": 0.2}),
            (folder / "panel.csv", columns),
            (folder / "clear.csv", columns | {"target_error": 0.2}),
            (folder / "cut.csv", columns | {"target_error": 0.2}),
            (folder / "negative.csv", columns),
            (folder / "gaps.csv", columns),
        ],
    )
    assert said[0].record["agreement"] > 0.5
    assert said[1].labels.alarmed
    assert b",alarm\n" in said[1].csv
    assert said[2].labels.withheld.all()
    assert said[3].labels.withheld.all()
    assert any("takes two labels" in note for note in said[5].notes)
    assert any("a check takes 50" in note for note in said[6].notes)
    assert said[7].record["agreement"] > 0.5
    (alarm,) = said[8].labels.warnings
    assert "of the panel's genes are missing, and nothing else checks" in alarm
    assert said[8].labels.withheld.all()
    assert any("in the opposite order" in note for note in said[9].notes)


def test_labels_of_a_tree_are_those_of_predict(folder):
    model = with_tree(load("pancreas-human"))
    frame = cells(model, 60)
    noise = np.random.default_rng(3).poisson(3, frame.shape)
    mixed = frame.rolling(3, min_periods=1).mean().round().astype(int) + noise
    frame.to_csv(folder / "clear.csv")
    mixed.to_csv(folder / "mixed.csv")
    columns = {"genes_in": "columns"}
    said = agree(
        model,
        [
            (folder / "clear.csv", columns),
            (folder / "mixed.csv", columns | {"levels": True}),
            (folder / "mixed.csv", columns | {"threshold": 0.8, "levels": True}),
            (folder / "mixed.csv", columns | {"target_error": 1.0}),
            (folder / "mixed.csv", columns | {"target_error": 0.2}),
            (folder / "mixed.csv", columns | {"unknown_rate": 0.2, "strict": True}),
        ],
    )
    given = set(said[2].labels.labels)
    assert {"2", "first"} & given
    assert "coarser than a class" in " ".join(said[2].notes)
    assert b"leaf,leaf_confidence,level_coarse,level_2" in said[1].csv
    part = with_tree(model.subset(model.classes[[0, 1, 2, 5]]))
    panel = part.panel
    coef = panel.coef.copy()
    coef[0, :50] = 0
    part = replace(part, panels={part.n_genes: replace(panel, coef=coef)})
    cells(part)[list(panel.genes[:50])].to_csv(folder / "without.csv")
    (left,) = agree(part, [(folder / "without.csv", columns | {"drop_classes": True})])
    assert "LEFT OUT" in left.notes[0]
    (flat,) = agree(
        load("lymphocytes-mouse"),
        [(folder / "clear.csv", columns | {"levels": True})],
    )
    assert "has no tree of labels" in flat.error


def test_classes_are_left_out_as_predict_leaves_them_out(folder):
    model = load("pancreas-human").subset(["alpha", "beta", "delta"])
    panel = model.panel
    kept = panel.genes[panel.coef[0] == 0]
    if len(kept) < 2:  # every gene votes for every class: take a vote away
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


@pytest.mark.parametrize("entry", ["app", "worker"])
def test_names_of_the_modules_do_not_collide_and_none_ends_the_script(entry):
    text = bundle(entry)
    assert "import" not in text.split()
    assert "</script" not in text
    pattern = r"^(?:async )?(?:function\*?|const|let|class) (\w+)"
    names = re.findall(pattern, text, re.MULTILINE)
    assert len(names) > 100
    assert len(set(names)) == len(names)


def test_a_model_with_reference_sets_is_refused_in_clear_words():
    from optirank import OptirankClassifier
    from optirank.model import Model

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 8))).add_prefix("g")
    fitted = OptirankClassifier(n_reference=4).fit(X, np.arange(40) % 2)
    with pytest.raises(TypeError, match="reference sets of its own"):
        model_data(Model.from_estimator(fitted))
