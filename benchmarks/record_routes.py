"""What every route gives: labels and probabilities, recorded before a rebuilding and compared after.

    .venv/bin/python benchmarks/record_routes.py DATA FOLDER            # record into FOLDER
    .venv/bin/python benchmarks/record_routes.py DATA FOLDER --against OTHER

Routes: estimator, command `train` (the bytes of the model), `predict` as table and .h5ad, with its
options, from .csv, .zarr and 10x, on a cluster, `tl`, a loaded model, the exported table; and hostile
queries: ties, zeros, one sample, half of the genes, other names. DATA is a folder of real .h5ad sets.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from pathlib import Path

import anndata
import numpy as np
import pandas as pd

import optirank

PAIRS = (
    ("baron_h1", "xin_980g"),
    ("segerstolpe_1000g", "baron_h1"),
    ("tm_10x_immune", "zilionis_mouse_immune"),
    ("kang_pbmc_ctrl", "kang_pbmc_stim"),
    ("golub_leukemia", "armstrong_leukemia"),
    ("nki_er", "vdx_er"),
    ("tasic_interneurons", "zeisel_interneurons"),
    ("bladder_gse89", "bladder_gse1827"),
    ("ovtn_gse51088", "ovtn_gse38666"),
    ("mesc_batch2", "mesc_batch3"),
    ("gps_sc", "gps_osmfish"),
)
OPTIONS = {
    "plain": [],
    "error": ["--target-error", "0.1"],
    "adapt": ["--adapt"],
    "threshold": ["--threshold", "0.8"],
}


def command(*words: object) -> int:
    """Run a command of optirank; its exit code."""
    line = [sys.executable, "-m", "optirank", "--quiet", *map(str, words)]
    return subprocess.run(line, capture_output=True).returncode


def probabilities(table: pd.DataFrame) -> np.ndarray:
    """Confidence and probabilities of a table of labels."""
    names = [name for name in table if name.startswith(("confidence", "probability_"))]
    return table[names].to_numpy(float)


class Record:
    """Labels and numbers of each route."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.numbers: dict[str, np.ndarray] = {}

    def add(self, route: str, labels: object, numbers: object = ()) -> None:
        """Keep what a route gave."""
        text = "\0".join(map(str, np.ravel(np.asarray(labels, dtype=object))))
        self.texts[route] = hashlib.sha256(text.encode()).hexdigest()
        self.numbers[route] = np.asarray(numbers, dtype=float)
        print(route, self.texts[route][:12], self.numbers[route].shape, flush=True)

    def add_table(self, route: str, path: Path, code: int) -> None:
        """Keep the labels that a command wrote, or its exit code."""
        if code:
            self.add(route, [f"exit {code}"])
            return
        table = pd.read_csv(path, keep_default_na=False)
        words = [name for name in table if table[name].dtype == object]
        self.add(route, table[words].to_numpy(), probabilities(table))


