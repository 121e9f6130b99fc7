"""Other values of the constants of the exact engine than those that were chosen.

A constant of the native core needs a core of its own: the sources are compiled in a folder with
one value replaced in their text, and a worker process loads the result in place of the installed
core. All values do a split of a table before the next one follows, one at a time, so that their
times can be compared. After a change of the sources all is measured anew, since the default may
grow other models.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks import data, lines
from benchmarks.kinds import choices
from benchmarks.kinds.choices import DEFAULT
from benchmarks.lines import REPOSITORY, Line
from lhtree import LHBoostClassifier, LHBoostRegressor
from lhtree.estimators.boosting import params as boosting_params
from lhtree.training.plan import BoostingPlan

N_ROUNDS, N_SPLITS = 100, 3
ROUNDS = {
    "n_estimators": N_ROUNDS,
    "learning_rate": 0.1,
    "max_leaf_nodes": 31,
    "l2_regularization": 1.0,
}
MAX_ROWS, MAX_VALUES = 5_000, 1_000_000  # of a table
CURVES = "curves"


class Choice(NamedTuple):
    """A constant of the core, or a setting of the estimator; the first value is the default."""

    name: str
    values: tuple[float, ...]
    title: str
    verdict: str
    path: str = ""  # of a constant

    def declare(self, value: float) -> str:
        """Return the line of the sources that gives a constant a value."""
        kind = "std::int64_t" if self.name == "small_node" else "int"
        return f"constexpr {kind} {self.name} = {value:g};"


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
        "All that 32-bit words hold: 16 bits cost the curves 4.5 points, other tables nothing "
        "that shows.",
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
        "255, all that a byte holds beside missing values: 63 save a fifth of the time, 127 "
        "a tenth, and neither costs anything that shows here, where tables have few rows.",
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
        "1: without, two thirds of the tables lose, the curves 28 points, for 0.6 of the time. "
        "3 and 7 win on more tables than they lose, by less than two standard errors, and take "
        "1.3 and 1.5 times as long.",
    ),
    Choice(
        "max_terms",
        (2, 1, 4),
        "Columns drawn for hyperplanes, in square roots of all",
        "2: 1 and 4 are neither better nor worse by more than chance; both lose on more tables "
        "than they win, and 4 takes longer.",
    ),
    Choice(
        "shrinkage",
        (0.3, 0.05, 0.6),
        "Shrinkage of correlations",
        "0.3, the middle of what was tried: neither 0.05 nor 0.6 is better or worse by more than "
        "chance. The curves like little of it: 93.7 with 0.05, 90.7 with 0.6.",
    ),
)

VARIANTS = [DEFAULT, *((each.name, f"{v:g}") for each in CHOICES for v in each.values[1:])]


def list_jobs(options: Namespace) -> list[Line]:
    """Return splits of the tables to choose by, and of the curves, for each value."""
    tables = (CURVES, *choices.list_tables())
    places = [(name, split) for name in tables for split in range(options.seeds)]
    return choices.make_jobs(places, VARIANTS)


# ---- Cores


def prepare(job: Line) -> dict[str, str]:
    """Return the variables of a worker with the core of a value."""
    folder = data.get_cache() / "cores" / lines.compute_build()
    return {"LHTREE_CORE": str(build_core(folder, (job["choice"], job["value"])))}


def build_core(folder: Path, variant: tuple[str, str]) -> Path:
    """Return the core of a variant; only what differs from the one before is compiled."""
    choice = next((each for each in CHOICES if each.name == variant[0] and each.path), None)
    core = folder / ("-".join(variant if choice else DEFAULT) + ".so")
    if core.exists():
        return core
    sources, build = folder / "sources", folder / "build"
    if not build.exists():
        shutil.copytree(REPOSITORY / "native", sources / "native")
        for name in ("CMakeLists.txt", "pyproject.toml"):
            shutil.copy(REPOSITORY / name, sources)
        where = call(sys.executable, "-m", "nanobind", "--cmake_dir")
        options = [f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={where}"]
        options += ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
        call("cmake", *options, "-S", sources, "-B", build)
    for name in {each.path for each in CHOICES if each.path}:  # also what a kill left edited
        text = (REPOSITORY / name).read_text(encoding="utf-8")
        if choice is not None and name == choice.path:
            old, new = choice.declare(choice.values[0]), choice.declare(float(variant[1]))
            text = replace_once(text, old, new, name)
        if text != (sources / name).read_text(encoding="utf-8"):
            (sources / name).write_text(text, encoding="utf-8")
    call("cmake", "--build", build, "--target", "_core", "--parallel", "1")
    (built,) = build.glob("_core*.so")
    return built.rename(core)


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


# ---- Measurements


@functools.lru_cache(maxsize=1)
def read_table(name: str) -> tuple[Any, Any]:
    """Return training rows, not too many, and targets; classes are two."""
    X, y = data.make_curves() if name == CURVES else data.load(name)[:2]
    X, y = choices.draw_rows(X, y, min(MAX_ROWS, MAX_VALUES // X.shape[1]), seed=0)
    if data.is_of_numbers(name):
        return X, y.astype(np.float64)
    _, code, count = np.unique(y, return_inverse=True, return_counts=True)
    return X, code if len(count) == 2 else (code == count.argmax()).astype(np.int64)


def make_model(X: Any, *, is_number: bool, choice: str, value: str) -> Any:
    """Return the model of a value; one that is not a parameter is set in its plan."""
    shrinkage: dict[str, Any] = {"shrinkage": float(value)} if choice == "shrinkage" else {}
    vars(boosting_params)["BoostingPlan"] = functools.partial(BoostingPlan, **shrinkage)
    settings: dict[str, Any] = {"early_stopping": False, "n_jobs": 1, **ROUNDS}
    if choice == "max_terms":
        settings[choice] = choices.count_terms(X, float(value))
    elif choice in ("n_hyperplanes", "max_bins"):
        settings[choice] = int(value)
        if choice == "max_bins":
            settings["max_categories"] = int(value)
    return (LHBoostRegressor if is_number else LHBoostClassifier)(**settings, random_state=0)


def measure(job: Line) -> Line:
    """Fit and score one split; return accuracy or R2 in percent, and seconds of the fit."""
    X, y = read_table(job["data"])
    is_number = data.is_of_numbers(job["data"])
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=0.25, random_state=job["split"], stratify=None if is_number else y
    )
    model = make_model(X, is_number=is_number, choice=job["choice"], value=job["value"])
    cpu = choices.time_fit(model, X, y)
    score = round(100 * float(model.score(X_test, y_test)), 4)
    return {"measure": "R2" if is_number else "accuracy", "score": score, "cpu_s": cpu}
