"""Plant bugs in a copy of the sources, one at a time, and demand that a test fails.

Usage::

    python tools/mutate.py                     # all bugs of tools/mutations.py
    python tools/mutate.py --only 'file-*'     # those whose name fits; may be repeated
    python tools/mutate.py --list              # their names, and whether their texts occur

Run it in the environment of a development build (see CONTRIBUTING.md). Everything
happens in a temporary folder: neither the sources nor the installation change. A bug
that no test notices is printed as SURVIVED: then a test is missing, or the bug changes
nothing that matters and another one should replace it.
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

from mutations import MUTATIONS, Mutation

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCES = ("native", "src", "tests", "CMakeLists.txt", "pyproject.toml")
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
    """Copy the sources and set up an environment for tests."""
    copy = Copy(folder)
    for name in SOURCES:
        path, to = REPOSITORY / name, copy.sources / name
        if path.is_dir():
            shutil.copytree(path, to, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        else:
            shutil.copy(path, to)
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


def use_installed_core(copy: Copy) -> None:
    """Put the extension module of this environment into the copied package."""
    code = "import lhtree._core; print(lhtree._core.__file__)"
    core = subprocess.check_output([sys.executable, "-c", code], text=True).strip()
    shutil.copy(core, copy.sources / "src" / "lhtree")


def configure_build(copy: Copy) -> None:
    """Set up the folder in which `build_core` compiles."""
    nanobind = subprocess.check_output(
        [sys.executable, "-m", "nanobind", "--cmake_dir"], text=True
    )
    options = [f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind.strip()}"]
    # No build type: that of releases optimises more than these few runs repay.
    options += ["-DCMAKE_BUILD_TYPE=", "-DCMAKE_CXX_FLAGS=-O1 -DNDEBUG"]
    run(["cmake", *options, "-S", copy.sources, "-B", copy.build])


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
    files = [f"tests/{name}" for name in tests]
    options = ["-x", "-q", "-p", "mutate_profile", "-p", "no:cacheprovider", "--tb=no"]
    options.append(f"--timeout={SECONDS_PER_TEST}")
    try:
        done = subprocess.run(
            [copy.python, "-m", "pytest", *options, *files],
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


def describe_problem(root: Path, mutation: Mutation) -> str | None:
    """Return why a bug cannot be planted or caught; None if it can."""
    path = root / mutation.path
    if not path.is_file():
        return f"{mutation.path} does not exist"
    n_times = path.read_text(encoding="utf-8").count(mutation.old)
    if n_times != 1:
        return f"{mutation.path} has {mutation.old!r} {n_times} times instead of once"
    missing = [name for name in mutation.tests if not (root / "tests" / name).is_file()]
    return f"tests/{missing[0]} does not exist" if missing else None


def refuse_problems(mutations: Sequence[Mutation]) -> None:
    """Exit with one line for each bug that no longer matches the sources."""
    problems = [
        f"{mutation.name}: {problem}."
        for mutation in mutations
        if (problem := describe_problem(REPOSITORY, mutation))
    ]
    if problems:
        sys.exit("\n".join([*problems, "Change these bugs in tools/mutations.py."]))


@contextmanager
def planted(copy: Copy, mutation: Mutation) -> Iterator[None]:
    """Have the bug in the copied sources for a while."""
    path = copy.sources / mutation.path
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
        if mutation.is_native:
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
    # They run with the core as it is, before any bug is compiled into it.
    return sorted(chosen, key=lambda mutation: mutation.is_native)


def main() -> None:
    """Examine the chosen mutations; exit with 1 if any survives."""
    parser = argparse.ArgumentParser(description="Plant bugs and see whether a test fails.")
    parser.add_argument("--only", metavar="NAME", action="append", help="may hold * and ?")
    parser.add_argument("--list", action="store_true", help="print the names and leave")
    arguments = parser.parse_args()
    mutations = choose_mutations(arguments.only or ["*"])
    if arguments.list:
        print(*(f"{mutation.name:28} {mutation.path}" for mutation in mutations), sep="\n")
    refuse_problems(mutations)
    if arguments.list:
        return
    # The environment's own CMake, also if the environment is not activated.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        copy = make_copy(Path(folder))
        use_installed_core(copy)
        if any(mutation.is_native for mutation in mutations):
            configure_build(copy)
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
