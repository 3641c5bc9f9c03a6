"""Take the screenshots of the reports on the pages, with headless Chromium.

    python docs/figures/take_screenshots.py

Real and generated cells are labelled, a generated pair is trained on and evaluated, and a panel is
designed on the imaging pair, in a temporary folder; real sets are those of the folder of data sets
(OPTIRANK_DATA). Parts of the pages are photographed into docs/figures.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageChops

from optirank.web import write_page
from optirank_lab.data.registry import data_folder

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))
from browser import open_session

WIDTH, TALL, MARGIN = 1000, 3000, 16  # pixels
BROWSER_TALL = 1600
DARK_ONLY = "@media screen and (prefers-color-scheme: dark)"
SHOTS = {  # name of the figure -> page, the headings to show ("" is the top), pixels at most
    "cells": ("cells.html", ("", "Label by label"), TALL),
    "card": ("cells.html", ("Model card",), 1290),
    "card-dark": ("cells.html", ("Model card",), 1290),
    "report-sizes": ("report.html", ("How many genes",), TALL),
    "evaluation-top": ("evaluation.html", ("", "Class by class"), 1440),
    "evaluation-confidence": ("evaluation.html", ("Confidence",), TALL),
    "assay-top": ("panel.html", ("", "What may happen on the assay"), 1100),
}


def make_pages(folder: Path, data: Path) -> None:
    """Train and evaluate on the generated pair; design a panel on the imaging pair."""
    imaged = data / "gps_osmfish.h5ad"
    for command in (
        "example pair",
        f"predict {data / 'xin_980g.h5ad'} --model pancreas-human -o cells.csv --report cells.html",
        "train pair/reference.h5ad --label cell_type --query pair/query.h5ad -o model.optirank "
        "--report report.html",
        "evaluate pair/query.h5ad -m model.optirank --label cell_type --report evaluation.html",
        f"design {data / 'gps_sc.h5ad'} --label cell_type --query {imaged} --n-genes 20 "
        f"--test {imaged} -o panel.csv --report panel.html",
    ):
        done = [sys.executable, "-m", "optirank", *command.split()]
        subprocess.run(done, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def part(page: str, headings: tuple[str, ...]) -> str:
    """A page with only these sections."""
    head, body = page.split("<body>")
    sections = re.split(r"(?=<h2)", body)
    kept = [
        section
        for section in sections
        if (re.match(r"<h2[^>]*>([^<]*)", section) or [None, ""])[1] in headings
    ]
    return f"{head}<body>{''.join(kept)}</body></html>"


def photograph(page: Path, out: Path, height: int) -> None:
    """A page as a picture, without the white space around it."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("needs Chromium: make browser")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    options += ["--virtual-time-budget=3000"]  # so that figures are drawn
    options += [f"--window-size={WIDTH},{TALL}", f"--screenshot={out}", page.as_uri()]
    for _ in range(5):  # now and then Chromium draws nothing
        subprocess.run([browser, *options], check=True, capture_output=True)
        picture = Image.open(out).convert("RGB")
        ground = picture.getpixel((0, picture.height - 1))
        blank = Image.new("RGB", picture.size, ground)
        drawn = ImageChops.difference(picture, blank).getbbox()
        if drawn is not None:
            break
    else:
        sys.exit(f"{page.name}: Chromium drew nothing")
    left, top, right, bottom = drawn
    box = (
        max(left - MARGIN, 0),
        max(top - MARGIN, 0),
        min(right + MARGIN, picture.width),
        min(bottom + MARGIN, height),
    )
    picture.crop(box).save(out, optimize=True)


def photograph_browser(folder: Path, query: Path) -> None:
    """The page that labels in a browser, with the labels of a query."""
    page = write_page("pancreas-human", folder / "browser.html", h5ad=True)
    with open_session(folder / "browser") as session:
        session.open(page)
        session.wait_for("document.body.dataset.ready")
        session.choose_file("#file", query)
        session.wait_for("!document.getElementById('labels').hidden")
        session.look(HERE / "browser.png", WIDTH)  # the first one lacks what sticks
        session.look(HERE / "browser.png", WIDTH)
    picture = Image.open(HERE / "browser.png").convert("RGB")
    picture.crop((0, 0, WIDTH, BROWSER_TALL)).quantize(64).save(
        HERE / "browser.png", optimize=True
    )


def main() -> None:
    """Take all of them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = data_folder().resolve()
        make_pages(folder, data)
        for shot, (page, headings, height) in SHOTS.items():
            shown = folder / f"{shot}-part.html"
            text = part((folder / page).read_text(encoding="utf-8"), headings)
            if shot.endswith("-dark"):
                text = text.replace(DARK_ONLY, "@media screen")
            shown.write_text(text, encoding="utf-8")
            photograph(shown, HERE / f"{shot}.png", height)
        photograph_browser(folder, data / "xin_980g.h5ad")


if __name__ == "__main__":
    main()
