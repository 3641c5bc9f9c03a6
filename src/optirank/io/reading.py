"""Read expression data: AnnData (.h5ad, .zarr, in memory), 10x and tables; write .h5ad and .csv."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix

from optirank._util.files import replacing
from optirank._util.names import some
from optirank.io import tables
from optirank.io.data import (
    DataError,
    ExpressionData,
    check_column,
    duplicates,
    need,
    readable,
)
from optirank.io.stored import (
    CompressedColumns,
    CompressedRows,
    Sliceable,
    StoredMatrix,
)

if TYPE_CHECKING:
    import pandas as pd
    from anndata import AnnData

logger = logging.getLogger("optirank.datasets")

FORMATS = ("h5ad", "zarr", "10x_h5", "10x_mtx", "table")
_TABLES = (".csv", ".tsv", ".txt", ".tab")
_R_OBJECT = "in R: library(zellkonverter); writeH5AD(OBJECT, {new!r})"
_EXCEL = (
    "in Python: import pandas; pandas.read_excel({name!r}).to_csv({csv!r}, index=False)"
)
_OTHERS = {
    ".rds": "in R: library(Seurat); library(zellkonverter); "
    "writeH5AD(as.SingleCellExperiment(readRDS({name!r})), {new!r})",
    ".rda": _R_OBJECT,
    ".rdata": _R_OBJECT,
    ".h5seurat": "in R: SeuratDisk::Convert({name!r}, dest = 'h5ad')",
    ".loom": "in Python: import anndata; anndata.io.read_loom({name!r}).write_h5ad({new!r})",
    ".xlsx": _EXCEL,
    ".xls": _EXCEL,
}  # files that are not read, and what converts them
_EXPRESSION = "Gene Expression"  # the features of 10x that are genes

# A matrix, the table of its genes and that of its samples, as AnnData names them.
Parts = tuple[StoredMatrix, "pd.DataFrame", "pd.DataFrame"]


def guess_format(path: Path) -> str:
    """Return the format a file's name or a folder's content says."""
    if path.is_dir():
        if _find_part(path, "matrix.mtx"):
            return "10x_mtx"
        if path.suffix == ".zarr" or any(
            (path / key).exists() for key in (".zgroup", "zarr.json")
        ):
            return "zarr"
        raise DataError(
            f"{path} is a folder without matrix.mtx (10x) and not a zarr: name a file"
        )
    if path.suffix in (".h5ad", ".h5"):
        return "h5ad" if path.suffix == ".h5ad" else "10x_h5"
    if any(suffix in _TABLES for suffix in path.suffixes[-2:]):
        return "table"
    if path.suffix.lower() in _OTHERS:
        names = {
            "name": str(path),
            "new": f"{path.stem}.h5ad",
            "csv": f"{path.stem}.csv",
        }
        remedy = _OTHERS[path.suffix.lower()].format(**names)
        raise DataError(
            f"{path}: {path.suffix} files are not read: convert it first, {remedy}"
        )
    raise DataError(
        f"{path}: its name does not tell its format (.h5ad, .zarr, .h5, .csv, .tsv, a 10x folder): "
        f"give the format, one of {some(FORMATS)} (format=)"
    )


@contextlib.contextmanager
def open_expression(
    path: str | Path,
    *,
    format: str | None = None,
    label: str | None = None,
    layer: str | None = None,
    gene_column: str | None = None,
    genes_in: str | None = None,
    annotations: Sequence[str] = (),
    samples: str | Path | None = None,
    drop_missing: bool = False,
    any_scale: bool = False,
) -> Iterator[ExpressionData]:
    """Open expression data; see `read_expression` for the options."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    kind = format or guess_format(path)
    if kind not in FORMATS:
        raise DataError(f"format={format!r}: use one of {some(FORMATS)}")
    for option, value, kinds in (
        ("layer= (--layer)", layer, ("h5ad", "zarr")),
        ("genes_in= (--genes-in)", genes_in, ("table",)),
        ("annotations= (--annotations)", annotations, ("table",)),
        ("drop_missing= (--drop-missing-genes)", drop_missing, ("table",)),
    ):
        if value and kind not in kinds:
            raise DataError(f"{path}: {option} is for {some(kinds)}, this is {kind}")
    with contextlib.ExitStack() as stack:
        others: dict[str, np.ndarray] = {}
        if kind == "table":
            beside = list(annotations)
            if label and genes_in == "columns" and not samples and label not in beside:
                beside.append(label)
            matrix, names, obs = tables.read_table(
                path,
                genes_in=genes_in,
                annotations=beside,
                gene_column=gene_column,
                drop_missing=drop_missing,
                any_scale=any_scale,
            )
        elif kind == "10x_mtx":
            matrix, var, obs = _read_tenx_folder(path)
            names, others = _gene_names(var, gene_column, path)
        else:
            store = stack.enter_context(_open_store(path, kind))
            with readable(path):
                tenx = kind == "10x_h5"
                matrix, var, obs = (
                    _tenx(store, path) if tenx else _anndata(store, path, layer)
                )
                names, others = _gene_names(var, gene_column, path)
        if samples is not None:
            if not Path(samples).exists():
                raise FileNotFoundError(f"{samples} does not exist")
            obs, named = tables.join_annotations(obs, [Path(samples)], str(path))
            if not named.all():
                logger.warning(
                    "%s has no entry for %d samples", samples, (~named).sum()
                )
        if label is not None:
            check_column(obs, label, str(path))
        twice = duplicates(names)
        if twice:
            logger.warning(
                "%s: %d gene names occur twice: %s", path, len(twice), some(twice)
            )
        cells = obs.index.to_numpy(dtype=object)
        yield ExpressionData(matrix, names, cells, obs, str(path), others)


