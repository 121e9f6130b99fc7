"""Files of JSON lines that survive a kill: whole lines only, appended at once.

A line that starts with ``{"run"`` describes a run: versions and machine; the lines of its
measurements name it by its number.
"""

from __future__ import annotations

import json
import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("lhtree", "numpy", "scikit-learn", "xgboost", "lightgbm", "catboost", "ydf")


def append(path: Path, line: dict[str, Any]) -> None:
    """Write one line in one go, down to the disk."""
    text = json.dumps(line, separators=(",", ":")) + "\n"
    with path.open("ab") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def _split(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(text) for text in path.read_bytes().splitlines() if text.strip()]


def read(path: Path) -> list[dict[str, Any]]:
    """Return the measurements; of several with the same key the last counts."""
    found = {(x["data"], x["model"], x["seed"]): x for x in _split(path) if "data" in x}
    return list(found.values())


def read_runs(path: Path) -> list[dict[str, Any]]:
    """Return the descriptions of the runs."""
    return [line for line in _split(path) if "data" not in line]


def mend(path: Path) -> None:
    """Cut off a last line that a kill left half-written."""
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        with path.open("r+b") as file:
            file.truncate(len(whole))


def _find_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def describe_machine() -> dict[str, Any]:
    """Return what a reader must know of the machine and the versions."""
    info = Path("/proc/cpuinfo")
    text = info.read_text().splitlines() if info.exists() else []
    cpu = next((line.split(":")[1].strip() for line in text if "model name" in line), "")
    return {
        "cpu": cpu or platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: _find_version(name) for name in PACKAGES},
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def start_run(path: Path) -> int:
    """Append the description of a new run; return its number."""
    number = 1 + max((line["run"] for line in read_runs(path)), default=0)
    append(path, {"run": number, **describe_machine()})
    return number
