"""The source as a maintainer wants it."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lhtree
from lhtree import _core

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
    "pattern",
    ["src/**/*.py", "native/**/*.?pp", "tests/**/*.py", "tools/**/*", "benchmarks/**/*.py"],
)
def test_files_stay_short(pattern):
    paths = [path for path in ROOT.glob(pattern) if path.is_file()]
    assert paths
    for path in paths:
        n_lines = len(path.read_text(encoding="utf-8").splitlines())
        assert n_lines <= 700, f"{path.name} has {n_lines} lines: which idea is missing?"


def read_rooms():
    """Return the table of rooms in the page of the architecture: modules named for each room."""
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    table = page[page.index("| room |") : page.index("\n\n", page.index("| room |"))]
    rows = [row.split("|")[1:4] for row in table.splitlines()[2:]]
    return {
        name: re.findall(r"`(\w+)/?`", modules)
        for room, _, modules in rows
        for name in re.findall(r"`(\w+)/?`", room)
    }


def test_the_page_of_the_architecture_names_every_room():
    folders = [path.stem for path in (ROOT / "src/lhtree").iterdir() if path.stem[0] != "_"]
    assert sorted(read_rooms()) == sorted(name for name in folders if name != "py")  # py.typed


@pytest.mark.parametrize("room", ["data", "model", "training", "estimators", "persist", "dask"])
def test_the_page_of_the_architecture_names_every_module(room):
    modules = {path.stem for path in (ROOT / "src/lhtree" / room).glob("[!_]*.py")}
    assert modules <= set(read_rooms()[room])


def test_the_table_of_behaviours_names_what_is_there():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rows = page[page.index("| behaviour |") :].splitlines()[2:]
    assert len(rows) > 20
    for row in rows:
        text = ""
        for name in re.findall(r"`([^`]+)`", row.split("|")[2]):
            if name.endswith((".py", ".hpp", ".cpp", ".js")):
                where = ROOT if name.startswith("native/") else ROOT / "src"
                paths = [*where.glob(f"**/{name}")]
                assert paths, f"there is no file {name}"
                text = "".join(path.read_text(encoding="utf-8") for path in paths)
            else:
                last = name.split(".")[-1].split(":")[-1]
                assert re.search(rf"\b{last}\b", text), f"{name} is not in its file"


def test_every_folder_says_what_it_holds():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    for folder in (ROOT / "native").iterdir():
        assert not folder.is_dir() or f"`{folder.name}/`" in page
        assert not folder.is_dir() or (folder / "README.md").is_file()
    for folder in (ROOT / "src/lhtree").rglob("*/"):
        if any(folder.glob("*.py")):
            assert (folder / "__init__.py").read_text(encoding="utf-8").startswith('"""'), folder
