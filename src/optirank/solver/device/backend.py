"""Where arrays live: CuPy on a GPU; the tests put NumPy in its place. The rest serves
both.

A kernel is reached through :meth:`Backend.launch` alone, with the arguments that its
CUDA source lists.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache, cached_property
from importlib import resources
from typing import TYPE_CHECKING, Any

from optirank.solver.constants import FILLS_DEVICE, USABLE

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEVICES = ("cpu", "cuda")
_C_TYPES = {
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long long",
}


class DeviceError(ValueError):
    """The device that was asked for cannot be used; the message names the remedy."""


class Backend:
    """An array module, its kernels, and the few operations that NumPy and CuPy do
    differently.
    """

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    @cached_property
    def shared_bytes(self) -> int:
        """Shared memory that a block of threads may ask for: 64 to 227 KiB on GPUs
        of today.
        """
        return _most_shared_bytes()

    def launch(
        self,
        name: str,
        blocks: tuple[int, ...],
        threads: int,
        arguments: tuple,
        *,
        shared: int = 0,
        types: tuple[str, str] | None = None,
    ) -> None:
        """Run a kernel; ``types`` are the unsigned types of one in ``orders.cu``."""
        kernel = _kernel(name, types)
        kernel(blocks, (threads,), arguments, shared_mem=shared)

    def fuse(self, function: Callable) -> Callable:
        """A function of arrays, element by element, as one kernel."""
        return self.xp.fuse()(function)

    def array(self, values: Any, dtype: Any = None) -> Any:
        """An array on the device."""
        return self.xp.asarray(values, dtype=dtype)

    def dense(self, values: Any) -> Any:
        """Dense or sparse values as a dense array on the device."""
        return self.array(values.toarray() if hasattr(values, "toarray") else values)

    def host(self, values: Any) -> NDArray:
        """The array as NumPy has it."""
        return self.xp.asnumpy(values)

    def free_bytes(self) -> int:
        """Memory that arrays may still take."""
        free, _ = self.xp.cuda.runtime.memGetInfo()
        pool = self.xp.get_default_memory_pool()
        return int(USABLE * (free + pool.total_bytes() - pool.used_bytes()))

    def check_memory(self, needed: int, what: str) -> None:
        """A :class:`DeviceError` where a problem does not fit, however small
        the batch.
        """
        free = self.free_bytes()
        if needed > free:
            raise DeviceError(
                f"device='cuda': {what} needs about {needed / 1e9:.1f} GB and "
                f"{free / 1e9:.1f} GB of GPU memory are free: select fewer genes or "
                "samples, free the GPU, or use device='cpu'"
            )

    def dot(self, matrix: Any, x: Any) -> Any:
        """``M x`` for each problem: (B, n, d) and (B, d) give (B, n); (B, m, d) give
        (B, m, n).
        """
        if x.ndim == 3 and x.shape[1] > 1:
            return self.xp.matmul(x, matrix.transpose(0, 2, 1))
        if x.ndim == 3:
            return self.dot(matrix, x[:, 0])[:, None]
        if matrix[0].size >= FILLS_DEVICE:
            return self.xp.stack(
                [item @ row for item, row in zip(matrix, x, strict=True)]
            )
        return self.xp.matmul(matrix, x[:, :, None])[:, :, 0]

    def transpose_dot(self, a: Any, matrix: Any) -> Any:
        """``M^T a`` for each problem: (B, n) gives (B, d); (B, m, n) give (B, m, d)."""
        if a.ndim == 3 and a.shape[1] > 1:
            return self.xp.matmul(a, matrix)
        if a.ndim == 3:
            return self.transpose_dot(a[:, 0], matrix)[:, None]
        if matrix[0].size >= FILLS_DEVICE:
            return self.xp.stack(
                [row @ item for item, row in zip(matrix, a, strict=True)]
            )
        return self.xp.matmul(a[:, None, :], matrix)[:, 0, :]


@cache
def _kernel(name: str, types: tuple[str, str] | None) -> Any:
    kernel = _module(types).get_function(name)
    # Those of orders ask for shared memory at each launch, up to all of it
    if types is not None:
        kernel.max_dynamic_shared_size_bytes = _most_shared_bytes()
    return kernel


@cache
def _most_shared_bytes() -> int:
    cupy = importlib.import_module("cupy")  # loaded only where a GPU is used

    return int(cupy.cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"])


@cache
def _module(types: tuple[str, str] | None) -> Any:
    """A compiled source of this folder: that of orders, with its INDEX and KEY, or
    of steps.
    """
    cupy = importlib.import_module("cupy")  # loaded only where a GPU is used

    folder = resources.files("optirank.solver.device")
    source = folder.joinpath("steps.cu" if types is None else "orders.cu").read_text()
    if types is not None:
        index, key = (_C_TYPES[item] for item in types)
        source = source.replace("INDEX", index).replace("KEY", key)
    return cupy.RawModule(code=source, options=("--std=c++14",))


def threads_for(n: int) -> int:
    """Threads of a block that goes over n entries: whole warps, few where there is
    little to do.
    """
    return 128 if n <= 256 else 256 if n <= 4096 else 1024


@cache
def backend_of(device: str) -> Backend:
    """The backend of a device; a :class:`DeviceError` where it cannot be used."""
    if device != "cuda":
        raise ValueError(f"device={device!r}: use {' or '.join(map(repr, DEVICES))}")
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        raise DeviceError(
            "device='cuda' needs CuPy, which cannot be imported here: install it with "
            "pip install 'optirank[gpu]', or use device='cpu'"
        ) from error
    try:
        cupy.cuda.runtime.getDeviceCount()  # an error where there is none
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise DeviceError(
            f"device='cuda': no CUDA GPU can be used ({reason}): check with nvidia-smi "
            "that there is one and its driver works, or use device='cpu'"
        ) from error
    return Backend(cupy)


def check_device(device: object) -> None:
    """A known and usable device, or an error before any work."""
    if device not in DEVICES:
        raise ValueError(f"device={device!r}: use {' or '.join(map(repr, DEVICES))}")
    if device == "cuda":
        backend_of("cuda")


def is_device_array(values: object) -> bool:
    """Whether these are values of a CuPy array, without importing CuPy."""
    return type(values).__module__.partition(".")[0] in ("cupy", "cupyx")
