"""Run the tests with the oldest supported and with the newest versions of the dependencies.

Usage::

    python tools/environments.py oldest           # the lower bounds of pyproject.toml
    python tools/environments.py newest           # the newest releases
    python tools/environments.py oldest newest    # one after the other
    python tools/environments.py oldest --keep FOLDER -- -k classifier

Each environment is new. What users need (the dependencies and the extras that `test`
includes) is held at its bound; the tools of the tests themselves (pytest, mypy, ruff, ...)
are as new as possible in both. Warnings are errors, except deprecations in the oldest
environment. Arguments after ``--`` go to pytest.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]

# Old packages call what newer ones below them, which nothing holds back, have deprecated.
# The hints of old packages are not those that mypy is to be content with.
OF_OLD_PACKAGES = [
    "-o", "filterwarnings=error\nignore::DeprecationWarning",
    "--deselect", "tests/test_style.py::test_linters_are_content[mypy]",
]  # fmt: skip


def list_requirements() -> list[str]:
    """Return what users need: the dependencies, and the extras that the tests include."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    (own,) = (line for line in extras["test"] if line.startswith("lhtree["))
    names = re.fullmatch(r"lhtree\[(.+)\]", own)[1].split(",")
    return [*project["dependencies"], *(line for name in names for line in extras[name])]


def pin_oldest(requirement: str) -> str:
    """Turn ``name[extra]>=1.2`` into ``name==1.2``, as a constraint wants it."""
    name, bound = re.fullmatch(r"([\w.-]+)(?:\[[^]]*\])?>=([\d.]+)", requirement).groups()
    return f"{name}=={bound}"


def run(*command: str | Path) -> int:
    """Show and run a command in the repository."""
    print("+", *command, flush=True)
    return subprocess.run([str(part) for part in command], cwd=REPOSITORY, check=False).returncode


def examine(which: str, folder: Path, pytest_arguments: list[str]) -> int:
    """Make one environment and run the tests in it."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if which == "oldest":
        constraints = folder / "oldest.txt"
        constraints.write_text("\n".join(map(pin_oldest, list_requirements())) + "\n", "utf-8")
        install += ["--constraint", constraints]
        pytest_arguments = [*OF_OLD_PACKAGES, *pytest_arguments]
    else:
        install += ["--upgrade", "--upgrade-strategy", "eager"]
    return run(*install, ".[test]") or run(python, "-m", "pytest", "-q", *pytest_arguments)


def main() -> None:
    """Examine the environments; exit with 1 if the tests fail in any."""
    parser = argparse.ArgumentParser(description="Run the tests with other versions.")
    parser.add_argument("which", nargs="+", choices=["oldest", "newest"])
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave them here")
    own, pytest_arguments = split_arguments(sys.argv[1:])
    options = parser.parse_args(own)
    failed = []
    with tempfile.TemporaryDirectory() as temporary:
        for which in options.which:
            folder = (options.keep or Path(temporary)) / which
            if examine(which, folder, pytest_arguments):
                failed.append(which)
    if failed:
        sys.exit("The tests fail with the " + " and the ".join(failed) + " versions.")


def split_arguments(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Separate our arguments from those behind ``--``."""
    if "--" not in arguments:
        return arguments, []
    place = arguments.index("--")
    return arguments[:place], arguments[place + 1 :]


if __name__ == "__main__":
    main()
