"""Plant bugs in a copy of the sources, one at a time, and demand that a test fails.

Usage::

    python tools/mutate.py                     # all bugs; takes minutes
    python tools/mutate.py --only 'gini-*'     # those whose name fits; may be repeated
    python tools/mutate.py --list

Run it in the environment of a development build (see CONTRIBUTING.md). Everything
happens in a temporary folder: neither the sources nor the installation change. A bug
that no test notices is printed as SURVIVED: then a test is missing, or the bug changes
nothing that matters and another one should stand in its place.
"""

import argparse
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCES = ("native", "src", "tests", "CMakeLists.txt", "pyproject.toml")
SUFFIXES = (".cpp", ".hpp", ".py")
SECONDS_PER_TEST = 120  # a bug may make a tree grow without end
SECONDS_PER_RUN = 900
BYTES_OF_MEMORY = 8 << 30

# Finding a counterexample is enough here, making it small takes long.
PROFILE = """
from hypothesis import Phase, settings
settings.register_profile(
    "mutate", deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate)
)
"""


@dataclass(frozen=True)
class Mutation:
    """One bug: `old`, which stands exactly once in the files of `folder`, becomes `new`."""

    name: str
    folder: str
    old: str
    new: str
    tests: tuple[str, ...]  # those that exist are run, in this order


def in_core(name: str, old: str, new: str) -> Mutation:
    """Return a bug of the native core."""
    return Mutation(name, "native", old, new, ("test_tree.py", "test_classifier.py"))


def in_package(name: str, old: str, new: str) -> Mutation:
    """Return a bug of the classifiers around it."""
    return Mutation(name, "src/lhtree", old, new, ("test_classifier.py",))


