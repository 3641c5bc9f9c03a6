"""The file of the page: its size, its policy, and the command that writes it."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from typer.testing import CliRunner

from optirank.cli import app
from optirank.model import load
from optirank.web.page_file import page, write_page


def optirank(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


def test_a_page_is_small_and_the_same_every_time():
    plain, whole = (page([load("blood-human")], h5ad=h5ad) for h5ad in (False, True))
    assert len(plain.encode()) < 400e3
    assert len(whole.encode()) < 6e6
    assert page([load("blood-human")]) == plain


def test_the_policy_allows_the_scripts_of_the_page_and_no_connection():
    text = page([load("blood-human")])
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert not re.search(r"https?://(?!www\.w3\.org)", text)


def test_the_licence_of_the_reader_of_hdf5_is_in_the_page():
    model = load("breast-er-human")
    assert "h5wasm license statement" in page([model], h5ad=True)
    assert "'wasm-unsafe-eval'" in page([model], h5ad=True)
    assert "h5wasm license statement" not in page([model])


def test_names_of_a_model_cannot_leave_their_place_in_the_page():
    from dataclasses import replace

    model = load("blood-human")
    bad = '"></script><script>alert(1)</script>'
    text = page([replace(model, card=replace(model.card, name=bad))])
    assert "<script>alert(1)" not in text


def test_export_writes_a_page(tmp_path):
    out = tmp_path / "blood.html"
    done = optirank("export", "blood-human", "-o", out)
    assert done.exit_code == 0, done.output
    assert "for a browser" in done.output
    assert out.read_text("utf-8") == page([load("blood-human")])
    again = optirank("export", "blood-human", "-o", out)
    assert again.exit_code == 2
    assert "exists" in again.stderr
    assert optirank("export", "blood-human", "-o", out, "-f").exit_code == 0


def test_write_page_replaces_no_file_unasked(tmp_path):
    out = write_page("leukaemia-human", tmp_path / "page.html", h5ad=True)
    assert out.read_text("utf-8") == page([load("leukaemia-human")], h5ad=True)
    with pytest.raises(ValueError, match="exists"):
        write_page("leukaemia-human", tmp_path / "page.html")
