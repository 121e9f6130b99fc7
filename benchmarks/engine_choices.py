"""Measure other values of the constants of the exact engine than those that were chosen.

::

    python -m benchmarks.engine_choices          # measure what has no line
    python -m benchmarks.report engine_choices   # the page from the lines

A constant of the native core needs a core of its own: the sources of the last commit are
compiled in a folder with one value replaced in their text, and a worker process loads the result
in place of the installed core. All values do a split of a table before the next one follows, one
at a time, so that their times can be compared.

Lines are continued only where the sources that grow models are those of the last commit; after a
change of these all is measured anew, since the default may grow other models.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import itertools
import json
import math
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split
from tqdm import tqdm

from benchmarks import data, lines
from benchmarks.lines import Line
from lhtree import LHBoostClassifier, LHBoostRegressor
from lhtree.estimators.boosting import params as boosting_params
from lhtree.training.plan import BoostingPlan

REPOSITORY = Path(__file__).parents[1]
KEY = ("data", "split", "choice", "value")
GROWERS = (  # what decides which models grow
    *(f"native/{name}" for name in ("base", "grow", "model", "split", "stats")),
    *(f"src/lhtree/{name}" for name in ("estimators/boosting", "training")),
)

Start = Callable[[Path, ExitStack], Callable[[Line], Line]]
Variant = tuple[str, str]  # name of the choice, value

N_ROUNDS, N_SPLITS = 100, 3
ROUNDS = {
    "n_estimators": N_ROUNDS,
    "learning_rate": 0.1,
    "max_leaf_nodes": 31,
    "l2_regularization": 1.0,
}
MAX_ROWS, MAX_VALUES = 5_000, 1_000_000  # of a table
CURVES = "curves"
DEFAULT = ("default", "")
Edit = tuple[str, str, str]  # path, text, what replaces it


class Choice(NamedTuple):
    """A constant of the core, or a setting of the estimator; the first value is the default."""

    name: str
    values: tuple[float, ...]
    title: str
    verdict: str
    path: str = ""  # of a constant

    def edit(self, value: float) -> list[Edit]:
        """Return what makes a core with a value from the sources."""
        if not self.path:
            return []
        kind = "std::int64_t" if self.name == "small_node" else "int"
        old, new = (f"constexpr {kind} {self.name} = {v:g};" for v in (self.values[0], value))
        return [(self.path, old, new)]


CHOICES = (
    Choice(
        "steps_per_std",
        (20, 12, 14, 16, 40),
        "Steps of the grid: 2^n to a standard deviation",
        "2^20 steps: the curves lose 1.5 to 7.5 points with 16 to 12, the other tables next to "
        "nothing. 40, for which the range alone decides, is as good here; steps next to the "
        "deviation were kept so that a heavy-tailed column leaves others their bits of weight. "
        "Targets are on such a grid, too.",
        "native/base/grid.hpp",
    ),
    Choice(
        "grid_bits",
        (30, 16),
        "Bits of the range, at most",
        "All that 32-bit words hold: 16 bits cost the curves 5 points.",
        "native/base/grid.hpp",
    ),
    Choice(
        "direction_bits",
        (12, 8, 10),
        "Bits of columns in directions",
        "12, with which 128 products fit a word of 32 bits: 8 are as good on these tables.",
        "native/split/node_columns.hpp",
    ),
    Choice(
        "short_bits",
        (15, 8),
        "Bits of gradients in directions",
        "15, all that a word of 16 holds: 8 are as good on these tables.",
        "native/split/moments.hpp",
    ),
    Choice(
        "coefficient_bits",
        (15, 5, 8, 11),
        "Bits of weights of hyperplanes",
        "15: even 5 are as good on these tables, so that models may become smaller.",
        "native/split/direction.hpp",
    ),
    Choice(
        "max_bins",
        (255, 63, 127),
        "Bins of a column",
        "255, all that a byte holds beside missing values: 63 save a fifth of the time and cost "
        "nothing that shows here, where tables have few rows.",
    ),
    Choice(
        "small_node",
        (256, 32, 64, 1024),
        "Rows up to which all cuts of projections are tried",
        "256: 64 and 1024 are as accurate; 1024 take a tenth more time, 64 save none.",
        "native/split/projection.hpp",
    ),
    Choice(
        "n_hyperplanes",
        (1, 0, 3, 7),
        "Hyperplanes of a node",
        "1: without, most tables lose, the curves 29 points, for 0.6 of the time; avila gains "
        "0.8 points. 3 and 7 take longer without a gain that shows.",
    ),
    Choice(
        "max_terms",
        (2, 1, 4),
        "Columns drawn for hyperplanes, in square roots of all",
        "2: 1 loses on more tables than it wins, 4 likewise, and it takes longer.",
    ),
    Choice(
        "shrinkage",
        (0.3, 0.05, 0.6),
        "Shrinkage of correlations",
        "0.3, the middle of what was tried: neither 0.05 nor 0.6 is better or worse by more than "
        "chance, except on the curves, which like little of it: 93.8 with 0.05, 89.3 with 0.6.",
    ),
)

VARIANTS = {
    DEFAULT: list[Edit](),
    **{(c.name, f"{v:g}"): c.edit(v) for c in CHOICES for v in c.values[1:]},
}

# What a worker runs: its core must be there before anything imports the package.
PROGRAM = """
import importlib.util, os, sys
name = "lhtree._core"
spec = importlib.util.spec_from_file_location(name, os.environ["LHTREE_CORE"])
core = sys.modules[name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(core)
import lhtree
lhtree._core = core
from benchmarks import engine_choices
engine_choices.serve()
"""


# ---- Cores


def replace_once(text: str, old: str, new: str, where: str) -> str:
    """Return the text with a part of it replaced that must occur once."""
    if text.count(old) != 1:
        raise ValueError(f"{where} has {old!r} {text.count(old)} times instead of once.")
    return text.replace(old, new)


def call(*command: str | Path) -> str:
    """Return what a command prints; show it and leave if the command fails."""
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}\n{' '.join(map(str, command))} failed.")
    return done.stdout.strip()


def configure(folder: Path) -> None:
    """Copy the sources of the last commit to a folder in which cores can be compiled."""
    (folder / "sources").mkdir(exist_ok=True)
    archive, nanobind = (
        folder / "sources.tar",
        call(sys.executable, "-m", "nanobind", "--cmake_dir"),
    )
    call("git", "archive", "-o", archive, "HEAD", "native", "CMakeLists.txt", "pyproject.toml")
    call("tar", "-xf", archive, "-C", folder / "sources")
    options = [f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind}"]
    options += ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
    call("cmake", "--fresh", *options, "-S", folder / "sources", "-B", folder / "build")


def build_core(folder: Path, variant: Variant) -> Path:
    """Return the core of a variant; only what differs from the one before is compiled."""
    edits = VARIANTS[variant]
    core = folder / ("-".join(variant if edits else DEFAULT) + ".so")
    if core.exists():
        return core
    paths = {folder / "sources" / path for path, _, _ in edits}
    before = {path: path.read_text(encoding="utf-8") for path in paths}
    for where, old, new in edits:
        path = folder / "sources" / where
        text = replace_once(path.read_text(encoding="utf-8"), old, new, where)
        path.write_text(text, encoding="utf-8")
    call("cmake", "--build", folder / "build", "--target", "_core", "--parallel", "1")
    for path, text in before.items():
        path.write_text(text, encoding="utf-8")
    (built,) = (folder / "build").glob("_core*.so")
    return built.rename(core)


# ---- Tables


def list_tables() -> list[str]:
    """Return every other table of each kind, by name; the rest is left to judge by."""
    kinds = [[name for name, each in sorted(data.PAPER.items()) if each.checksum]]
    folder = Path(os.environ.get("LHTREE_DATA", ""))
    for kind in ("regression", "frames"):
        kinds.append([f"{kind}/{path.stem}" for path in sorted((folder / kind).glob("*.parquet"))])
    return [CURVES, *(name for names in kinds for name in names[::2])]


def make_curves(n_rows: int = 800, n_columns: int = 200) -> data.Labelled:
    """Return curves of twelve bumps each, and which of two shapes they are closer to.

    Bumps differ by four orders of magnitude in height, curves by six; shapes by 5 %.
    """
    rng = np.random.default_rng(0)
    offset = np.linspace(0, 1, n_columns) - np.linspace(0, 1, 12)[:, None]
    bump = np.exp(-((offset / 0.06) ** 2)) * 10.0 ** rng.uniform(-2, 2, (12, 1))
    y = rng.integers(0, 2, n_rows)
    shape = 1 + 0.05 * rng.normal(size=(n_rows, 12))
    shape[:, 3:9] += 0.05 * np.outer(2 * y - 1, [-1, 1, -1, 1, -1, 1])
    height = 10.0 ** rng.uniform(0, 6, (n_rows, 1))
    return height * (shape @ bump) * (1 + 0.002 * rng.normal(size=(n_rows, n_columns))), y


def read_table(name: str) -> tuple[Any, Any]:
    """Return training rows, not too many: numbers and categories, and targets."""
    if name == CURVES:
        X, y = make_curves()
    elif "/" in name:
        import pandas as pd

        X = pd.read_parquet(Path(os.environ["LHTREE_DATA"]) / f"{name}.parquet")
        y = X.pop("target").to_numpy()
        kinds = {True: float, False: "category"}
        X = X.astype({name: kinds[pd.api.types.is_numeric_dtype(X[name])] for name in X})
        X, _, y, _ = train_test_split(X, y, test_size=0.2, random_state=0)
    else:
        X, y = data.load(name)[:2]
    n_rows = min(MAX_ROWS, MAX_VALUES // X.shape[1])
    row = np.random.default_rng(0).permutation(len(y))[:n_rows]
    X, y = X[row] if isinstance(X, np.ndarray) else X.iloc[row], y[row]
    if name.startswith("regression/"):
        return X, y.astype(np.float64)
    _, code, count = np.unique(y, return_inverse=True, return_counts=True)
    return X, code if len(count) == 2 else (code == count.argmax()).astype(np.int64)


# ---- Measurements


@functools.lru_cache(maxsize=1)
def _read_pickle(path: str) -> Any:
    return pickle.loads(Path(path).read_bytes())


def make_model(X: Any, *, is_number: bool, choice: str, value: str) -> Any:
    """Return the model of a value; one that is not a parameter is set in its plan."""
    shrinkage: dict[str, Any] = {"shrinkage": float(value)} if choice == "shrinkage" else {}
    vars(boosting_params)["BoostingPlan"] = functools.partial(BoostingPlan, **shrinkage)
    settings: dict[str, Any] = {"early_stopping": False, "n_jobs": 1, **ROUNDS}
    if choice == "max_terms":  # square roots of the number of columns of numbers
        kinds = [X.dtype] * X.shape[1] if isinstance(X, np.ndarray) else list(X.dtypes)
        settings[choice] = max(2, int(float(value) * math.sqrt(kinds.count(np.dtype(float)))))
    elif choice in ("n_hyperplanes", "max_bins"):
        settings[choice] = int(value)
        if choice == "max_bins":
            settings["max_categories"] = int(value)
    return (LHBoostRegressor if is_number else LHBoostClassifier)(**settings, random_state=0)


def measure(job: Line) -> Line:
    """Fit and score one split; return accuracy or R2 in percent, and seconds of the fit."""
    X, y = _read_pickle(job["path"])
    is_number = y.dtype == np.float64
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=0.25, random_state=job["split"], stratify=None if is_number else y
    )
    model = make_model(X, is_number=is_number, choice=job["choice"], value=job["value"])
    start = time.process_time()
    model.fit(X, y)
    cpu = round(time.process_time() - start, 4)
    score = round(100 * float(model.score(X_test, y_test)), 4)
    return {"measure": "R2" if is_number else "accuracy", "score": score, "cpu_s": cpu}


def serve() -> None:
    """Do the jobs of the standard input, a line each, and answer each with a line."""
    for line in sys.stdin:
        print(json.dumps(measure(json.loads(line))), flush=True)


def start_worker(core: Path, stack: ExitStack) -> Callable[[Line], Line]:
    """Return what does a job in a process with a core of its own, which ends with the stack."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], cwd=REPOSITORY, text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, env={**os.environ, "LHTREE_CORE": str(core)},
    )  # fmt: skip
    stdin, stdout = stack.enter_context(process).stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    def do(job: Line) -> Line:
        print(json.dumps(job), file=stdin, flush=True)
        if not (answer := stdout.readline()):
            raise RuntimeError(f"{core.name} failed at {job}.")
        return dict(json.loads(answer))

    return do