# fmt: off
MUTATIONS = (
    # When a node is a leaf.
    in_core("max-depth-above", "node.depth >= rules_.max_depth", "node.depth > rules_.max_depth"),
    in_core("min-samples-above", "weight_sum < rules_.min_samples_split",
            "weight_sum <= rules_.min_samples_split"),
    in_core("equal-projections", "if (lowest == highest) return false;", ""),
    in_core("min-weight-of-right", "left >= min_weight && whole - left >= min_weight",
            "left >= min_weight"),
    in_core("min-weight-of-right-trial",
            "left.all < min_weight_ || whole.all - left.all < min_weight_",
            "left.all < min_weight_"),
    in_core("min-weight-of-leaf", "sum_weight(rows.rest)) < min_weight_) return",
            "sum_weight(rows.rest)) < 0) return"),
    # Statistics of its columns.
    in_core("constant-split", "!moments->is_fixed[j] && moments->column", "moments->column"),
    in_core("constant-leaf", "if (!moments->is_fixed[j]) visit", "visit"),
    in_core("never-settled", "if (!is_ill) return;", "return;"),
    in_core("origin-kept", "if (is_exact) moments.origin[j] = column.mean();", ""),
    in_core("origin-kept-trial", "moments = sum_values(value, extremes.min);", ""),
    in_core("ratio", "smallest_ratio = 1e-6", "smallest_ratio = 1e-15"),
    in_core("subtract-no-sum", "whole.sum_rest[j] -= part.sum_rest[j];", ""),
    in_core("subtract-no-square", "whole.square[j] -= part.square[j];", ""),
    in_core("sums-unweighted", "weight[i] = rows.weight[rows.row[begin + i]]", "weight[i] = 1.0"),
    in_core("sums-unweighted-trial", "const Lanes wx = weight ? load(weight + i) * x : x;",
            "const Lanes wx = x;"),
    in_core("squares-weighted-twice", "square1 + wx1 * x1", "square1 + wx1 * wx1"),
    in_core("weight-sum-unweighted", "sum += rows.weight[rows.row[i]]", "sum += 1.0"),
    in_core("near-weight-lost", "near_weight_[i] = all_weight_[row[i]]", "near_weight_[i] = 1.0"),
    # Columns and weights of a hyperplane.
    in_core("alpha-least", "moments->column(j).variance() > rules_.alpha",
            "moments->column(j).variance() >= rules_.alpha"),
    in_core("alpha-least-trial", "moments.variance() > rules_.alpha",
            "moments.variance() >= rules_.alpha"),
    in_core("alpha-ignored", "moments->column(j).variance() > rules_.alpha",
            "moments->column(j).variance() > 0.0"),
    in_core("alpha-ignored-trial", "moments.variance() > rules_.alpha",
            "moments.variance() > 0.0"),
    in_core("beta-above", "strongest) < rules.beta", "strongest) <= rules.beta"),
    in_core("strongest-signed", "std::max(strongest, std::abs(value))",
            "std::max(strongest, value)"),
    in_core("tiny-contrast-kept", "smallest * std::sqrt(variance)", "0 * std::sqrt(variance)"),
    in_core("standardized-weight", "return strength[i] / std::sqrt(columns[i].moments.variance())",
            "return strength[i]"),
    in_core("fisher-ridge", "x + ridge", "x"),
    in_core("fisher-shrinkage", "x * shrinkage", "x"),
    in_core("fisher-rounding-kept", "smallest * strongest", "0 * strongest"),
    in_core("fisher-total", "(x - between * contrast[i] * contrast[j])", "x"),
    # Projections.
    in_core("lanes-combined", "s, s, 4, 5, 6, 7", "s, s, 6, 7, 4, 5"),
    in_core("lanes-combined-trial", "(sum[0] + sum[4]) + (sum[2] + sum[6])",
            "(sum[0] + sum[2]) + (sum[4] + sum[6])"),
    in_core("lane-sparse", "sum[j % lane_count] += form.weight[k] * static_cast",
            "sum[k % lane_count] += form.weight[k] * static_cast"),
    in_core("lane-trial", "sum[form.feature[k] % lane_count];", "sum[k % lane_count];"),
    in_core("lane-leaf", "sum[j % lane_count] += form.weight[k] * (row",
            "sum[k % lane_count] += form.weight[k] * (row"),
    in_core("norm", "+= terms.weight[k] * terms.weight[k]", "+= std::abs(terms.weight[k])"),
    # Thresholds.
    in_core("n2-before-n1", "if (n1 == largest)", "if (n1 == largest && n2 != largest)"),
    in_core("n3-before-n2", "if (n2 == largest)", "if (n2 == largest && n3 != largest)"),
    in_core("n4-before-n3", "if (n3 == largest)", "if (n3 == largest && n4 != largest)"),
    in_core("n2-not-above", "std::nextafter(rest.max, infinity)", "rest.max"),
    in_core("n4-not-above", "std::nextafter(target.max, infinity)", "target.max"),
    in_core("gamma-above", "largest >= gamma", "largest > gamma"),
    in_core("middle-of-three", "target.min / 4 + target.max / 4",
            "target.min / 4 + target.min / 4"),
    in_core("middle-other-order", "rest.min / 4 + rest.max / 4 + target.min / 4",
            "target.min / 4 + rest.max / 4 + rest.min / 4"),
    in_core("middle-at-lowest", "if (!(middle > lowest))", "if (false)"),
    in_core("counts-unweighted", "const double weight = rows.weight[rows.row[i]];",
            "const double weight = 1.0;"),
    in_core("count-at-extreme", "below += score[i] < low", "below += score[i] <= low"),
    in_core("gini-unweighted", "return weight ? weight[i] : 1.0;", "return 1.0;"),
    in_core("gini-tolerance", "find_lowest(least + same_impurity)", "find_lowest(least)"),
    in_core("gini-bins-unsorted", "is_sorted_[b] = bound_[b] <= least + same_impurity",
            "is_sorted_[b] = false"),
    in_core("gini-bound", "corner > end ? corner : end", "end"),
    in_core("gini-limit", "std::min(least, least_bound) >= limit", "least >= limit"),
    in_core("gini-at-neighbour", "return middle > a ? middle : b;", "return middle;"),
    in_core("last-candidate-wins", "best.threshold.impurity - same_impurity",
            "best.threshold.impurity + same_impurity"),
    # Left or right.
    in_core("left-in-training", "split.score[i - node.begin] < split.threshold.value",
            "split.score[i - node.begin] <= split.threshold.value"),
    in_core("left-in-answers", "is_left = score_[k] < threshold",
            "is_left = score_[k] <= threshold"),
    in_core("left-in-few-answers", "!(score < threshold)", "!(score <= threshold)"),
    # Leaves.
    in_core("slope-of-rest", "weight() * sum_target - weight_target * sum()",
            "weight() * sum_rest - weight_rest * sum()"),
    in_core("leaf-not-centred", "(row[j] - center[k])", "row[j]"),
    in_core("leaf-not-clipped", "std::clamp(value, 0.0, 1.0)", "value"),
    in_core("leaf-not-a-number", "std::isnan(value) ? share :", ""),
    # Draws.
    in_core("draw-one-more", "value < limit ||", "value <= limit ||"),
    in_core("hash-counter", "(counter + 1) *", "counter *"),
    in_core("bootstrap-counter", "hash64(key, j) % n_rows", "hash64(key, j + 1) % n_rows"),
    in_core("multiplicity-ignored", "weight[i] *= draw.multiplicity[k]", "weight[i] *= 1.0"),
    in_core("children-exchanged", "~static_cast<std::uint64_t>(is_right)",
            "~static_cast<std::uint64_t>(!is_right)"),
    in_core("first-member-ignored", "member = plan.first_member + step", "member = step"),
    in_core("axes-key", "hash64(key, ~std::uint64_t{2})", "hash64(key, ~std::uint64_t{3})"),
    in_core("planes-whole", "std::bit_floor(static_cast<std::size_t>(c) + 1)",
            "std::size_t{1}"),
    in_core("columns-drawn-again", "i + hash64(key, i) % (m - i)", "hash64(key, i) % m"),
    in_core("columns-of-tree", "n_kept < table_->n_columns", "n_kept < 0"),
    in_core("columns-of-tree-trial", "n_kept < table_.n_columns", "n_kept < 0"),
    in_core("balance-scale", "total / (n_present * class_sum", "total / (class_sum"),
    # Votes.
    in_core("tie-sign", "(2.0 * membership - 1.0)", "(1.0 - 2.0 * membership)"),
    in_core("distance-raw", "normalizes ? forest_.norm[node] : 1.0", "1.0"),
    in_core("distance-raw-few", "normalizes ? forest.norm[node] : 1.0", "1.0"),
    in_core("distance-of-last", "gap < distance[i] ? gap : distance[i]", "gap"),
    in_core("distance-of-root", "infinity() : 0.0", "infinity() : 1.0"),
    in_core("distance-of-root-few", "if (is_root) answers.distance[tree] = 0.0;",
            "if (is_root) answers.distance[tree] = 1.0;"),
    in_core("margin-normalised", "plain.walk(tree, row, false", "plain.walk(tree, row, true"),
    in_core("complement", "(1.0 - membership) * distance", "membership * distance"),
    in_core("left-out-row", "contains(tree, first + i)", "contains(tree, i)"),
    in_core("apply-row", "leaf[(first + i) * forest.n_trees + tree]",
            "leaf[i * forest.n_trees + tree]"),
    # Units.
    in_core("float32-units", "scaled[i * n_columns + j] = ", "scaled[i * n_columns + j] = (T)"),
    in_core("float32-units-trial", "scaled[j * n_all_rows + i] = ",
            "scaled[j * n_all_rows + i] = (T)"),
    in_core("other-units-in-answers", ") / scaling.deviation[j]",
            ") * (1 / scaling.deviation[j])"),
    in_core("no-limit", "std::clamp(value, -limit, limit)", "value"),
    in_core("scale-unweighted", "rows{{row.data(), table.n_rows, weight}",
            "rows{{row.data(), table.n_rows, nullptr}"),
    in_core("small-variance", "variance < smallest_variance", "variance < 0"),
    # The classifiers.
    in_package("beta-schedule", "self.beta * i / t", "self.beta * (i + 1) / t"),
    in_package("warm-start-member", "first_member=n_old", "first_member=0"),
    in_package("warm-start-seed", "self._seed if n_old else self._find_seed()",
               "self._find_seed()"),
    in_package("warm-start-units",
               "return self.forest_.column_mean, self.forest_.column_deviation",
               "return _core.find_scale(rows.X, rows.weight)"),
    in_package("mean-of-all-weights", "math.fsum(positive) / len(positive)",
               "math.fsum(positive) / len(weight)"),
    in_package("draws-cut", "round(float(value) * n_rows)", "int(value * n_rows)"),
    in_package("min-samples-cut", "math.ceil(value * n_rows)", "int(value * n_rows)"),
    in_package("min-samples-of-classes", "self.min_samples_split, n_weighted",
               "self.min_samples_split, rows.weight_sum"),
    in_package("tie-of-two", "[-distance[:, 1],", "[distance[:, 1],"),
    in_package("out-of-bag-row", "[rows.number[is_voted]]", "[np.flatnonzero(is_voted)]"), )
