"""The site is made without a warning, and has every public name, command and option."""

from __future__ import annotations

import html
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from doc_blocks import ROOT

pytestmark = pytest.mark.slow

pytest.importorskip("sphinx", reason="no Sphinx here: pip install 'optirank[docs]'")
pytest.importorskip(
    "myst_parser", reason="no myst-parser here: pip install 'optirank[docs]'"
)
pytest.importorskip("furo", reason="no furo here: pip install 'optirank[docs]'")

pytestmark = pytest.mark.slow

MODULES = (
    "optirank",
    "optirank.datasets",
    "optirank.model",
    "optirank.pl",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    options = (
        "-W",
        "--keep-going",
        "-n",
        "-q",
        "-b",
        "html",
        "-d",
        str(folder / "doctrees"),
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            *options,
            str(ROOT / "docs"),
            str(folder / "html"),
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "html"


def words(page: Path) -> str:
    """The text of a page."""
    body = re.sub(
        r"<(script|style).*?</\1>",
        "",
        page.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    return html.unescape(re.sub(r"<[^>]+>", "", body))


def test_every_page_is_reached_from_the_first(site: Path) -> None:
    first = (site / "index.html").read_text(encoding="utf-8")
    for page in sorted((ROOT / "docs").glob("*.md")):
        assert f'href="{page.stem}.html"' in first or page.stem == "index", page.name
    for page in sorted((ROOT / "docs" / "tutorials").glob("*.ipynb")):
        assert f'href="tutorials/{page.stem}.html"' in first, page.name


def test_notebooks_are_pages_with_their_pictures(site: Path) -> None:
    page = (site / "tutorials" / "scikit-learn.html").read_text(encoding="utf-8")
    assert "PanelClassifier" in page
    assert "balanced accuracy on B" in words(site / "tutorials" / "scikit-learn.html")
    pictures = (site / "tutorials" / "single-cells.html").read_text(encoding="utf-8")
    assert pictures.count("<img") >= 4


def test_the_api_page_has_every_public_name(site: Path) -> None:
    page = (site / "api.html").read_text(encoding="utf-8")
    names = [
        f"{module}.{name}"
        for module in MODULES
        for name in importlib.import_module(module).__all__
        if not name.startswith("__")
    ]
    names += ["optirank.tl.train", "optirank.tl.annotate", "optirank.tl.evaluate"]
    described = {
        name.split(".")[-1] for name in re.findall(r'id="(optirank[\w.]+)"', page)
    }
    assert not [name for name in names if name.split(".")[-1] not in described]


def test_the_command_line_page_has_every_command_and_option(site: Path) -> None:
    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    try:
        from command_tables import find_commands, read_help
    finally:
        sys.path.remove(str(ROOT / "docs" / "_ext"))

    page = words(site / "command-line.html")
    assert len(find_commands()) >= 9
    for name, command in find_commands().items():
        assert f"optirank {name}" in page
        for option in read_help(command).options:
            assert option.names in page, (name, option.names)
            assert option.words, (name, option.names)
            assert option.words in page, (name, option.words)


def test_option_tables_show_plain_kinds(site: Path) -> None:
    page = words(site / "command-line.html")
    for plain in ("--label, -l COLUMN", "--n-jobs, -j N", "--genes-in rows|columns"):
        assert plain in page, plain
    for code in ("list[", "range", "<str>", " str\n", "[Path]"):
        assert code not in page, code


def test_the_pages_load_nothing_from_elsewhere(site: Path) -> None:
    loaded = re.compile(r'<(?:script|img|link)[^>]+(?:src|href)="(https?:[^"]+)"')
    for page in site.glob("*.html"):
        assert not loaded.findall(page.read_text(encoding="utf-8")), page.name


def test_formulas_are_drawn(site: Path) -> None:
    page = (site / "method.html").read_text(encoding="utf-8")
    assert page.count("<math") > 20
    assert "\\frac" not in words(site / "method.html")


def test_the_site_has_the_page_that_labels_in_a_browser(site):
    page = (site / "label.html").read_text("utf-8")
    assert page.count('data-part="model"') >= 6
    assert 'href="label.html"' in (site / "browser.html").read_text("utf-8")
