"""Files of JSON lines that survive a kill: whole lines only, appended at once.

A line with ``run`` but without a measurement describes a run: versions and machine. The lines
of its measurements name it by its number. What a line says is never edited.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import re
import subprocess
import time
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import lhtree

Line = dict[str, Any]

REPOSITORY = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
PACKAGES = (
    "lhtree", "numpy", "scikit-learn", "xgboost", "lightgbm", "catboost", "ydf", "chimeraboost",
    "oqboost",
)  # fmt: skip
ROOMS = ("data", "estimators", "model", "persist", "training")  # decide on models and files
_RUN_FIELDS = {"run", "cpu", "cores", "python", "versions", "build", "commit", "at"}


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


def strip(text: str, suffix: str) -> str:
    """Return a source without layout, comments and docstrings."""
    if suffix != ".py":
        return re.sub(r"//.*|\s+", "", text)
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            node.body[0] = ast.Pass()
    return ast.unparse(tree)


@cache
def compute_build() -> str:
    """Return a digest of the sources that decide on models, their times and their files."""
    package = Path(lhtree.__file__).parent
    paths = [*REPOSITORY.glob("native/**/*.?pp"), *package.glob("arrays.py")]
    paths += [path for room in ROOMS for path in package.glob(f"{room}/**/*.py")]
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(strip(path.read_text(encoding="utf-8"), path.suffix).encode())
    return digest.hexdigest()[:12]


def _look_up_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _look_up_commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(
        command, cwd=REPOSITORY, capture_output=True, text=True, check=False
    )  # without a repository there is none
    return done.stdout.strip()


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
        "commit": _look_up_commit(),
        "at": format_now(),
    }
    append(path, run)
    return number
