"""Small expression data, drawn by hypothesis or by hand, and their files in
every format.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import anndata
import h5py
import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse as sp
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from optirank.data.opening import open_profiles
from optirank.data.passes import read_values
from optirank.data.profiles import text_column
from profiles import made

NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")),
    min_size=1,
    max_size=8,
).filter(lambda name: name == name.strip())


@st.composite
def expression(draw, names=NAMES) -> anndata.AnnData:
    n, d = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    numbers = draw(
        st.sampled_from(
            [st.integers(0, 50), st.floats(-1e6, 1e6, allow_subnormal=False)]
        )
    )
    dtype = np.float64 if "float" in repr(numbers) else np.int64
    X = draw(hnp.arrays(dtype, (n, d), elements=numbers))
    genes = draw(st.lists(names, min_size=d, max_size=d, unique=True))
    samples = draw(st.lists(names, min_size=n, max_size=n, unique=True))
    labels = draw(st.lists(st.sampled_from(["alpha", "beta"]), min_size=n, max_size=n))
    return make(X, genes, samples, labels)


def make(X, genes=None, samples=None, labels=None) -> anndata.AnnData:
    n, d = X.shape
    genes = np.array(genes or [f"G{j}" for j in range(d)], dtype=object)
    samples = np.array(samples or [f"s{i}" for i in range(n)], dtype=object)
    labels = labels or ["alpha", "beta"] * n
    obs = pd.DataFrame({"cell_type": labels[:n]}, index=pd.Index(samples))
    return made(X, genes, obs)


def dense(X) -> np.ndarray:
    return X if isinstance(X, np.ndarray) else X.toarray()


def assert_equal(
    read: anndata.AnnData, written: anndata.AnnData, labels: bool = True
) -> None:
    np.testing.assert_array_equal(dense(read.X), dense(written.X))
    assert list(read.var_names) == list(written.var_names)
    assert list(read.obs_names) == list(written.obs_names)
    if labels:
        assert labels_of(read) == labels_of(written)


def labels_of(data: anndata.AnnData) -> list[str]:
    return text_column(data.obs, "cell_type", "these data").tolist()


def to_anndata(data: anndata.AnnData, storage: str = "csr") -> anndata.AnnData:
    X = {"csr": sp.csr_matrix, "csc": sp.csc_matrix, "dense": dense}[storage](data.X)
    var = pd.DataFrame(
        {"ensembl": [f"ENSG{j}" for j in range(data.n_vars)]}, index=data.var_names
    )
    return anndata.AnnData(X, obs=data.obs.copy(), var=var, layers={"double": X * 2})


def read_expression(path: str | Path, **reading) -> anndata.AnnData:
    """What `open_profiles` reads, in memory."""
    with open_profiles(path, **reading) as profiles:
        return made(read_values(profiles), profiles.genes, profiles.obs)


def write_h5ad(data: anndata.AnnData, path: Path) -> Path:
    data.write_h5ad(path, compression="gzip")
    return path


def write_table(data: anndata.AnnData, path: Path) -> Path:
    """Write a CSV table with genes in columns."""
    values = dense(data.X)
    if (values == np.rint(values)).all() and np.abs(values).max(initial=0) < 2**53:
        values = values.astype(np.int64)  # 3, not 3.0
    frame = pd.DataFrame(values, data.obs_names, data.var_names)
    pd.concat([data.obs, frame], axis=1).to_csv(path, index_label="sample")
    return path


def write_rows(data: anndata.AnnData, path: Path) -> Path:
    """Write a CSV table with genes in rows."""
    frame = pd.DataFrame(dense(data.X).T, data.var_names, data.obs_names)
    frame.to_csv(path, index_label="gene")
    return path


def write_tenx_folder(data: anndata.AnnData, folder: Path, version: int = 3) -> Path:
    folder.mkdir(exist_ok=True)
    matrix = sp.coo_matrix(dense(data.X).T)
    rows = [f"ENSG{j}\t{name}" for j, name in enumerate(data.var_names)]
    if version == 3:
        with gzip.open(folder / "matrix.mtx.gz", "wb") as file:
            scipy.io.mmwrite(file, matrix, symmetry="general")
        _gzip(folder / "features.tsv.gz", [f"{row}\tGene Expression" for row in rows])
        _gzip(folder / "barcodes.tsv.gz", data.obs_names)
    else:
        scipy.io.mmwrite(folder / "matrix.mtx", matrix, symmetry="general")
        (folder / "genes.tsv").write_text("\n".join(rows) + "\n")
        (folder / "barcodes.tsv").write_text("\n".join(data.obs_names) + "\n")
    return folder


def write_tenx_h5(
    data: anndata.AnnData, path: Path, version: int = 3, antibodies: int = 0
) -> Path:
    X = sp.csr_matrix(dense(data.X))
    if antibodies:
        X = sp.csr_matrix(np.hstack([np.ones((data.n_obs, antibodies)), dense(data.X)]))
    names = [*[f"AB{k}" for k in range(antibodies)], *data.var_names]
    kinds = ["Antibody Capture"] * antibodies + ["Gene Expression"] * data.n_vars
    ids = [f"ENSG{j}" for j in range(len(names))]
    with h5py.File(path, "w") as file:
        group = file.create_group("matrix" if version == 3 else "GRCh38")
        group["data"], group["indices"], group["indptr"] = X.data, X.indices, X.indptr
        group["shape"] = X.shape[::-1]
        group["barcodes"] = [str(name).encode() for name in data.obs_names]
        if version == 3:
            features = group.create_group("features")
            features["id"] = [name.encode() for name in ids]
            features["name"] = [name.encode() for name in names]
            features["feature_type"] = [kind.encode() for kind in kinds]
        else:
            group["genes"] = [name.encode() for name in ids]
            group["gene_names"] = [name.encode() for name in names]
    return path


def _gzip(path: Path, lines) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