def read_expression(
    path: str | Path, *, genes: Sequence[str] | np.ndarray | None = None, **options
) -> ExpressionData:
    """Read expression profiles from a file.

    Parameters
    ----------
    path : a .h5ad or .h5 (10x) file, a .zarr or 10x folder, or a .csv/.tsv/.txt table (also .gz)
    genes : names or positions of genes, to read only these, in this order
    format : "h5ad", "zarr", "10x_h5", "10x_mtx" or "table", where the name does not tell
    label : a column of the annotations that must be there
    layer : a layer of an AnnData file instead of ``X``
    gene_column : a column of ``var`` instead of its index; "id" instead of the name for 10x
    genes_in : "rows" or "columns"; required for tables
    annotations : columns of a table that hold no expression
    samples : a table about the samples (names first), joined to the annotations
    drop_missing : leave out the genes of a table that have missing values, instead of refusing it
    any_scale : accept genes of a table that look like clinical columns (age, IHC %)

    Returns
    -------
    ExpressionData
    """
    with open_expression(path, **options) as opened:
        return opened.read(genes)


def is_table(path: Path, format: str | None = None) -> bool:
    """Whether a file is there and is a table."""
    return path.exists() and (format or guess_format(path)) == "table"


def read_gene_names(path: Path, genes_in: str | None = None) -> list[str]:
    """The names of a file's genes; of a table, those of its annotations may be among them."""
    if is_table(path):
        return tables.read_gene_names(path, genes_in)
    with open_expression(path) as opened:
        return [str(name) for name in opened.gene_names]


@contextlib.contextmanager
def _open_store(path: Path, kind: str) -> Iterator[Any]:
    """Open an HDF5 file, or a zarr folder if that is the ``kind``, and give its root group."""
    store = need("zarr" if kind == "zarr" else "h5py", "anndata", f"reading {path}")
    if kind == "zarr":
        with readable(path):
            group = store.open_group(str(path), mode="r")
        yield group
        return
    if not store.is_hdf5(path):
        raise DataError(
            f"{path} is not an HDF5 file: give its format (such as 'table'), or fetch it again if "
            "it should be one"
        )
    with readable(path):
        file = store.File(path, "r")
    with file:
        yield file


def stored_source(path: Path) -> dict[str, str]:
    """Return where a .h5ad file says it comes from (``uns['source']``), if it says so."""
    with _open_store(path, "h5ad") as file, readable(path):
        about = file.get("uns/source")
        told = _read_elem(about) if hasattr(about, "keys") else {}
    return {str(key): str(value) for key, value in told.items()}


def _anndata(group: Any, path: Path, layer: str | None) -> Parts:
    """Find matrix (left on disk), genes and samples in an AnnData file."""
    missing = [key for key in ("X", "obs", "var") if key not in group]
    if missing and (missing != ["X"] or layer is None):
        hint = ": it looks like 10x, use format='10x_h5'" if "matrix" in group else ""
        raise DataError(
            f"{path} is not an AnnData file: it has no {' and no '.join(missing)}{hint}"
        )
    layers = group.get("layers", {})
    if layer is not None and layer not in layers:
        raise DataError(
            f"{path} has no layer {layer!r}: there are {some(list(layers))}"
        )
    matrix = _matrix(group["X"] if layer is None else layers[layer], path)
    return matrix, _frame(group, "var", path), _frame(group, "obs", path)


