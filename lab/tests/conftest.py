"""Fixtures of the laboratory's tests: a GPU that is not there."""

import pytest

from numpy_device import NumpyBackend
from optirank_lab.device import backend


@pytest.fixture
def numpy_as_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy does what a GPU would do."""
    twin = NumpyBackend()
    monkeypatch.setattr(backend, "backend_of", lambda device: twin)


@pytest.fixture
def without_gpu() -> None:
    """Skip where there is a GPU that can be used."""
    backend.backend_of.cache_clear()
    try:
        backend.check_device("cuda")
    except backend.DeviceError:
        return
    pytest.skip("there is a GPU here")
