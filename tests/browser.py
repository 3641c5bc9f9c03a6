"""Open a page in headless Chromium and return what its console complained about."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_CONSOLE = re.compile(
    r':CONSOLE[:(]\d+\)?\] "(?P<text>.*)", source: (?P<source>.*?) \(\d+\)'
)


@dataclass(frozen=True)
class Opened:
    """A page as the browser saw it: its elements after loading, and the console's
    messages.
    """

    dom: str
    console: list[str]


def open_page(page: Path, profile: Path) -> Opened:
    """Open a file in Chromium, with a fresh profile folder; skip where there is no
    Chromium.
    """
    command = next(filter(None, map(shutil.which, _NAMES)), None)
    if command is None:
        pytest.skip("no Chromium here to open the page with: apt-get install chromium")
    done = subprocess.run(
        [
            command,
            *_OPTIONS,
            f"--user-data-dir={profile}",
            "--enable-logging=stderr",
            "--v=0",
            "--dump-dom",
            page.resolve().as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if "</html>" not in done.stdout:
        raise AssertionError(f"Chromium did not open {page}: {done.stderr[-2000:]}")
    return Opened(
        done.stdout, [match["text"] for match in _CONSOLE.finditer(done.stderr)]
    )
