"""Labelling an atlas on a dask cluster: cells per second beside the reading rate,
memory, faults.

    python benchmarks/bench_cluster.py                    200,000 cells; 1, 2, 4 workers
    python benchmarks/bench_cluster.py --cells 10000000   another number of cells
    python benchmarks/bench_cluster.py --workers 2        other numbers of workers

The atlas is a zarr store (version 3) of generated cells with 20,000 genes, 5 % of the
entries filled. It is as large as is asked for, but the chunks of its first 20,000 cells
are used again and again (hard links), so it takes 200 MB of disk. Scheduler and workers
are processes of their own on the loopback address. The reading rate is that of as many
processes that read the same blocks of the panel's genes and do nothing with them,
before and after (of a large atlas 200,000 cells). The share of it that labelling
reaches is judged by CPU seconds, which other programs disturb less.
"""

from __future__ import annotations

import argparse
import contextlib
import filecmp
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pyarrow.parquet
from scipy import sparse
from timing import QUICK, columns, heading, line

N_GENES, N_CLASSES, N_PANEL = 20_000, 20, 100
PER_CELL = 1000  # genes that are not 0
REPEATED = 2_000 if QUICK else 20_000  # cells whose chunks are used again and again
CHUNK = 1_000_000 if not QUICK else 100_000  # entries
CELLS = 4_000 if QUICK else 200_000
WORKERS = (1,) if QUICK else (1, 2, 4)
SHARE = 0.8  # of the reading rate
MEMORY = 1000  # MB per worker
ALONE = 200_000  # cells: of more, no more are read alone or labelled without a cluster


def write_atlas(path: Path, n_cells: int) -> None:
    """Write a store of so many cells; chunks after the first cells' are links
    to theirs.
    """
    import anndata
    import pandas as pd
    import zarr

    n_repeats = -(-n_cells // REPEATED)
    n_cells = n_repeats * REPEATED
    obs = pd.DataFrame(index=pd.Index(np.arange(n_cells).astype(str)))
    var = pd.DataFrame(index=pd.Index([f"GENE{j}" for j in range(N_GENES)]))
    group = zarr.open_group(str(path), mode="w", zarr_format=3)
    group.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
    anndata.io.write_elem(group, "obs", obs)
    anndata.io.write_elem(group, "var", var)
    X = group.create_group("X")
    X.attrs.update({"encoding-type": "csr_matrix", "encoding-version": "0.1.0"})
    X.attrs["shape"] = [n_cells, N_GENES]
    n_entries = n_cells * PER_CELL
    indptr = np.arange(0, n_entries + 1, PER_CELL)
    X.create_array("indptr", data=indptr, chunks=(1 << 20,))
    size = REPEATED * PER_CELL
    for name, dtype in (("data", "f4"), ("indices", "i4")):
        array = X.create_array(name, shape=(n_entries,), dtype=dtype, chunks=(CHUNK,))
        rng = np.random.default_rng(0)
        for start in range(0, size, CHUNK):
            n = min(CHUNK, size - start)
            if name == "data":
                array[start : start + n] = rng.geometric(0.3, n)
            else:
                array[start : start + n] = draw_genes(rng, n // PER_CELL).ravel()
        folder = path / "X" / name / "c"
        n_chunks = size // CHUNK
        for chunk in range(n_chunks, n_repeats * n_chunks):
            os.link(folder / str(chunk % n_chunks), folder / str(chunk))


def draw_genes(rng: np.random.Generator, n_cells: int) -> np.ndarray:
    """Genes that are not 0, cells x PER_CELL, in rising order; some are more
    frequent.
    """
    weights = np.exp(rng.normal(0.0, 1.0, N_GENES)).astype(np.float32)
    draws = rng.random((n_cells, N_GENES), dtype=np.float32) / weights
    return np.sort(draws.argpartition(PER_CELL, axis=1)[:, :PER_CELL], axis=1)


def training_cells() -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray]:
    """Counts of generated cells with some genes of the atlas, their names, and types."""
    rng = np.random.default_rng(1)
    classes = np.arange(10 * N_CLASSES) % N_CLASSES
    genes = rng.choice(N_GENES, 400, replace=False)
    profiles = rng.gamma(0.3, 1.0, (N_CLASSES, len(genes)))
    X = sparse.csr_matrix(rng.poisson(profiles[classes]).astype(np.float32))
    names = np.array([f"GENE{j}" for j in genes], dtype=object)
    types = np.array([f"type {k:02}" for k in classes], dtype=object)
    return X, names, types


def write_model(path: Path) -> None:
    """A model trained on generated cells with the genes of the atlas."""
    import pandas as pd
    from optirank.io.data import make_profiles

    import optirank
    from optirank.verbs.training import TrainingOptions, train

    X, genes, types = training_cells()
    names = np.array([f"cell {k}" for k in range(len(types))], dtype=object)
    obs = pd.DataFrame({"type": types}, index=names)
    data = make_profiles(X, obs, pd.DataFrame(index=genes))
    options = TrainingOptions(label="type", n_genes=N_PANEL, n_jobs=1)
    optirank.save(train(data, options).model, path, overwrite=True)


_READ = """
import os, sys, time
import numpy as np
from optirank.io.passes import blocks
from optirank.io.reading import open_file
from optirank.model import load

path, model, first, last, go = sys.argv[1:]
with open_file(path) as opened:
    genes = load(model).genes
    next(blocks(opened, genes, 100))
    print("everything is loaded", flush=True)
    while not os.path.exists(go):
        time.sleep(0.01)
    start = time.time()
    cpu = time.process_time()
    for block in blocks(opened, genes, 1000, np.arange(int(first), int(last))):
        pass
print(start, time.time(), time.process_time() - cpu)
"""


def reading_rate(
    atlas: Path, model: Path, n_cells: int, n_processes: int
) -> tuple[float, float]:
    """Cells per second, and per CPU second, that processes read, each a part of
    its own.
    """
    bounds = np.linspace(0, n_cells, n_processes + 1).astype(int)
    go = atlas.with_name("go")
    go.unlink(missing_ok=True)
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", _READ, *map(str, (atlas, model, first, last, go))],
            stdout=subprocess.PIPE,
            text=True,
            env=one_thread(),
        )
        for first, last in itertools.pairwise(bounds)
    ]
    for reader in readers:
        reader.stdout.readline()  # it is ready
    go.touch()
    outputs = [reader.communicate()[0].split() for reader in readers]
    go.unlink()
    times = np.array(outputs, dtype=float)
    seconds = times[:, 1].max() - times[:, 0].min()
    return n_cells / seconds, n_cells / times[:, 2].sum()


