"""The file of the page: its size, its policy, and the command that writes it."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace

from typer.testing import CliRunner

from optirank.cli import app
from optirank.model import load
from optirank.web.page_file import page


def optirank(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


def test_a_page_is_small_the_same_every_time_and_has_the_licence_of_its_reader():
    plain, whole = (page([load("blood-human")], h5ad=h5ad) for h5ad in (False, True))
    assert len(plain.encode()) < 200e3
    assert len(whole.encode()) < 2e6
    assert page([load("blood-human")]) == plain
    for text in ("h5wasm license statement", "'wasm-unsafe-eval'"):
        assert text in whole
        assert text not in plain


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


def test_names_of_a_model_cannot_leave_their_place_in_the_page():
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
