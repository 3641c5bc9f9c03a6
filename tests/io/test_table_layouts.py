"""Tables as programs and public archives write them: read, or refused in words."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest

from optirank.datasets import DataError, open_expression, read_expression
from optirank.io.data import notes_of

CBIOPORTAL = """Hugo_Symbol\tEntrez_Gene_Id\tTCGA-1\tTCGA-2
ESR1\t2099\t1.5\t2
GATA3\t2625\t3\t4
"""
FEATURE_COUNTS = """# Program:featureCounts v2.0.1; Command:"featureCounts" "-a" "x.gtf"
Geneid\tChr\tStart\tEnd\tStrand\tLength\ta.bam\tb.bam
ESR1\tchr6;chr6\t1;9\t5;20\t+;+\t400\t7\t8
GATA3\tchr10\t1\t5\t-\t300\t9\t10
"""
GCT = """#1.2
2\t2
Name\tDescription\ts1\ts2
ENSG00000091831.1\tESR1\t1.5\t2
ENSG00000107485.2\tGATA3\t3\t4
"""
GCT3 = """#1.3
2\t2\t2\t1
id\tpr_title\tpr_number\ts1\ts2
er\tna\tna\tpositive\tnegative
ESR1\ta receptor\t5\t1.5\t2
GATA3\ta factor\t6\t3\t4
"""
SERIES = """!Series_title\t"Breast tumours"
!Series_platform_id\t"GPL96"
!Sample_title\t"tumour 1"\t"tumour 2"
!Sample_geo_accession\t"GSM1"\t"GSM2"
!Sample_characteristics_ch1\t"er: positive"\t"er: negative"
!series_matrix_table_begin
"ID_REF"\t"GSM1"\t"GSM2"
"ESR1"\t1.5\t2
"GATA3"\t3\t4
!series_matrix_table_end
"""
STAR = """N_unmapped\t5\t5\t5
N_multimapping\t6\t6\t6
N_noFeature\t7\t8\t9
N_ambiguous\t1\t0\t0
ENSG00000091831\t10\t4\t6
ENSG00000107485\t20\t9\t11
"""
HTSEQ = "ESR1\t10\nGATA3\t20\n__no_feature\t5\n__ambiguous\t1\n"
SALMON = "Name\tLength\tEffectiveLength\tTPM\tNumReads\nESR1\t9\t8\t1.5\t7\nGATA3\t9\t8\t3\t6\n"
RSEM = (
    "gene_id\ttranscript_id(s)\tlength\teffective_length\texpected_count\tTPM\tFPKM\n"
    "ESR1\tA,B\t9\t8\t7\t1.5\t2\nGATA3\tC\t9\t8\t6\t3\t4\n"
)


def written(tmp_path, name, text):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


def notes_of_file(path, **options):
    with open_expression(path, **options) as opened:
        assert len(notes_of(opened)) == len(set(notes_of(opened)))
        return " ".join(notes_of(opened))


@pytest.mark.parametrize(
    ("name", "text", "genes", "samples", "X"),
    [
        ("c.txt", CBIOPORTAL, "ESR1 GATA3", "TCGA-1 TCGA-2", [[1.5, 3], [2, 4]]),
        ("f.txt", FEATURE_COUNTS, "ESR1 GATA3", "a.bam b.bam", [[7, 9], [8, 10]]),
        (
            *("x.gct", GCT, "ENSG00000091831.1 ENSG00000107485.2"),
            *("s1 s2", [[1.5, 3], [2, 4]]),
        ),
        ("x.gct.gz", GCT3, "ESR1 GATA3", "s1 s2", [[1.5, 3], [2, 4]]),
        ("GSE1_series_matrix.txt.gz", SERIES, "ESR1 GATA3", "GSM1 GSM2", None),
        (
            *("p1ReadsPerGene.out.tab", STAR, "ENSG00000091831 ENSG00000107485"),
            *("p1", [[10, 20]]),
        ),
        ("p1.htseq.txt", HTSEQ, "ESR1 GATA3", "p1", [[10, 20]]),
        ("p1/quant.genes.sf", SALMON, "ESR1 GATA3", "p1", [[1.5, 3]]),
        ("p1.genes.results", RSEM, "ESR1 GATA3", "p1", [[1.5, 3]]),
    ],
)
def test_a_format_that_says_what_it_is_is_read_without_options(
    name, text, genes, samples, X, tmp_path
):
    path = written(tmp_path, name, text)
    read = read_expression(path)
    assert list(read.var_names) == genes.split()
    assert list(read.obs_names) == samples.split()
    np.testing.assert_array_equal(read.X, [[1.5, 3], [2, 4]] if X is None else X)
    np.testing.assert_array_equal(
        read_expression(path, genes=[read.var_names[1]]).X, read.X[:, 1:]
    )
    with pytest.raises(DataError, match="genes in rows: leave genes_in='columns' out"):
        read_expression(path, genes_in="columns")


def test_annotations_of_gct_and_geo_are_those_of_the_samples(tmp_path):
    gct = read_expression(written(tmp_path, "x.gct", GCT3), label="er")
    assert gct.obs["er"].tolist() == ["positive", "negative"]
    geo = read_expression(written(tmp_path, "x.txt", SERIES), label="er")
    assert geo.obs["er"].tolist() == ["positive", "negative"]
    assert geo.obs["title"].tolist() == ["tumour 1", "tumour 2"]


def test_genes_are_named_by_the_column_that_has_the_models_genes(tmp_path):
    path = written(tmp_path, "x.gct", GCT)
    known = ["ESR1", "GATA3", "CD4"]
    read = read_expression(path, known_genes=known)
    assert list(read.var_names) == ["ESR1", "GATA3"]
    assert "named by the column 'Description'" in notes_of_file(path, known_genes=known)
    assert list(read_expression(path, gene_column="Description").var_names) == [
        "ESR1",
        "GATA3",
    ]


@pytest.mark.parametrize("column", ["Entrez_Gene_Id", "gene_type", "Length", "CHR"])
def test_columns_that_describe_genes_are_no_samples(column, tmp_path):
    text = f"gene\ts1\t{column}\nA\t1\t2099\nB\t2\t2625\n"
    path = written(tmp_path, "t.tsv", text)
    read = read_expression(path, genes_in="rows")
    assert list(read.obs_names) == ["s1"]
    assert f"no samples are left out: {column}" in notes_of_file(path, genes_in="rows")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        (
            *("p/quant.sf", SALMON.replace("ESR1", "ENST00000456328.2")),
            ["transcripts", "Salmon", "tximport"],
        ),
        (
            "s.txt",
            SERIES.replace('"ESR1"\t1.5\t2\n"GATA3"\t3\t4\n', "").replace(
                "!Sample_title",
                '!Series_supplementary_file\t"ftp://x/counts.txt.gz"\n!Sample_title',
            ),
            ["without values", "supplementary", "counts.txt.gz"],
        ),
        ("s.txt", SERIES[: SERIES.index("!series")], ["cut off"]),
        (
            "n.txt",
            "ENSG00000091831\t1\t2\nENSG00000107485\t3\t4\n",
            ["no header", "ENSG00000091831"],
        ),
        ("x.gct", "#1.2\n1\t1\nName\n", ["no GCT file"]),
    ],
)
def test_what_cannot_be_read_is_named_with_a_remedy(name, text, words, tmp_path):
    path = written(tmp_path, name, text)
    with pytest.raises(DataError) as error:
        read_expression(path)
    for word in (str(path), *words):
        assert word in str(error.value)


def test_probes_of_an_array_are_pointed_out_with_their_platform(tmp_path, caplog):
    probes = [f"{200000 + k}_s_at" for k in range(30)]
    lines = "".join(f'"{probe}"\t{k}.5\t{k}\n' for k, probe in enumerate(probes))
    text = SERIES.replace('"ESR1"\t1.5\t2\n"GATA3"\t3\t4\n', lines)
    path = written(tmp_path, "s.txt", text)
    read_expression(path, known_genes=probes[:2])
    assert caplog.text == ""
    read_expression(path, known_genes=["ESR1"])
    assert "200000_s_at" in caplog.text
    assert "acc=GPL96" in caplog.text
    assert "homologs=" in caplog.text


@pytest.mark.parametrize(
    "names",
    ["ESR1|2099 ?|2625", "ESR1_hg38 2625_HG38", "GRCh38_ESR1 GRCh38_2625"],
)
def test_numbers_and_genomes_are_no_part_of_a_genes_name(names, tmp_path):
    first, second = names.split()
    path = written(tmp_path, "t.csv", f"g,s1\n{first},1\n{second},2\n")
    read = read_expression(path, genes_in="rows")
    assert list(read.var_names) == ["ESR1", "2625"]
    assert "read without" in notes_of_file(path, genes_in="rows")


def test_names_of_two_genomes_stay_as_they_are(tmp_path):
    path = written(tmp_path, "t.csv", "g,s1\nhg19_ESR1,1\nmm10_Esr1,2\n")
    assert list(read_expression(path, genes_in="rows").var_names) == [
        "hg19_ESR1",
        "mm10_Esr1",
    ]


def test_tables_of_a_windows_spreadsheet_are_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("s,centre,A\nx,Köln,1\ny,Zürich,2\n".encode("cp1252"))
    read = read_expression(path, genes_in="columns", label="centre")
    assert read.obs["centre"].tolist() == ["Köln", "Zürich"]


@pytest.mark.parametrize(
    "text",
    [
        "s,A,B,\nx,1,2,\ny,3,4,\n",
        "s,A,B\nx,1,2,\ny,3,4,\n",
        "s,A,B,,\nx,1,2,,\ny,3,4,,\n",
        "# of the clinic\n# 2024\ns,A,B\nx,1,2\ny,3,4\n",
        "#s,A,B\nx,1,2\ny,3,4\n",
    ],
)
def test_separators_at_the_end_of_lines_and_comments_are_no_columns(text, tmp_path):
    read = read_expression(written(tmp_path, "t.csv", text), genes_in="columns")
    assert list(read.var_names) == ["A", "B"]
    np.testing.assert_array_equal(read.X, [[1, 2], [3, 4]])


def test_repeated_sample_names_are_said(tmp_path):
    path = written(tmp_path, "t.csv", "s,A,B\nx,1,2\ny,3,4\nx,1,2\n")
    told = notes_of_file(path, genes_in="columns")
    assert told == "1 sample name occurs more than once: x"


def with_code(code, whole=False):
    values = np.random.default_rng(0).normal(8, 1, (6, 30)).round(0 if whole else 3)
    values[1, 3] = values[2, 3] = values[4, 7] = code
    return pd.DataFrame(values, columns=[f"G{j}" for j in range(30)])


@pytest.mark.parametrize(("code", "whole"), [(-999, False), (-99, False), (-1, True)])
def test_a_number_that_stands_for_missing_values_is_named(code, whole, tmp_path):
    frame = with_code(code, whole)
    frame.to_csv(tmp_path / "t.csv", index_label="sample")
    with pytest.raises(
        DataError, match=rf"2 of 30 genes.*\({code} stands for a missing.*G3 \(2\), G7"
    ):
        read_expression(tmp_path / "t.csv", genes_in="columns")
    read = read_expression(tmp_path / "t.csv", genes_in="columns", drop_missing=True)
    assert read.n_vars == 28
    whole = read_expression(tmp_path / "t.csv", genes_in="columns", any_scale=True)
    np.testing.assert_array_equal(whole.X, frame)


def test_other_negative_values_are_values(tmp_path):
    for code, shift in ((-1, 0), (-7.5, 0), (-9, -10), (-99, -60)):
        frame = with_code(code)
        frame.iloc[0, :2] += shift
        frame.to_csv(tmp_path / "t.csv", index_label="sample")
        read = read_expression(tmp_path / "t.csv", genes_in="columns")
        np.testing.assert_array_equal(read.X, frame)


def test_cycles_are_inverted_and_the_undetermined_ones_are_lowest(tmp_path):
    path = written(tmp_path, "t.csv", "s,A,B,C\nx,20,35.5,Undetermined\ny,21,22,30\n")
    with pytest.raises(DataError, match=r"'Undetermined'.*Ct values.*invert="):
        read_expression(path, genes_in="columns")
    read = read_expression(path, genes_in="columns", invert=True)
    np.testing.assert_array_equal(read.X, [[16.5, 1, 0], [15.5, 14.5, 6.5]])
    assert "are inverted" in notes_of_file(path, genes_in="columns", invert=True)


def test_equal_texts_are_equal_numbers_also_in_columns_with_words(tmp_path):
    texts = [repr(x) for x in np.random.default_rng(0).normal(25, 3, 200).tolist()]
    header = ",".join(f"A{k},B{k}" for k in range(len(texts)))
    same = ",".join(f"{text},{text}" for text in texts)
    words = ",".join("Undetermined,9" for _ in texts)  # A is text, B are numbers
    path = written(tmp_path, "t.csv", f"s,{header}\nx,{same}\ny,{words}\n")
    options = {"genes_in": "columns", "invert": True, "any_scale": True}
    values = read_expression(path, **options).X[0]
    np.testing.assert_array_equal(values[::2], values[1::2])


def test_decimal_commas_are_read_in_columns_with_words(tmp_path):
    path = written(tmp_path, "t.csv", "s;A;B\nx;20,5;22\ny;Undetermined;21,25\n")
    read = read_expression(path, genes_in="columns", invert=True)
    np.testing.assert_array_equal(read.X, [[2.5, 1], [0, 1.75]])


def test_values_that_may_be_cycles_are_pointed_out(tmp_path, caplog):
    values = np.random.default_rng(0).normal(26, 4, (8, 12)).clip(12, 40).round(2)
    frame = pd.DataFrame(values, columns=[f"G{k}" for k in range(12)])
    frame.to_csv(tmp_path / "ct.csv", index_label="sample")
    read_expression(tmp_path / "ct.csv", genes_in="columns", invert=True)
    assert caplog.text == ""
    read_expression(tmp_path / "ct.csv", genes_in="columns")
    assert "as those of Ct (qPCR)" in caplog.text
    caplog.clear()
    (frame - 14).to_csv(tmp_path / "array.csv", index_label="sample")  # logarithms
    frame.round().to_csv(tmp_path / "counts.csv", index_label="sample")
    for name in ("array.csv", "counts.csv"):
        read_expression(tmp_path / name, genes_in="columns", any_scale=False)
    assert caplog.text == ""
