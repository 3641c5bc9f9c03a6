"""What the tests of the device share: NumPy, and a GPU where there is one."""

import pytest

from numpy_device import NumpyBackend
from optirank_lab.device.backend import Backend, DeviceError, backend_of


@pytest.fixture(params=["numpy", pytest.param("cuda", marks=pytest.mark.gpu)])
def backend(request) -> Backend:
    if request.param == "cuda":
        try:
            return backend_of("cuda")
        except DeviceError as error:
            pytest.skip(str(error))
    return NumpyBackend()