def hostile(query: anndata.AnnData) -> dict[str, anndata.AnnData]:
    """Queries that are odd, with the genes of another."""
    rng = np.random.default_rng(0)
    dense = query.to_df()
    names = np.array(query.var_names)
    tied = (dense > dense.median(axis=None)).astype(float)
    zeros = dense * (rng.random(dense.shape) < 0.1)
    zeros.iloc[0] = 0.0
    frames = {
        "ties": tied,
        "zeros": zeros,
        "one sample": dense.iloc[:1],
        "half the genes": dense.loc[:, rng.permutation(names)[: len(names) // 2]],
        "scrambled": dense.set_axis(rng.permutation(names), axis=1),
        "lower case": dense.set_axis([name.lower() for name in names], axis=1),
    }
    return {
        name: anndata.AnnData(frame.astype("float32")) for name, frame in frames.items()
    }


def record_pair(
    record: Record, data: Path, folder: Path, train: str, test: str
) -> Path:
    """All routes of one pair; the file of its model."""
    reference, query = data / f"{train}.h5ad", data / f"{test}.h5ad"
    name = f"{train}>{test}"
    model = folder / f"{train}.optirank"
    words = ["--label", "cell_type", "--query", query, "-o", model, "--force"]
    code = command("train", reference, *words)
    content = model.read_bytes() if code == 0 else str(code).encode()
    record.add(f"{name}: bytes of the model", [hashlib.sha256(content).hexdigest()])
    for what, options in OPTIONS.items():
        out = folder / "labels.csv"
        code = command("predict", query, "-m", model, *options, "-o", out, "--force")
        record.add_table(f"{name}: predict {what}", out, code)
    adata, labelled = anndata.read_h5ad(reference), anndata.read_h5ad(query)
    shared = adata.var_names.intersection(labelled.var_names)
    chosen = adata[adata.obs["cell_type"].notna(), shared]
    fitted = optirank.PanelClassifier(n_genes=20, n_jobs=2).fit(
        chosen.to_df(), chosen.obs["cell_type"].astype(str)
    )
    record.add(
        f"{name}: estimator",
        fitted.predict(labelled[:, shared].to_df()),
        fitted.decision_function(labelled[:, shared].to_df()),
    )
    loaded = optirank.load(model)
    frame = labelled.to_df()
    try:
        record.add(
            f"{name}: loaded model", loaded.predict(frame), loaded.predict_proba(frame)
        )
    except ValueError as error:
        record.add(f"{name}: loaded model", [type(error).__name__])
    labels = optirank.tl.annotate(labelled, loaded, verbose=False)
    record.add(f"{name}: tl", labelled.obs["optirank"], labels.probabilities)
    table = loaded.export().set_index("gene")
    record.add(f"{name}: exported table", table.index, table.to_numpy())
    return model


def record_formats(
    record: Record, data: Path, folder: Path, model: Path, test: str
) -> None:
    """One query from every store, by command and by the workers of a cluster."""
    adata = anndata.read_h5ad(data / f"{test}.h5ad")
    files = {
        "csv": folder / "q.csv",
        "zarr": folder / "q.zarr",
        "csc": folder / "csc.h5ad",
        "h5ad": folder / "q.h5ad",
    }
    adata.to_df().to_csv(files["csv"])
    adata.write_zarr(files["zarr"])
    adata.write_h5ad(files["h5ad"])
    by_genes = adata.copy()
    by_genes.X = by_genes.X.tocsc()
    by_genes.write_h5ad(files["csc"])
    for kind, path in files.items():
        extra = ["--genes-in", "columns"] if kind == "csv" else []
        out = folder / "labels.csv"
        code = command("predict", path, "-m", model, *extra, "-o", out, "--force")
        record.add_table(f"from {kind}", out, code)
    out = folder / "labelled.h5ad"
    command("predict", files["h5ad"], "-m", model, "-o", out, "--force")
    obs = anndata.read_h5ad(out).obs
    record.add("into h5ad", obs["optirank"], obs["optirank_confidence"])
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        out = folder / "labels.csv"
        address = ["--dask", cluster.scheduler_address, "--force"]
        code = command("predict", files["zarr"], "-m", model, "-o", out, *address)
        record.add_table("on a cluster", out, code)
        again, here = folder / "again.optirank", folder / "here.optirank"
        words = ["train", files["zarr"], "--label", "cell_type", "-o"]
        code = command(*words, again, *address) + command(*words, here, "--force")
        same = code == 0 and optirank.load(again).export().equals(
            optirank.load(here).export()
        )
        record.add("training on a cluster is that of one process", [same])
    for name, odd in hostile(adata).items():
        path = folder / "odd.h5ad"
        odd.write_h5ad(path)
        out = folder / "labels.csv"
        code = command("predict", path, "-m", model, "-o", out, "--force")
        record.add_table(f"hostile: {name}", out, code)


def record_trees(record: Record, data: Path, folder: Path) -> None:
    """A model with a tree of labels, and the paper's method."""
    adata = anndata.read_h5ad(data / "kang_pbmc_ctrl.h5ad")
    fine = adata.obs["cell_type"].astype(str)
    myeloid = fine.str.contains("mono", case=False)
    adata.obs["coarse"] = np.where(myeloid, "myeloid", "lymphoid")
    path, model, out = (
        folder / "tree.h5ad",
        folder / "tree.optirank",
        folder / "labels.csv",
    )
    adata.write_h5ad(path)
    words = ["--label", "coarse,cell_type", "--n-genes", "20", "-o", model, "--force"]
    command("train", path, *words)
    query = data / "kang_pbmc_stim.h5ad"
    code = command("predict", query, "-m", model, "-o", out, "--force")
    record.add_table("tree: plain", out, code)
    reference, query = data / "nki_er.h5ad", data / "vdx_er.h5ad"
    words = ["--label", "cell_type", "--query", query, "-o", model, "--force"]
    command("train", reference, "--method", "optirank", *words)
    code = command("predict", query, "-m", model, "-o", out, "--force")
    record.add_table("method optirank", out, code)


def compare(record: Record, other: Path, tolerance: float) -> int:
    """Print what differs from another record; how many routes do."""
    before = np.load(other / "record.npz", allow_pickle=False)
    n_different = 0
    for route, text in record.texts.items():
        if f"text {route}" not in before:
            print("NEW      ", route)
            continue
        same = str(before[f"text {route}"]) == text
        numbers = before[f"numbers {route}"]
        apart = np.inf
        if numbers.shape == record.numbers[route].shape:
            apart = float(
                np.nanmax(np.abs(numbers - record.numbers[route]), initial=0.0)
            )
        if not same or apart > tolerance:
            n_different += 1
            print(
                "DIFFERENT",
                route,
                "labels equal" if same else "OTHER LABELS",
                f"numbers within {apart:.2g}",
            )
    print(f"{len(record.texts)} routes, {n_different} differ")
    return n_different


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--tolerance", type=float, default=0.0, help="of probabilities")
    parser.add_argument("--quick", action="store_true", help="two pairs alone")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    record = Record()
    for train, test in PAIRS[:2] if given.quick else PAIRS:
        model = record_pair(record, given.data, given.folder, train, test)
        if test == "xin_980g":
            record_formats(record, given.data, given.folder, model, test)
    record_trees(record, given.data, given.folder)
    arrays = {f"text {route}": np.array(text) for route, text in record.texts.items()}
    arrays |= {f"numbers {route}": numbers for route, numbers in record.numbers.items()}
    np.savez(given.folder / "record.npz", **arrays)
    if given.against is not None:
        sys.exit(bool(compare(record, given.against, given.tolerance)))


if __name__ == "__main__":
    main()
