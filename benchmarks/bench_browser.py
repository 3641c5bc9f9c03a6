"""The page that labels in a browser: size, first paint, and seconds and memory for large files.

A page of blood-human, in headless Chromium: a CSV of 1,000 samples by 20,000 genes, and an
.h5ad of 50,000 cells by 20,000 genes, 5 % of the entries filled.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
from timing import QUICK, columns, heading, line

import optirank
from optirank.web import write_page

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from browser import NAMES, Session, open_session

MODEL = "blood-human"
N_GENES = 2000 if QUICK else 20_000
N_SAMPLES, N_CELLS = (50, 500) if QUICK else (1000, 50_000)
DENSITY = 0.05
_STEP = 2000  # cells written together
_READY = "document.body.dataset.ready"
_SHOWN = "!document.getElementById('labels').hidden"
_FAILED = "!document.getElementById('error').hidden"
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def gene_names() -> list[str]:
    """Names of the genes: those of the model among others."""
    known = list(optirank.load(MODEL).genes)
    return [*known, *(f"GENE{k}" for k in range(N_GENES - len(known)))]


def write_csv(path: Path) -> None:
    """Counts of samples, genes in columns."""
    rng = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as file:
        file.write(",".join(["", *gene_names()]) + "\n")
        for k in range(N_SAMPLES):
            counts = rng.negative_binomial(0.5, 0.01, N_GENES)
            file.write(f"sample{k}," + ",".join(map(str, counts.tolist())) + "\n")


def write_cells(path: Path) -> None:
    """Counts of cells as CSR, gzipped as anndata does when asked to."""
    import anndata
    import pandas as pd

    obs = pd.DataFrame(index=[f"cell{k}" for k in range(N_CELLS)])
    var = pd.DataFrame(index=gene_names())
    anndata.AnnData(obs=obs, var=var).write_h5ad(path)
    rng = np.random.default_rng(0)
    per_cell = int(DENSITY * N_GENES)
    with h5py.File(path, "r+") as file:
        if "X" in file:
            del file["X"]
        group = file.create_group("X")
        group.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0"})
        group.attrs["shape"] = np.array([N_CELLS, N_GENES])
        options = {"maxshape": (None,), "compression": "gzip", "chunks": (1 << 16,)}
        data = group.create_dataset("data", (0,), "f4", **options)
        indices = group.create_dataset("indices", (0,), "i4", **options)
        pointers = per_cell * np.arange(N_CELLS + 1, dtype=np.int64)
        group.create_dataset("indptr", data=pointers)
        for first in range(0, N_CELLS, _STEP):
            n_cells = min(_STEP, N_CELLS - first)
            step = N_GENES // per_cell
            jitter = rng.integers(0, step, (n_cells, per_cell))
            places = (step * np.arange(per_cell) + jitter).astype("i4").ravel()
            counts = rng.geometric(0.4, len(places)).astype("f4")
            for stored, values in ((data, counts), (indices, places)):
                stored.resize(len(stored) + len(values), axis=0)
                stored[-len(values) :] = values


def peak_of(session: Session) -> float:
    """The most memory that a process of the browser's pages has had, in MB."""
    most = 0.0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            words = (status.parent / "cmdline").read_bytes()
            text = status.read_text()
        except OSError:  # it has ended
            continue
        if str(session.folder).encode() in words and b"--type=renderer" in words:
            peak = re.search(r"VmHWM:\s+(\d+) kB", text)
            most = max(most, int(peak[1]) / 1024 if peak else 0.0)
    return most


def seconds_to_label(session: Session, page: Path, query: Path) -> float:
    """Seconds from the choice of a file to its labels."""
    session.open(page)
    session.wait_for(_READY)
    start = time.perf_counter()
    session.choose_file("#file", query)
    session.wait_for(f"{_SHOWN} || {_FAILED}", 600)
    if session.run(_FAILED):
        sys.exit(session.run("document.getElementById('error').textContent"))
    return time.perf_counter() - start


def main() -> None:
    """All figures, each with its target."""
    if not any(map(shutil.which, NAMES)):
        print("no Chromium here to measure the page in: make browser")
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        heading(f"The page of {MODEL}")
        columns()
        plain = write_page(MODEL, folder / "plain.html")
        whole = write_page(MODEL, folder / "whole.html", h5ad=True)
        sizes = [page.stat().st_size / 1e3 for page in (plain, whole)]
        line("size", f"{sizes[0]:.0f} kB", "< 400", sizes[0] < 400)
        line("size with .h5ad", f"{sizes[1]:.0f} kB", "< 6000", sizes[1] < 6000)
        table, cells = folder / "table.csv", folder / "cells.h5ad"
        write_csv(table)
        write_cells(cells)
        with open_session(folder) as session:
            session.open(plain)
            session.wait_for(_PAINT)
            paint = session.run(_PAINT)
            line("first paint", f"{paint:.0f} ms", "< 1000", paint < 1000)
            heading("From the choice of a file to its labels")
            columns()
            seconds = seconds_to_label(session, plain, table)
            what = (
                f"{N_SAMPLES:,} x {N_GENES:,} .csv, {table.stat().st_size / 1e6:.0f} MB"
            )
            line(what, f"{seconds:.1f} s", "<= 10", seconds <= 10)
        with open_session(folder / "again") as session:
            seconds = seconds_to_label(session, whole, cells)
            what = (
                f"{N_CELLS:,} x {N_GENES:,} .h5ad, {cells.stat().st_size / 1e6:.0f} MB"
            )
            line(what, f"{seconds:.1f} s", "<= 60", seconds <= 60)
            peak = peak_of(session)
            line("peak memory of the page", f"{peak:.0f} MB", "<= 1500", peak <= 1500)


if __name__ == "__main__":
    main()
