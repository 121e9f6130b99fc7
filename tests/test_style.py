"""The source as a maintainer wants it."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lhtree
from lhtree import _core
from mutations import MUTATIONS

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "command",
    [["ruff", "check"], ["ruff", "format", "--check"], ["mypy"]],
    ids=lambda command: " ".join(command),
)
def test_linters_are_content(command):
    run = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_imports_go_one_way():
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_stub_names_what_the_core_has():
    stub = ast.parse((ROOT / "src/lhtree/_core.pyi").read_text(encoding="utf-8"))
    functions = {node.name: node for node in stub.body if isinstance(node, ast.FunctionDef)}
    core = {name for name in vars(_core) if not name.startswith("_")}
    assert set(functions) == core
    for name, function in functions.items():
        signature = getattr(_core, name).__doc__.split("\n")[0]
        names = re.findall(r"(\w+): ", re.sub(r"\[[^]]*\]", "", signature))
        assert [arg.arg for arg in function.args.args] == names


def test_versions_agree():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{lhtree.__version__}"' in text


@pytest.mark.parametrize(
    "pattern", ["src/**/*.py", "native/**/*.?pp", "tests/**/*.py", "tools/**/*", "benchmarks/*.py"]
)
def test_files_stay_short(pattern):
    paths = [path for path in ROOT.glob(pattern) if path.is_file()]
    assert paths
    for path in paths:
        n_lines = len(path.read_text(encoding="utf-8").splitlines())
        assert n_lines <= 700, f"{path.name} has {n_lines} lines: which idea is missing?"


def test_planted_bugs_fit_the_sources():
    """A bug that no longer fits would stop tools/mutate.py, which runs rarely."""
    for mutation in MUTATIONS:
        paths = (ROOT / mutation.folder).rglob("*.?pp" if mutation.folder == "native" else "*.py")
        n_times = sum(path.read_text(encoding="utf-8").count(mutation.old) for path in paths)
        assert n_times == 1, f"{mutation.name} fits {n_times} places: change it"


def list_files_of_the_map():
    """Yield the files that the table "Where things are" names in its first column."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for cell in re.findall(r"^\| (`[^|]*) \|", text, flags=re.MULTILINE):
        folder = Path()
        for name in re.findall(r"`([^`]+)`", cell):
            folder = Path(name).parent if "/" in name else folder
            if name.endswith("/"):
                yield from ROOT.glob(f"{name}**/[!_]*.py")
            else:
                yield from ROOT.glob(str(folder / Path(name).name))


def test_every_file_has_one_place_on_the_map():
    named = sorted(path for path in list_files_of_the_map() if path.is_file())
    assert len(set(named)) == len(named)
    patterns = ("src/lhtree/**/[!_]*.py", "native/**/*.?pp", "benchmarks/[!_]*.py")
    assert {path for pattern in patterns for path in ROOT.glob(pattern)} <= set(named)


def test_the_page_of_the_architecture_names_every_room():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    table = page[page.index("| room |") : page.index("\n\n", page.index("| room |"))]
    named = re.findall(r"`(\w+)/?`", "\n".join(row.split("|")[1] for row in table.splitlines()))
    rooms = [path.stem for path in (ROOT / "src/lhtree").iterdir() if path.stem[0] != "_"]
    rooms = [name for name in rooms if name != "py"]  # py.typed marks the package
    assert sorted(named) == sorted(rooms)
    for folder in (ROOT / "native").iterdir():
        assert not folder.is_dir() or f"`{folder.name}/`" in page
        assert not folder.is_dir() or (folder / "README.md").is_file()
