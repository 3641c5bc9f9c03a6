"""What a child measures is its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from optirank.benchmark import tools

MEASURE = "from harness import cpu_seconds, peak_bytes; print(cpu_seconds(), peak_bytes())"


def measured(code: str) -> tuple[float, int]:
    folder = Path(tools.__file__).parent
    command = [sys.executable, "-c", f"{code}\n{MEASURE}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    seconds, peak = done.stdout.split()
    return float(seconds), int(peak)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count from the start")
def test_the_memory_of_the_parent_is_not_counted():
    held = np.ones(50_000_000)  # 400 MB
    _, peak = measured("")
    assert peak < 0.5 * held.nbytes


def test_memory_that_was_released_is_counted():
    _, before = measured("import numpy")
    _, after = measured("import numpy; x = numpy.ones(20_000_000); del x")
    assert after - before > 100e6


def test_the_time_of_processes_that_a_tool_starts_is_counted():
    started = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(3**16))'])"
    waits = "import time; time.sleep(0.3)"
    assert measured(started)[0] > measured(waits)[0]
