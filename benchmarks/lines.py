"""Files of JSON lines that survive a kill: whole lines only, appended at once.

A line with ``run`` but without a measurement describes a run: versions and machine. The lines
of its measurements name it by its number. What a line says is never edited.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import lhtree

Line = dict[str, Any]

RESULTS = Path(__file__).parent / "results"
PACKAGES = (
    "lhtree", "numpy", "scikit-learn", "xgboost", "lightgbm", "catboost", "ydf", "chimeraboost",
    "oqboost",
)  # fmt: skip
_RUN_FIELDS = {"run", "cpu", "cores", "python", "versions", "build", "at"}


def append(path: Path, line: Line) -> None:
    """Write one line in one go, down to the disk."""
    text = json.dumps(line, separators=(",", ":")) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def mend(path: Path) -> None:
    """Cut off a last line that a kill left half-written."""
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        with path.open("r+b") as file:
            file.truncate(len(whole))


def _parse(path: Path) -> list[Line]:
    if not path.exists():
        return []
    return [json.loads(text) for text in path.read_bytes().splitlines() if text.strip()]


def read_runs(path: Path) -> list[Line]:
    """Return the descriptions of the runs."""
    return [line for line in _parse(path) if set(line) <= _RUN_FIELDS]


def read(path: Path, *key: str) -> list[Line]:
    """Return the measurements, each with the description of its run.

    Of several that have the fields `key` in common the last counts.
    """
    runs = {run["run"]: run for run in read_runs(path)}
    every = [
        {**runs.get(line.get("run"), {}), **line}
        for line in _parse(path)
        if not set(line) <= _RUN_FIELDS
    ]
    for line in every:
        if "right" in line:
            line["accuracy"] = line["right"] / line["test"]
    if not key:
        return every
    return list({tuple(line.get(name) for name in key): line for line in every}.values())


def _look_up_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def compute_build() -> str:
    """Return a digest of the package as it is installed: sources and native core."""
    digest = hashlib.sha256()
    folders = {Path(lhtree.__file__).parent, Path(lhtree._core.__file__).parent}
    for path in (path for folder in sorted(folders) for path in sorted(folder.rglob("*"))):
        if path.suffix in (".py", ".so", ".pyd"):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def format_now() -> str:
    """Return the present time, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def start_run(path: Path) -> int:
    """Append a description of the machine and the versions; return the number of the run."""
    info = Path("/proc/cpuinfo")
    text = info.read_text().splitlines() if info.exists() else []
    cpu = next((line.split(":")[1].strip() for line in text if "model name" in line), "")
    number = 1 + max((line["run"] for line in read_runs(path)), default=0)
    run = {
        "run": number,
        "cpu": cpu or platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: _look_up_version(name) for name in PACKAGES},
        "build": compute_build(),
        "at": format_now(),
    }
    append(path, run)
    return number
