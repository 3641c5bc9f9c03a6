"""Fixtures of all tests: the folders of real data, and the one hypothesis profile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,  # the same examples every time
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("default")

_SHARED = Path(__file__).resolve().parents[1] / "shared"


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real .h5ad sets: OPTIRANK_DATA, else ../shared/data, else skip."""
    for folder in (os.environ.get("OPTIRANK_DATA"), _SHARED / "data"):
        if folder and Path(folder).is_dir():
            return Path(folder)
    pytest.skip("no real data sets here: set OPTIRANK_DATA to a folder of .h5ad files")


@pytest.fixture(scope="session")
def raw_files() -> Path:
    """The folder of raw files that real sets are built from, ../shared/raw/files."""
    folder = _SHARED / "raw" / "files"
    if not folder.is_dir():
        pytest.skip(f"no raw files here ({folder})")
    return folder


@pytest.fixture(scope="session")
def anchors_folder() -> Path:
    """The folder of problems with the results of the published implementation."""
    return Path(__file__).parent / "tests" / "anchors"