def identify_sources() -> str:
    """Return a digest of the last commit's sources that decide which models grow."""
    trees = call("git", "rev-parse", *(f"HEAD:{path}" for path in GROWERS))
    return hashlib.sha256(trees.encode()).hexdigest()[:12]


def list_jobs(out: Path) -> list[Line]:
    """Return what has no line yet of the sources of the last commit."""
    sources = identify_sources()
    found = [line for line in lines.read(out) if line.get("sources") == sources]
    done = {tuple(line[name] for name in KEY) for line in found}
    tables, splits = list_tables(), range(N_SPLITS)
    keys = [(table, split, *each) for table in tables for split in splits for each in VARIANTS]
    return [dict(zip(KEY, key, strict=True)) for key in keys if key not in done]


def run(jobs: list[Line], out: Path, folder: Path, start: Start = start_worker) -> None:
    """Do the jobs and append their lines."""
    number = lines.start_run(out)
    commit = {"commit": call("git", "rev-parse", "--short", "HEAD"), "sources": identify_sources()}
    variants = list(dict.fromkeys((job["choice"], job["value"]) for job in jobs))
    cores = {each: build_core(folder, each) for each in tqdm(variants, desc="cores")}
    with ExitStack() as stack:
        workers = {core: start(core, stack) for core in dict.fromkeys(cores.values())}
        for name, group in itertools.groupby(tqdm(jobs), lambda job: job["data"]):
            path = folder / f"{name.replace('/', '-')}.pickle"
            path.write_bytes(pickle.dumps(read_table(name)))
            for job in group:
                result = workers[cores[job["choice"], job["value"]]]({**job, "path": str(path)})
                lines.append(out, {**job, **result, **commit, "run": number})


# ---- The command


def main() -> None:
    """Measure what has no line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=lines.RESULTS / "engine_choices.jsonl")
    parser.add_argument("--folder", type=Path, help="where cores are compiled and kept")
    options = parser.parse_args()
    lines.mend(options.out)
    jobs = list_jobs(options.out)
    if jobs:
        with tempfile.TemporaryDirectory() as temporary:
            folder = options.folder or Path(temporary)
            configure(folder)
            run(jobs, options.out, folder)


if __name__ == "__main__":
    main()