def one_thread() -> dict[str, str]:
    """An environment in which numerical libraries use one thread."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    return os.environ | dict.fromkeys(names, "1")


@contextlib.contextmanager
def cluster(n_workers: int, folder: Path) -> Iterator[tuple[str, list[psutil.Process]]]:
    """Scheduler and workers of one thread each, on the loopback address."""
    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    log = (folder / "dask.log").open("w")
    started = []

    def start(*arguments: str) -> None:
        command = [sys.executable, "-m", "distributed.cli.dask_" + arguments[0]]
        command += arguments[1:]
        started.append(
            subprocess.Popen(command, stdout=log, stderr=log, env=one_thread())
        )

    start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
          "--scheduler-file", str(file))  # fmt: skip
    while not file.exists() or not file.read_text().strip():
        time.sleep(0.1)
    address = json.loads(file.read_text())["address"]
    for _ in range(n_workers):
        start("worker", address, "--host", "127.0.0.1", "--nthreads", "1",
              "--no-dashboard", "--no-nanny", "--memory-limit", "2GB", "--death-timeout", "30",
              "--local-directory", str(folder / "workers"))  # fmt: skip
    from distributed import Client

    try:
        with Client(address, timeout=30, set_as_default=False) as client:
            client.wait_for_workers(n_workers, timeout=60)
        yield address, [psutil.Process(process.pid) for process in started[1:]]
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        log.close()


def cpu_seconds(processes: list[psutil.Process]) -> float:
    """Seconds that processes have had a processor."""
    times = [process.cpu_times() for process in processes]
    return sum(taken.user + taken.system for taken in times)


class Peaks:
    """The most memory that processes have, looked at while a block runs."""

    def __init__(self, processes: list[psutil.Process]) -> None:
        self._processes = processes
        self._stop = threading.Event()
        self.most = 0.0

    def __enter__(self) -> Peaks:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            for process in self._processes:
                with contextlib.suppress(psutil.Error):
                    self.most = max(self.most, process.memory_info().rss / 1e6)


def label(
    atlas: Path, model: Path, out: Path, address: str | None, progress: object = None
) -> tuple[float, str]:
    """Cells per second between the first result and the last, and a checksum."""
    from optirank.verbs.label_files import predict_file

    marks: list[tuple[float, int]] = []

    def note(done: int, total: int) -> None:
        marks.append((time.perf_counter(), done))
        if callable(progress):
            progress(done, total)

    labels = predict_file(atlas, model, out, dask=address, progress=note)
    (first, n_before), (last, n_all) = marks[0], marks[-1]
    seconds = max(last - first, 1e-9)  # a single block has no time between blocks
    return (n_all - n_before) / seconds, labels.record["query_checksum"]


def measure(folder: Path, n_cells: int, workers: tuple[int, ...]) -> None:
    """All figures of an atlas."""
    atlas = folder / "atlas.zarr"
    model = folder / "model.optirank"
    write_atlas(atlas, n_cells)
    write_model(model)
    n_cells = -(-n_cells // REPEATED) * REPEATED
    heading(f"{n_cells:,} cells x {N_GENES} genes, zarr, {os.cpu_count()} processors")
    columns()
    checksum = None
    if n_cells <= ALONE:
        alone, checksum = label(atlas, model, folder / "alone.parquet", None)
        line("one process without a cluster", f"{alone:,.0f} cells/s")
    for n_workers in workers:
        out = folder / f"{n_workers}.parquet"
        n_read = min(n_cells, ALONE)
        before = reading_rate(atlas, model, n_read, n_workers)
        with (
            cluster(n_workers, folder) as (address, processes),
            Peaks(processes) as peaks,
            Peaks([psutil.Process()]) as client_peaks,
        ):
            if checksum is not None:  # workers load what they need
                label(atlas, model, folder / "first.parquet", address)
            cpu = cpu_seconds(processes)
            start = time.perf_counter()
            rate, other = label(atlas, model, out, address)
            seconds = time.perf_counter() - start
            cpu_rate = n_cells / (cpu_seconds(processes) - cpu)
        after = reading_rate(atlas, model, n_read, n_workers)
        read, cpu_read = np.mean([before, after], axis=0)
        what = f"{n_workers} worker{'s' * (n_workers > 1)}"
        line(f"{what}: reading alone", f"{read:,.0f} cells/s")
        line(f"{what}: labelling", f"{rate:,.0f} cells/s, {rate / read:.0%}")
        line(f"{what}: reading alone", f"{cpu_read:,.0f} cells/CPU s")
        share = cpu_rate / cpu_read
        figure = f"{cpu_rate:,.0f} cells/CPU s, {share:.0%}"
        line(f"{what}: labelling", figure, f">= {SHARE:.0%}", share >= SHARE)
        memory = f"{peaks.most:.0f} MB"
        line(
            f"{what}: memory of a worker", memory, f"<= {MEMORY}", peaks.most <= MEMORY
        )
        line(f"{what}: memory of the client", f"{client_peaks.most:.0f} MB")
        line(f"{what}: the whole command", f"{seconds:.0f} s")
        n_labels = pyarrow.parquet.read_metadata(out).num_rows
        complete = n_labels == n_cells
        line(f"{what}: labels written", f"{n_labels:,}", f"{n_cells:,}", complete)
        if checksum is not None:
            same = other == checksum and same_files(folder / "alone.parquet", out)
            line(f"{what}: the same labels", str(same), "True", same)
    if checksum is not None:
        killed(folder, atlas, model, max(2, *workers))
        interrupted(folder, atlas, model, max(2, *workers))


def killed(folder: Path, atlas: Path, model: Path, n_workers: int) -> None:
    """A worker is killed midway."""
    out = folder / "killed.parquet"
    with cluster(n_workers, folder) as (address, processes):

        def kill(done: int, total: int) -> None:
            if done > total / 3 and processes[0].is_running():
                with contextlib.suppress(psutil.Error):
                    processes[0].send_signal(signal.SIGKILL)

        label(atlas, model, out, address, kill)
    same = same_files(folder / "alone.parquet", out)
    line(f"one of {n_workers} workers killed: the same labels", str(same), "True", same)


def interrupted(folder: Path, atlas: Path, model: Path, n_workers: int) -> None:
    """The command is killed midway, and given again."""
    out = folder / "interrupted.parquet"
    parts = folder / "interrupted.parquet.parts"
    words = ["predict", atlas, "--model", model, "--out", out, "--force", "--dask"]
    with cluster(n_workers, folder) as (address, _):
        command = [sys.executable, "-m", "optirank", *map(str, words), address]
        first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while first.poll() is None and len(list(parts.glob("*.npz"))) < 2:
            time.sleep(0.02)
        first.kill()
        first.wait()
        n_kept = len(list(parts.glob("*.npz")))
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    what = f"command killed with {n_kept} tasks done, given again"
    same = same_files(folder / "alone.parquet", out)
    line(f"{what}: the same labels", str(same), "True", same)


def same_files(first: Path, second: Path) -> bool:
    """Whether two files have the same bytes."""
    return filecmp.cmp(first, second, shallow=False)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=CELLS)
    parser.add_argument("--workers", type=int, nargs="*", default=WORKERS)
    parser.add_argument("--folder", type=Path, default=None, help="of the atlas")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=args.folder))
    try:
        measure(folder, args.cells, tuple(args.workers))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