# fmt: on


@dataclass(frozen=True)
class Copy:
    """A copy of the repository, its build, and an interpreter that imports it."""

    folder: Path

    @property
    def sources(self) -> Path:
        """Root of the copied repository."""
        return self.folder / "sources"

    @property
    def build(self) -> Path:
        """Folder of the objects, kept so that a build compiles only what changed."""
        return self.folder / "build"

    @property
    def python(self) -> Path:
        """Interpreter whose package is the copy."""
        return self.folder / "environment" / "bin" / "python"


def run(command: Sequence[str | Path]) -> None:
    """Run a command quietly; show its output if it fails."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\n{' '.join(map(str, command))} failed.")


def make_copy(folder: Path) -> Copy:
    """Copy the sources, configure their build, and set up an environment for tests."""
    copy = Copy(folder)
    for name in SOURCES:
        path, to = REPOSITORY / name, copy.sources / name
        if path.is_dir():
            shutil.copytree(path, to, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        else:
            shutil.copy(path, to)
    nanobind = subprocess.check_output(
        [sys.executable, "-m", "nanobind", "--cmake_dir"], text=True
    )
    options = [f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind.strip()}"]
    # No build type: that of releases optimises more than these few runs repay.
    options += ["-DCMAKE_BUILD_TYPE=", "-DCMAKE_CXX_FLAGS=-O1 -DNDEBUG"]
    run(["cmake", *options, "-S", copy.sources, "-B", copy.build])
    make_environment(copy)
    return copy


def make_environment(copy: Copy) -> None:
    """Set up an interpreter that finds the copy first, then the packages of this one."""
    venv.create(copy.folder / "environment", symlinks=True)
    packages = next((copy.folder / "environment").glob("lib/python*/site-packages"))
    # Our .pth file does not run those in the folders that it names, so an editable
    # installation of the package stays out of the way.
    paths = [copy.sources / "src", *(path for path in sys.path if path.endswith("-packages"))]
    (packages / "mutate.pth").write_text("\n".join(map(str, paths)), encoding="utf-8")
    (packages / "mutate_profile.py").write_text(PROFILE, encoding="utf-8")


def build_core(copy: Copy) -> None:
    """Compile what changed and put the extension module into the copied package."""
    run(["cmake", "--build", copy.build, "--target", "_core"])
    (core,) = copy.build.glob("_core*.so")
    shutil.copy(core, copy.sources / "src" / "lhtree")
    code = "import lhtree._core; print(lhtree._core.__file__)"
    used = subprocess.check_output([copy.python, "-c", code], cwd=copy.sources, text=True)
    if not Path(used.strip()).is_relative_to(copy.sources):
        sys.exit(f"The tests would run with {used.strip()} instead of the copy.")


def limit_memory() -> None:
    """Make a tree that grows without end fail instead of filling the machine."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES_OF_MEMORY, BYTES_OF_MEMORY))


