"""Prediction and training on a dask cluster: `--dask ADDRESS`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optirank import __version__
from optirank._util.workers import connect
from optirank.io.parts import Parts
from optirank.io.signatures import signature

if TYPE_CHECKING:
    from optirank.io.cluster import Cluster


@contextmanager
def cluster_at(
    address: str | None, parts: Path | None = None, run: Mapping[str, Any] | None = None
) -> Iterator[Cluster | None]:
    """What runs passes on the cluster at an address; None without an address.

    Parameters
    ----------
    address : of a dask scheduler whose workers can read the same files.
    parts : a folder for finished blocks, removed when the block ends without an error.
    run : what the finished blocks belong to, see `run_of`.
    """
    if address is None:
        yield None
        return
    with connect(address) as client:
        from optirank.io.cluster import Cluster, check_versions

        check_versions(client)
        store = None if parts is None else Parts(parts, run or {})
        yield Cluster(client, store)
        if store is not None:
            store.remove()


def run_of(
    model_digest: str,
    files: Sequence[str | Path],
    options: Mapping[str, Any],
    reading: Mapping[str, Any],
) -> dict[str, Any]:
    """What finished blocks belong to: model, files as they are now, and options."""
    asked = {"options": options, "reading": reading}
    texts = json.dumps(asked, sort_keys=True, default=str)
    return {
        "optirank": __version__,
        "model": model_digest,
        "files": {str(Path(file).resolve()): [*signature(file)] for file in files},
        "options": hashlib.sha256(texts.encode()).hexdigest(),
    }


def parts_folder(out: Path) -> Path:
    """Where finished blocks of the labels in a file are kept until it is written."""
    return out.with_name(f"{out.name}.parts")
