"""How the raw files of a data set are read: the table ``read`` of its entry, typed."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class ReadRules:
    """The rules that make one matrix with labels of the raw files of a set.

    A *reference* names texts, one per sample or gene. ``FILE:a/b/c`` is the member
    ``a/b/c`` of an R file, ``FILE:name`` the column of a table, ``FILE:1`` the column
    at this place (from 0) of a table without header, ``=text`` the same text for all
    samples, ``~pattern`` the first group of a pattern of the samples' names, and
    another word a column of the annotations read with the matrix.
    """

    # The matrix: one of `matrix`, `tumours`, `r_list` and `base`
    matrix: str = ""  # FILE:a/b/c of an R file, or a pattern of tables and .h5ad files
    genes_in: str = "rows"  # or "columns"
    annotations: list[str] = field(default_factory=list)  # columns about samples
    unpack: str = ""  # a pattern of the members that are taken out of archives
    tumours: dict[str, str] = field(default_factory=dict)  # a label per file
    entrez: str = ""  # the table with the symbols of Entrez ids, for `tumours`
    r_list: str = ""  # an R file with a matrix and a table of its samples
    base: str = ""  # the name of another set
    base_labels: list[str] = field(default_factory=list)  # its samples that are taken

    # The samples
    label: str  # a reference
    labels: dict[str, str] = field(default_factory=dict)  # names of the labels
    labels_only: bool = False  # samples whose label `labels` does not name are dropped
    original: str = ""  # a reference: the label before it was named; default: `label`
    keep: dict[str, list[str]] = field(default_factory=dict)  # values by reference
    samples: str = ""  # a reference: their names; or "numbered"
    columns: dict[str, str] = field(default_factory=dict)  # further references
    at_most: int = 0  # samples per class, drawn by chance; 0: all
    dataset: str = ""  # what the column dataset says; default: the name of the set
    about: str = ""  # a pattern of tables about the samples, joined by name
    about_key: str = ""  # the column with the samples' names; default: the first
    batch: dict[str, str] = field(default_factory=dict)  # column, pattern of the file

    # The genes
    genes: str = ""  # a reference: their names
    probes: list[str] = field(default_factory=list)  # references: probes, their genes
    strip_version: bool = False  # ENSG01.4 becomes ENSG01
    spelling: str = ""  # a table whose first column has gene names in their usual case
    spelled: str = ""  # further such names
    drop_genes: str = ""  # a pattern of names
    drop_missing: bool = False  # drop genes with a missing value
    duplicates: str = "first"  # columns of one name: first, strongest (mean) or sum
    clean: bool = False  # see `optirank_lab.data.building`

    # The values
    size_factors: str = ""  # a reference: values are log2(count / factor + 1)
    totals: str = ""  # a reference: values are ln(count * factor + 1), counts sum to it
    counts_from_log2: bool = False  # values are log2(count + 1)
    four_digits: str = ""  # round to four significant digits, by a "factor" or "power"