def _frame(group: Any, key: str, path: Path) -> pd.DataFrame:
    if not hasattr(group[key], "keys"):
        raise DataError(
            f"{path}: its {key!r} was written by anndata before 0.7; open it with "
            "anndata.read_h5ad and write it again"
        )
    _check_sizes(group[key], path)
    frame = _read_elem(group[key])
    frame.index = frame.index.astype(str)
    return frame


def _read_elem(element: Any) -> Any:
    """The value of an element of an AnnData file.

    The kinds that ``obs`` and ``var`` mostly have are read here: importing anndata takes longer
    than a small training. It reads all others, and zarr.
    """
    import pandas as pd

    kind = element.attrs.get("encoding-type")
    if type(element).__module__.startswith("h5py"):
        if kind == "dataframe":
            names = [str(name) for name in element.attrs["column-order"]]
            index = pd.Index(_read_elem(element[element.attrs["_index"]]), dtype=object)
            return pd.DataFrame(
                {name: _read_elem(element[name]) for name in names}, index=index
            )
        if kind == "categorical":
            categories = _read_elem(element["categories"])
            ordered = bool(element.attrs.get("ordered", False))
            return pd.Categorical.from_codes(
                element["codes"][...], categories, ordered=ordered
            )
        if kind == "string-array":
            return element.asstr()[...]
        if kind == "array":
            return element[...]
    need("anndata", "anndata", f"reading {element.name}")
    try:
        from anndata.io import read_elem
    except ImportError:  # anndata 0.10
        from anndata.experimental import read_elem
    return read_elem(element)


def _matrix(element: Any, path: Path) -> StoredMatrix:
    """Wrap an element of an AnnData file that holds a matrix."""
    if not hasattr(element, "keys"):
        if element.attrs.get("encoding-type") == "null" or element.shape is None:
            raise DataError(
                f"{path} holds no X: name one of its layers (layer=, --layer)"
            )
        if len(element.shape) != 2 or np.dtype(element.dtype).kind not in "fiub":
            raise DataError(
                f"{path}: X has shape {tuple(element.shape)} and type {element.dtype}; it should "
                "be a matrix of numbers"
            )
        return Sliceable(element)
    _check_sizes(element, path)
    kind = str(element.attrs.get("encoding-type", ""))
    shape = tuple(int(n) for n in element.attrs.get("shape", (0, 0)))
    if kind.startswith("csr"):
        return CompressedRows(element, shape)
    if kind.startswith("csc"):
        return CompressedColumns(element, shape, str(path))
    raise DataError(f"{path}: X is stored as {kind!r}; it should be dense, CSR or CSC")