def find_failure(copy: Copy, tests: Sequence[str]) -> str | None:
    """Run tests and return what failed first, or None if all pass."""
    existing = [f"tests/{name}" for name in tests if (copy.sources / "tests" / name).exists()]
    options = ["-x", "-q", "-p", "mutate_profile", "-p", "no:cacheprovider", "--tb=no"]
    options.append(f"--timeout={SECONDS_PER_TEST}")
    try:
        done = subprocess.run(
            [copy.python, "-m", "pytest", *options, *existing],
            cwd=copy.sources,
            env={**os.environ, "HYPOTHESIS_PROFILE": "mutate", "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=SECONDS_PER_RUN,
            preexec_fn=limit_memory,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "a run without end"
    if done.returncode == 0:
        return None
    if done.returncode < 0:
        return f"a crash ({signal.Signals(-done.returncode).name})"
    failed = re.search(r"^(?:FAILED|ERROR) (\S+::[^\s\[]+)", done.stdout, re.MULTILINE)
    if failed is None:
        sys.exit(f"{done.stdout}\npytest failed, but no test did.")
    return failed[1]


def find_file(root: Path, mutation: Mutation) -> Path:
    """Return the file to change; exit unless the text stands exactly once in the folder."""
    texts = {path: path.read_text(encoding="utf-8") for path in find_sources(root, mutation)}
    found = [path for path, text in texts.items() if mutation.old in text]
    if len(found) != 1 or texts[found[0]].count(mutation.old) != 1:
        n_times = sum(text.count(mutation.old) for text in texts.values())
        sys.exit(
            f"{mutation.name}: {mutation.folder} has {mutation.old!r} {n_times} times instead of "
            "once; change the mutation."
        )
    return found[0]


def find_sources(root: Path, mutation: Mutation) -> list[Path]:
    """Return the files in which a mutation may stand."""
    return [path for path in (root / mutation.folder).iterdir() if path.suffix in SUFFIXES]


@contextmanager
def planted(copy: Copy, mutation: Mutation) -> Iterator[None]:
    """Have the bug in the copied sources for a while."""
    path = find_file(copy.sources, mutation)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(text, encoding="utf-8")


def examine(copy: Copy, mutation: Mutation) -> bool:
    """Plant one bug, print what notices it, and return whether anything does."""
    start = time.monotonic()
    with planted(copy, mutation):
        if mutation.folder == "native":
            build_core(copy)
        failure = find_failure(copy, mutation.tests)
    verdict = "SURVIVED" if failure is None else f"caught by {failure}"
    print(f"{mutation.name:28} {verdict} ({time.monotonic() - start:.0f} s)", flush=True)
    return failure is not None


def choose_mutations(patterns: Sequence[str]) -> list[Mutation]:
    """Return the mutations whose names fit a pattern; those of Python files come first."""
    known = {mutation.name: mutation for mutation in MUTATIONS}
    if len(known) != len(MUTATIONS):
        sys.exit("Two mutations have the same name.")
    chosen = [known[name] for name in known if any(fnmatch(name, part) for part in patterns)]
    if not chosen:
        sys.exit(f"No mutation fits {' or '.join(patterns)}; --list names them all.")
    # They run with the core as it is, which the first build leaves behind.
    return sorted(chosen, key=lambda mutation: mutation.folder == "native")


def main() -> None:
    """Examine the chosen mutations; exit with 1 if any survives."""
    parser = argparse.ArgumentParser(description="Plant bugs and see whether a test fails.")
    parser.add_argument("--only", metavar="NAME", action="append", help="may hold * and ?")
    parser.add_argument("--list", action="store_true", help="print the names and leave")
    arguments = parser.parse_args()
    mutations = choose_mutations(arguments.only or ["*"])
    if arguments.list:
        print(*(f"{mutation.name:28} {mutation.folder}" for mutation in mutations), sep="\n")
        return
    for mutation in mutations:
        find_file(REPOSITORY, mutation)
    # The environment's own CMake, also if the environment is not activated.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        copy = make_copy(Path(folder))
        build_core(copy)
        tests = list(dict.fromkeys(test for mutation in mutations for test in mutation.tests))
        if failure := find_failure(copy, tests):
            sys.exit(f"{failure} fails without any bug planted.")
        survivors = [mutation.name for mutation in mutations if not examine(copy, mutation)]
    print(f"{len(mutations) - len(survivors)} of {len(mutations)} bugs caught.")
    if survivors:
        sys.exit("No test notices " + ", ".join(survivors) + ".")


if __name__ == "__main__":
    main()
