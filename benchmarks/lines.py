"""Files of JSON lines that survive a kill: whole lines only, appended at once.

A line with ``run`` but without a measurement describes a run: versions and machine. The lines
of its measurements name it by its number. Lines are never edited: :func:`read` gives those of
earlier versions today's names.
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
from benchmarks import models

Line = dict[str, Any]

RESULTS = Path(__file__).parent / "results"
PACKAGES = (
    "lhtree", "numpy", "scikit-learn", "xgboost", "lightgbm", "catboost", "ydf", "chimeraboost",
    "oqboost",
)  # fmt: skip
_RUN_FIELDS = {"run", "cpu", "cores", "python", "versions", "build", "at"}

# Names that lines of version 0.1 have.
_FIELDS = {
    "kind": "task", "table": "data", "members": "n_estimators", "n_members": "n_estimators",
    "ask_s": "predict_s", "same_answers": "same_predictions", "calibration_error": "ece",
}  # fmt: skip
_MODELS = {
    "LHT paper": models.PAPER,
    "LHT default": models.DEFAULTS,
    "LHT tuned": models.TUNED,
    "LHT default, calibrated": models.CALIBRATED,
    **{name.replace("LHT, ", "LHT "): name for name in models.BETAS},
    "forest": "LHForest, n_estimators=16, max_depth=10",
    "short forest": "LHForest, n_estimators=2, max_depth=10",
    "full depth": "LHForest, n_estimators=4",
    "paper forest": "LHForest, preset='paper', n_estimators=8, max_depth=10",
    "one tree": "LHT, max_depth=10",
}


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
        {**runs.get(line.get("run"), {}), **upgrade(line)}
        for line in _parse(path)
        if not set(line) <= _RUN_FIELDS
    ]
    if not key:
        return every
    return list({tuple(line.get(name) for name in key): line for line in every}.values())


def upgrade(line: Line) -> Line:
    """Return a line with today's names, and with its accuracy where it counts correct rows."""
    line = {_FIELDS.get(name, name): value for name, value in line.items()}
    if "job" in line:  # the limit of the depth and the depth of the model shared a name
        job = json.loads(line.pop("job"))
        if "depth" in job:
            line["max_depth"] = job["depth"]
    if "longer than" in line.get("error", ""):
        line["over_s"] = float(line["error"].split()[-2])
    if line.get("task") == "overhead":
        line.setdefault("limited", line["row_limit"] == 100_000)
    if "result" in line:
        line.setdefault("model", models.DEFAULTS)
    if "model" in line:
        line["model"] = _MODELS.get(line["model"], line["model"])
        if {"task", "threads"} <= line.keys() and line["model"] in models.PAPER_PEERS:
            line["model"] = models.name_timed_peer(line["model"], line["data"])
    if line.get("choice") == "most_bins":  # a constant then
        line["choice"] = "max_bins"
    if "right" in line:
        line["accuracy"] = line["right"] / line["test"]
    return line


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
