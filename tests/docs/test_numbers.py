"""Numbers in sentences of the pages are those of results/; tables are filled by a script."""

from __future__ import annotations

import pandas as pd
import pytest
from doc_blocks import ROOT

RESULTS = ROOT / "results"


def read(name: str) -> pd.DataFrame:
    path = RESULTS / f"{name}.csv"
    if not path.is_file():
        pytest.skip(f"no {path.name} in results/")
    return pd.read_csv(path, comment="#", dtype={"k": str})


def says(page: str, sentence: str) -> None:
    """Whether a page has these words, wherever its lines break."""
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert sentence in text, f"{page} does not say: {sentence}"


def mean(
    table: pd.DataFrame, column: str = "balanced_accuracy", **where: object
) -> str:
    """Mean of the rows with these values, in %."""
    for name, value in where.items():
        table = table[table[name] == value]
    return f"{100 * table[column].mean():.1f}"


def test_accuracy_by_number_of_genes() -> None:
    found = read("curve")
    panel = [mean(found, method="panel", k=k) for k in ("100", "30")]
    logs = mean(found, method="LR on log values", k="all")
    ranks = mean(found, method="LR on ranks, best t", k="all")
    says("README.md", f"mean over {found['pair'].nunique()} pairs of public data sets")
    says("README.md", f"{panel[0]} % with 100 genes and {panel[1]} % with 30")
    says(
        "README.md",
        f"log values of all genes reaches {logs} %, on their ranks {ranks} %",
    )


def test_accuracy_with_missing_genes() -> None:
    found = read("missing")
    none, some = (mean(found, genes=100, missing=share) for share in (0.0, 0.3))
    says("README.md", f"falls by {float(none) - float(some):.1f} points (")
    says("docs/withheld.md", f"from {none} to {some} % (")


def test_withholding() -> None:
    found = read("error_control")
    found = found[found["target"] == 0.05]
    given = found[found["n_given"] > 0]
    error = given["n_wrong"] / given["n_given"]
    before = (given["n_wrong_of_all"] / given["n_query"]).mean()
    share = f"{100 * (given['n_given'] / given['n_query']).mean():.1f} %"
    says(
        "README.md",
        f"{100 * error.mean():.1f} % of the labels given were wrong on average",
    )
    says("README.md", f"({100 * before:.1f} % without it)")
    says("README.md", f"{share} of the samples got a label, on the {len(given)} pairs")
    says(
        "docs/withheld.md",
        f"{len(found) - len(given)} had too few training samples for 5 %",
    )
    says(
        "docs/withheld.md",
        f"other {len(given)} the error was at most 5 % for {sum(error <= 0.05)}",
    )
    says(
        "docs/withheld.md",
        f"Its mean was {100 * error.mean():.1f} % ({100 * before:.1f} %",
    )
    says("docs/withheld.md", f"{share} of the samples kept their label")


def test_unknown_types() -> None:
    found = read("unknown")
    tissues = found.groupby("tissue")["unknown_found"].mean() * 100
    says("docs/withheld.md", f"{len(found)} classes were left out of training")
    says(
        "docs/withheld.md",
        f"{100 * found['unknown_found'].mean():.0f} % of their samples",
    )
    says("docs/withheld.md", f"({tissues['human blood cells']:.0f} % in blood cells")
    says("docs/withheld.md", f"{tissues['pancreas']:.0f} % in pancreas)")
    says(
        "docs/withheld.md",
        f"{mean(found, 'known_lost')} % of the samples of known classes",
    )


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("whole query", "all samples"),
        ("one class at 90 %", "one class is 90 % of the samples"),
        ("one class alone", "samples of a single class"),
        ("one class left out", "a class of the model is absent"),
    ],
)
def test_adapting(query: str, words: str) -> None:
    found = read("adaptation")
    plain, adapted = (
        mean(found, column, query=query) for column in ("plain", "adapted")
    )
    says("docs/withheld.md", f"| {words} | {plain} | {adapted} |")
