"""Where arrays live: NumPy in the tests, CuPy on a GPU. The rest is written for both."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEVICES = ("cpu", "cuda")
WHOLE_PANEL_ON_CPU = (
    "whole_panel=True fits two classes, and one reference set per class, on the CPU alone: use "
    "device='cpu'"
)
_OLDEST_CUDA = 11_000  # driver version as the CUDA runtime reports it: 11.0
_HOST_BYTES = 2 << 30  # what the NumPy twin may hold at once
_LARGE = 1 << 22  # entries of a matrix from which each fills the device by itself
_USABLE = 0.8  # of the free memory of a GPU: the rest is for temporary arrays


class DeviceError(ValueError):
    """The device that was asked for cannot be used; the message names the remedy."""


class Backend:
    """An array module with the few operations that differ between NumPy and CuPy."""

    def __init__(self, xp: Any, on_gpu: bool) -> None:
        self.xp = xp
        self.on_gpu = on_gpu

    def array(self, values: Any, dtype: Any = None) -> Any:
        """An array on the device."""
        return self.xp.asarray(values, dtype=dtype)

    def dense(self, values: Any) -> Any:
        """Dense or sparse values as a dense array on the device; non-zeros alone travel there."""
        if not hasattr(values, "toarray"):
            return self.array(values)
        if not self.on_gpu or is_device_array(values) or values.dtype.kind not in "f":
            return self.array(values.toarray())
        from cupyx.scipy import sparse  # a GPU is asked for

        rows = values.tocsr()
        parts = (self.array(one) for one in (rows.data, rows.indices, rows.indptr))
        return sparse.csr_matrix(tuple(parts), shape=rows.shape).toarray()

    def host(self, values: Any) -> NDArray:
        """The array as NumPy has it."""
        return self.xp.asnumpy(values) if self.on_gpu else np.asarray(values)

    def free_bytes(self) -> int:
        """Memory that arrays may still take."""
        if not self.on_gpu:
            return _HOST_BYTES
        free, _ = self.xp.cuda.runtime.memGetInfo()
        pool = self.xp.get_default_memory_pool()
        return int(_USABLE * (free + pool.total_bytes() - pool.used_bytes()))

    def dot(self, matrix: Any, x: Any) -> Any:
        """``M x`` for each problem: (B, n, d) and (B, d) give (B, n).

        Here and below, one matrix (1, n, d) may serve all problems: one product for all of them.
        """
        if len(matrix) == 1 < len(x):
            return x @ matrix[0].T
        if len(matrix) == 1 or matrix[0].size >= _LARGE:
            return self.xp.stack([one @ row for one, row in zip(matrix, x, strict=True)])
        return self.xp.matmul(matrix, x[:, :, None])[:, :, 0]

    def transpose_dot(self, a: Any, matrix: Any) -> Any:
        """``M^T a`` for each problem: (B, n) and (B, n, d) give (B, d)."""
        if len(matrix) == 1 < len(a):
            return a @ matrix[0]
        if len(matrix) == 1 or matrix[0].size >= _LARGE:
            return self.xp.stack([row @ one for one, row in zip(matrix, a, strict=True)])
        return self.xp.matmul(a[:, None, :], matrix)[:, 0, :]

    def rows_dot(self, matrix: Any, rows: Any) -> Any:
        """``M x`` for m rows x of each problem: (B, n, d) and (B, m, d) give (B, m, n)."""
        if rows.shape[1] == 1:
            return self.dot(matrix, rows[:, 0])[:, None]
        if len(matrix) == 1:
            return (rows.reshape(-1, rows.shape[2]) @ matrix[0].T).reshape(*rows.shape[:2], -1)
        return self.xp.matmul(rows, matrix.transpose(0, 2, 1))

    def rows_transpose_dot(self, matrix: Any, rows: Any) -> Any:
        """``M^T a`` for m rows a of each problem: (B, n, d) and (B, m, n) give (B, m, d)."""
        if rows.shape[1] == 1:
            return self.transpose_dot(rows[:, 0], matrix)[:, None]
        if len(matrix) == 1:
            return (rows.reshape(-1, rows.shape[2]) @ matrix[0]).reshape(*rows.shape[:2], -1)
        return self.xp.matmul(rows, matrix)


@cache
def backend_of(device: str) -> Backend:
    """The backend of a device; a :class:`DeviceError` where it cannot be used.

    ``"numpy"`` is the twin that the tests run: the same code without a GPU.
    """
    if device == "numpy":
        return Backend(np, on_gpu=False)
    if device != "cuda":
        raise ValueError(f"device={device!r}: use {' or '.join(map(repr, DEVICES))}")
    try:
        import cupy
    except ImportError as error:
        raise DeviceError(
            "device='cuda' needs CuPy, which cannot be imported here: install it with "
            "pip install 'optirank[gpu]', or use device='cpu'"
        ) from error
    try:
        driver = cupy.cuda.runtime.driverGetVersion()
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        raise DeviceError(
            f"device='cuda': no CUDA GPU can be used ({_short(error)}): check the driver with "
            "nvidia-smi, or use device='cpu'"
        ) from error
    if driver < _OLDEST_CUDA:
        raise DeviceError(
            f"device='cuda': the driver supports CUDA {driver // 1000}.{driver % 1000 // 10}, and "
            "11.0 is the oldest that CuPy works with: update the NVIDIA driver, or use "
            "device='cpu'"
        )
    if count == 0:
        raise DeviceError(
            "device='cuda': there is no CUDA GPU on this machine: use device='cpu', or a machine "
            "with an NVIDIA GPU"
        )
    return Backend(cupy, on_gpu=True)


def check_device(device: object) -> None:
    """A known and usable device, or an error before any work."""
    if device not in DEVICES:
        raise ValueError(f"device={device!r}: use {' or '.join(map(repr, DEVICES))}")
    if device == "cuda":
        backend_of("cuda")


def is_device_array(values: object) -> bool:
    """Whether these are values of a CuPy array, without importing CuPy."""
    return type(values).__module__.partition(".")[0] in ("cupy", "cupyx")


def out_of_memory(needed: int, free: int, what: str) -> DeviceError:
    """The error for a problem that does not fit, however small the batch."""
    return DeviceError(
        f"device='cuda': {what} needs about {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB of GPU "
        "memory are free: select fewer genes or samples, free the GPU, or use device='cpu'"
    )


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
