"""Every code block of the documentation and the README is run, or says why
it is not.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from doc_blocks import (
    PAGES,
    REASONS,
    ROOT,
    RUN,
    SHOWN,
    Block,
    differences,
    expected_output,
    find_blocks,
    find_cells,
    packages_needed,
    read_blocks,
)

_LIMIT = 600  # seconds a page, on a busy machine
_RUNNER = Path(__file__).with_name("run_page.py")


def pages(*, data: bool) -> list:
    """The pages with blocks to run, those on real data or the others."""
    found = []
    for page in PAGES:
        if any(to_run(block, data=data) for block in read_blocks(page)):
            found.append(pytest.param(page, id=page.stem, marks=pytest.mark.slow))
    return found


def to_run(block: Block, *, data: bool) -> bool:
    return block.language in RUN and block.not_run is None and block.needs_data == data


def run_page(page: Path, folder: Path, *, data: Path | None = None) -> None:
    """Run the blocks of a page in a folder, in a process of its own, and compare what
    is shown.
    """
    blocks = read_blocks(page)
    chosen = [
        k for k, block in enumerate(blocks) if to_run(block, data=data is not None)
    ]
    given, found = folder / ".blocks.json", folder / ".printed.json"
    code = [(b.language, b.code, b.page, b.line) for b in (blocks[k] for k in chosen)]
    given.write_text(json.dumps(code), encoding="utf-8")
    environment = {
        name: value for name, value in os.environ.items() if name != "OPTIRANK_DATA"
    }
    environment |= {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "MPLBACKEND": "Agg",
        "COLUMNS": "100",
        "XDG_CACHE_HOME": str(folder / ".cache"),
        "MPLCONFIGDIR": os.environ.get(
            "MPLCONFIGDIR", str(Path.home() / ".cache" / "matplotlib")
        ),
    }
    if data is not None:
        environment["OPTIRANK_DATA"] = str(data.resolve())
    strict = [] if packages_needed(page) else ["-W", "error"]
    done = subprocess.run(
        [sys.executable, *strict, str(_RUNNER), given.name, found.name],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_LIMIT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    printed = json.loads(found.read_text(encoding="utf-8"))
    for k, output in zip(chosen, printed, strict=True):
        shown = expected_output(blocks, k)
        not_run = blocks[k].language == "r" and shutil.which("Rscript") is None
        if shown is not None and not not_run:
            lost = differences(shown, output)
            assert not lost, (
                f"{shown.where}: {lost} is shown, but printed was\n{output}"
            )


@pytest.fixture(scope="module")
def running(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[Path, Future]]:
    """The pages asked for, two at a time: most of their time one processor is idle."""
    chosen = [
        item.callspec.params["page"]
        for item in request.session.items
        if getattr(item, "originalname", "")
        == test_the_blocks_of_a_page_run_in_order.__name__
    ]
    with ThreadPoolExecutor(2) as pool:
        yield {
            page: pool.submit(run_page, page, tmp_path_factory.mktemp("page"))
            for page in chosen
        }


@pytest.mark.slow
@pytest.mark.parametrize("page", pages(data=False))
def test_the_blocks_of_a_page_run_in_order(
    page: Path, running: dict[Path, Future]
) -> None:
    running[page].result()


@pytest.mark.parametrize("page", pages(data=True))
def test_the_blocks_of_a_page_run_on_real_data(
    page: Path, tmp_path: Path, data_folder: Path
) -> None:
    for package in packages_needed(page):
        pytest.importorskip(package)
    run_page(page, tmp_path, data=data_folder)


def test_blocks_are_run_or_say_why_not() -> None:
    wrong = []
    for block in (block for page in PAGES for block in read_blocks(page)):
        if block.language not in RUN + SHOWN:
            wrong.append(
                f"{block.where}: a block of {block.language!r} is neither run nor "
                "output"
            )
        elif block.not_run is not None and block.not_run not in REASONS:
            wrong.append(
                f"{block.where}: {block.not_run!r} is no reason not to run a block"
            )
        elif block.mark.startswith("needs") and not block.needs_data:
            wrong.append(f"{block.where}: {block.mark!r} is not known")
    assert not wrong, "\n".join(wrong)


def test_few_blocks_are_not_run() -> None:
    blocks = [
        block for page in PAGES for block in read_blocks(page) if block.language in RUN
    ]
    left_out = [f"{block.where} ({block.not_run})" for block in blocks if block.not_run]
    print("not run:", *left_out, sep="\n  ")
    assert len(left_out) <= 0.2 * len(blocks), left_out


def test_lines_of_r_keep_one_sample_a_matrix() -> None:
    """R makes a matrix of one column a vector, where Rscript is not there to tell."""
    page = next(page for page in PAGES if page.name == "r.md")
    code = "".join(block.code for block in read_blocks(page) if block.language == "r")
    chosen = re.findall(r"\w\[[^\[\]]*,[^\[\]]*\]", code.replace('"', ""))
    assert len(chosen) >= 3
    assert [text for text in chosen if "drop = FALSE" not in text] == []


def test_shown_output_is_compared() -> None:
    text = "```bash\nx\n```\n\n```text\nfound 96.0 % of 12 cells\n...\n```\n"
    shown = expected_output(find_blocks(text, "page.md"), 0)
    assert not differences(shown, "noise\nfound  96.1 %   of 12 cells\n")
    assert differences(shown, "found 50.0 % of 12 cells\n")
    assert differences(shown, "lost 96.0 % of 12 cells\n")


def test_where_numbers_vary_words_are_compared() -> None:
    text = (
        "```bash\nx\n```\n\n<!-- output: numbers vary -->\n```text\nfound 96.0 %\n```\n"
    )
    shown = expected_output(find_blocks(text, "page.md"), 0)
    assert not differences(shown, "found 50.0 %\n")
    assert differences(shown, "lost 96.0 %\n")


def test_a_marker_holds_for_the_next_block_only() -> None:
    text = "<!-- not run: takes minutes -->\n```bash\na\n```\n\n```bash\nb\n```\n"
    assert [block.not_run for block in find_blocks(text, "page.md")] == [
        "takes minutes",
        None,
    ]


def test_cells_of_a_notebook_are_blocks_with_their_output() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["words"]},
        {
            "cell_type": "code",
            "source": ["print(1)"],
            "outputs": [{"output_type": "stream", "name": "stdout", "text": ["1\n"]}],
        },
    ]
    notebook = {"cells": cells, "metadata": {"optirank": {"needs": ["data"]}}}
    code, output = find_cells(notebook, "page.ipynb")
    assert code.needs_data
    assert expected_output([code, output], 0) == output


def test_stored_outputs_of_notebooks_hold_no_errors() -> None:
    for page in (ROOT / "docs" / "tutorials").glob("*.ipynb"):
        notebook = json.loads(page.read_text("utf-8"))
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        outputs = [output for cell in cells for output in cell["outputs"]]
        assert outputs, page.name
        assert all(output["output_type"] != "error" for output in outputs), page.name
        assert page.stat().st_size < 400_000, f"{page.name}: draw smaller pictures"


def test_text_between_blocks_ends_a_marker_and_an_output() -> None:
    text = "```bash\na\n```\nwords\n```text\nb\n```\n<!-- needs data -->\nwords\n```bash\nc\n```\n"
    blocks = find_blocks(text, "page.md")
    assert expected_output(blocks, 0) is None
    assert not blocks[2].needs_data