def _gene_names(
    var: pd.DataFrame, gene_column: str | None, source: object
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return the names of the genes (index or column of ``var``), and those of other columns."""
    if gene_column is not None and gene_column not in var.columns:
        raise DataError(
            f"{source} has no gene column {gene_column!r}: there are {some(var.columns, 20)}; "
            "without one the index of var is used"
        )
    names = var.index.to_series() if gene_column is None else var[gene_column]
    if names.isna().any():
        raise DataError(
            f"{source}: {int(names.isna().sum())} genes have no {gene_column!r}: fill them in, or "
            "choose another gene column"
        )
    others = {
        str(name): var[name].astype(str).to_numpy(dtype=object)
        for name in var.columns
        if name != gene_column and var[name].dtype.kind not in "biufcmM"
    }
    return names.astype(str).to_numpy(dtype=object), others


def _find_part(folder: Path, *stems: str) -> Path | None:
    """Return the first file of the folder named as one of ``stems``, plain or gzipped."""
    names = [f"{stem}{end}" for stem in stems for end in ("", ".gz")]
    return next((folder / name for name in names if (folder / name).is_file()), None)


def _read_tenx_folder(folder: Path) -> Parts:
    """Read matrix.mtx, features.tsv (or genes.tsv) and barcodes.tsv, plain or gzipped."""
    wanted = {
        "matrix.mtx": _find_part(folder, "matrix.mtx"),
        "features.tsv": _find_part(folder, "features.tsv", "genes.tsv"),
        "barcodes.tsv": _find_part(folder, "barcodes.tsv"),
    }
    missing = [name for name, found in wanted.items() if found is None]
    if missing:
        raise DataError(
            f"{folder} is not a 10x folder: it has no {some(missing)} (plain or .gz)"
        )
    matrix_file, *others = wanted.values()
    features, barcodes = [], []
    for path, fields in zip(others, (features, barcodes), strict=True):
        with readable(path), tables.open_text(path) as file:
            fields += [line.rstrip("\r\n").split("\t") for line in file if line.strip()]
    with readable(matrix_file):
        matrix = _read_matrix(matrix_file, (len(features), len(barcodes)))
    ids = [fields[0] for fields in features]
    names = [fields[min(1, len(fields) - 1)] for fields in features]
    kinds = [fields[2] if len(fields) > 2 else _EXPRESSION for fields in features]
    kept, var, obs = _tenx_tables(ids, names, kinds, [fields[0] for fields in barcodes])
    return Sliceable(matrix if kept is None else matrix[:, kept]), var, obs


def _read_matrix(path: Path, shape: tuple[int, int]) -> Any:
    """Read a sparse matrix of genes by cells, transposed; sizes are checked before entries.

    scipy's ``mmread`` ends the process on some damaged files, so the entries are read by pandas.
    """
    import pandas as pd
    from scipy.io import mminfo

    n_rows, n_columns, n_entries, form, field, symmetry = mminfo(str(path))
    if (n_rows, n_columns) != shape:
        raise DataError(
            f"{path} holds {n_rows} genes x {n_columns} cells, but the other files name {shape[0]} "
            f"genes and {shape[1]} cells"
        )
    if form != "coordinate" or symmetry != "general" or n_entries > n_rows * n_columns:
        raise DataError(
            f"{path} is no general sparse matrix, or says it has {n_entries} entries, more than "
            "its places"
        )
    with tables.open_text(path) as file:
        while file.readline().startswith("%"):  # up to the line with the sizes
            pass
        kinds = {0: np.int64, 1: np.int64}
        if field != "pattern":
            kinds[2] = np.int64 if field == "integer" else np.float64
        entries = pd.read_csv(
            file, sep=r"\s+", header=None, names=list(kinds), dtype=kinds
        )
    rows, columns = entries[0].to_numpy() - 1, entries[1].to_numpy() - 1
    if len(entries) != n_entries:
        raise ValueError(f"it says it has {n_entries} entries and has {len(entries)}")
    if n_entries and (min(rows.min(), columns.min()) < 0 or not (rows < n_rows).all()):
        raise ValueError(f"it has entries outside of its {n_rows} x {n_columns} places")
    values = entries[2].to_numpy() if 2 in entries else np.ones(n_entries)
    return csr_matrix((values, (columns, rows)), shape=(n_columns, n_rows))


def _tenx(file: Any, path: Path) -> Parts:
    """Find matrix (left on disk), genes and cells in a 10x .h5 file of version 2 or 3."""
    groups = [
        key for key in file if hasattr(file[key], "keys") and "indptr" in file[key]
    ]
    if "X" in file or not groups:
        hint = ": it looks like AnnData, use format='h5ad'" if "X" in file else ""
        raise DataError(
            f"{path} is not a 10x file: it has no group with a matrix{hint}"
        )
    if len(groups) > 1:
        raise DataError(f"{path} holds several genomes, {some(groups)}: split it first")
    group = file[groups[0]]
    _check_sizes(group, path)
    where = (
        ("features/id", "features/name")
        if "features" in group
        else ("genes", "gene_names")
    )
    ids, names = (group[key].asstr("utf-8")[:] for key in where)
    typed = "features/feature_type" in group
    kinds = (
        group["features/feature_type"].asstr("utf-8")[:]
        if typed
        else [_EXPRESSION] * len(ids)
    )
    kept, var, obs = _tenx_tables(
        ids, names, kinds, group["barcodes"].asstr("utf-8")[:]
    )
    return CompressedRows(group, (len(obs), len(ids)), kept), var, obs


def _tenx_tables(
    ids: Sequence[str],
    names: Sequence[str],
    kinds: Sequence[str],
    barcodes: Sequence[str],
) -> tuple[np.ndarray | None, pd.DataFrame, pd.DataFrame]:
    """Positions of the features that are genes (None: all are), the genes and the cells."""
    import pandas as pd

    var = pd.DataFrame({"id": ids, "name": names}, index=pd.Index(names, dtype=str))
    obs = pd.DataFrame(index=pd.Index(barcodes, dtype=str))
    kept = np.flatnonzero(np.asarray(kinds) == _EXPRESSION)
    if len(kept) == len(var):
        return None, var, obs
    logger.info("%d features that are not genes are left out", len(var) - len(kept))
    return kept, var.iloc[kept], obs


def _check_sizes(element: Any, path: Path) -> None:
    """Refuse an array, or a group of arrays, that says it is far larger than what is stored."""
    if hasattr(element, "keys"):
        for key in element:
            _check_sizes(element[key], path)
        return
    if element.shape is None:
        return
    low = getattr(element, "id", None)
    stored = (
        low.get_storage_size()
        if hasattr(low, "get_storage_size")
        else element.nbytes_stored
    )
    stored = stored() if callable(stored) else stored
    declared = int(np.prod(element.shape, dtype=object)) * max(
        1, element.dtype.itemsize
    )
    # Any array may have 64 MiB, such as one that was never written. Compressors reach more than the
    # thousand of deflate; a bomb exceeds 16,384
    if declared > max(1 << 26, (1 << 14) * stored):
        raise DataError(
            f"{path} cannot be read, {element.name} says it has {tuple(element.shape)} values, "
            "more than are stored: it may be damaged (copy or fetch it again)"
        )


def check_anndata(adata: object, function: str) -> None:
    """Refuse what is not an AnnData, and say how to make one."""
    if all(hasattr(adata, name) for name in ("obs", "var", "obsm", "uns")):
        return
    kind, remedy = type(adata).__name__, "give an AnnData"
    if isinstance(adata, str | os.PathLike):
        remedy = f"read it first, anndata.read_h5ad({str(adata)!r})"
    elif hasattr(adata, "columns"):
        remedy = "make one of a data frame of samples x genes, anndata.AnnData(frame)"
        if function == "annotate":
            remedy += ", or use model.predict(frame)"
    raise TypeError(f"tl.{function} takes an AnnData, not a {kind}: {remedy}")


def profiles_of(
    adata: AnnData, layer: str | None, gene_column: str | None, *, use_raw: bool = False
) -> ExpressionData:
    """The profiles of an AnnData (X, a layer, or ``raw``), left where they are."""
    matrix, var, source = adata.X, adata.var, "adata"
    if use_raw:
        if layer is not None:
            raise ValueError(f"use_raw=True and layer={layer!r}: give one of them")
        if adata.raw is None:
            raise ValueError(
                "use_raw=True: adata.raw is empty; use X (use_raw=False) or a layer"
            )
        matrix, var, source = adata.raw.X, adata.raw.var, "adata.raw"
    elif layer is not None:
        if layer not in adata.layers:
            raise DataError(
                f"adata has no layer {layer!r}: there are {some(adata.layers)}"
            )
        matrix = adata.layers[layer]
    if matrix is None:
        raise DataError(f"adata has no X: name one of its layers, {some(adata.layers)}")
    names, others = _gene_names(var, gene_column, source)
    samples = adata.obs.index.to_numpy(dtype=object)
    return ExpressionData(Sliceable(matrix), names, samples, adata.obs, source, others)


def write_h5ad(
    data: ExpressionData, path: str | Path, source: dict | None = None
) -> Path:
    """Write a gzipped .h5ad file, whole or not at all; ``source`` goes to ``uns['source']``."""
    anndata = need("anndata", "anndata", f"writing {path}")
    import pandas as pd

    obs = data.obs.copy()
    for column in obs.columns:
        if obs[column].dtype == object:
            obs[column] = obs[column].astype("category")
    obs.index = pd.Index(data.sample_names, dtype=str)
    adata = anndata.AnnData(
        X=data.X,
        obs=obs,
        var=pd.DataFrame(index=pd.Index(data.gene_names, dtype=str)),
        uns={"source": source} if source else None,
    )
    with replacing(Path(path)) as temporary:
        adata.write_h5ad(temporary, compression="gzip")
    return Path(path)


def write_table(data: ExpressionData, path: str | Path) -> Path:
    """Write a CSV table (.csv, .csv.gz): samples as lines with their annotations."""
    import pandas as pd

    values = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    if (
        values.size
        and np.abs(values).max() < 2**53
        and (values == np.rint(values)).all()
    ):
        values = values.astype(np.int64)  # 3, not 3.0
    frame = pd.DataFrame(values, index=data.sample_names, columns=data.gene_names)
    frame = pd.concat([data.obs.set_axis(data.sample_names), frame], axis=1)
    packed = "gzip" if Path(path).suffix == ".gz" else None
    with replacing(Path(path)) as temporary:
        frame.to_csv(temporary, index_label="sample", compression=packed)
    return Path(path)
