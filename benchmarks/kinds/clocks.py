"""Clocks and memory of the present process."""

from __future__ import annotations

import ctypes
import math
import mmap
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

SLOW = 15.0  # seconds; what takes longer is not repeated


def time_best(
    call: Callable[[], Any],
    n_repeats: int,
    limit: float = SLOW,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Return the least time of several calls; one that is slow is not repeated."""
    best = math.inf
    for _ in range(n_repeats):
        start = clock()
        call()
        best = min(best, clock() - start)
        if best > limit:
            break
    return best


def time_calls(call: Callable[[], Any], at_least: float) -> float:
    """Return the mean CPU time of a call, of as many as take long enough for a coarse clock."""
    n, total = 1, 0.0
    while total < at_least:
        start = time.process_time()
        for _ in range(n):
            call()
        total, last = time.process_time() - start, n
        n = math.ceil(n * min(max(1.3 * at_least / max(total, 1e-9), 1.5), 10.0))
    return total / last


def measure_memory(call: Callable[[], Any]) -> float:
    """Return by how much the peak of the resident memory exceeds what was resident, in MB."""
    with suppress(OSError, AttributeError):  # give free memory back, where the system can
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):  # and forget the peak so far
        Path("/proc/self/clear_refs").write_text("5")
    before = int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE
    call()
    return read_peak() - before / 1e6


def read_peak() -> float:
    """Return the peak of the resident memory of this process in MB."""
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(line for line in status if line.startswith("VmHWM"))
    return int(peak.split()[1]) * 1024 / 1e6
