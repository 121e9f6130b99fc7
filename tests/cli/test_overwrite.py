"""No command writes over a file that it reads."""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import lhtree
from lhtree.cli.app import run

NAMES = ("d.csv", "t.csv", "m.csv", "m.safetensors")  # a model may have any name


@pytest.fixture(scope="module")
def origin(tmp_path_factory):
    """Return a folder with two tables and two models, which no test changes."""
    path = tmp_path_factory.mktemp("origin")
    with contextlib.chdir(path):
        assert run(["demo", "--csv", "d.csv"]) == 0
        shutil.copy("d.csv", "t.csv")
        assert run(shlex.split("fit d.csv --target cultivar --model tree -o m.safetensors")) == 0
        shutil.copy("m.safetensors", "m.csv")
    return path


@pytest.fixture(autouse=True)
def inputs(origin, tmp_path, monkeypatch):
    """Run every test in a copy of that folder; return its files."""
    for name in NAMES:
        shutil.copy(origin / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    return {name: Path(name).read_bytes() for name in NAMES}


@contextlib.contextmanager
def standard(number, path, mode):
    """Let a file be standard input or output of this process, as a shell does."""
    kept = os.dup(number)
    try:
        with Path(path).open(mode) as file:
            os.dup2(file.fileno(), number)
        yield
    finally:
        os.dup2(kept, number)
        os.close(kept)


def read_said(capsys):
    out, err = capsys.readouterr()
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", out + err).split())


def check_refused(line, sentence, inputs, capsys):
    """Run a command that must say so and leave all files alone."""
    before = sorted(Path().iterdir())
    assert run(shlex.split(line)) == 2
    assert sentence in read_said(capsys)
    assert {name: Path(name).read_bytes() for name in NAMES} == inputs
    assert sorted(Path().iterdir()) == before


def link_symbolically(name):
    Path(f"link-{name}").symlink_to(name)
    return f"link-{name}"


def link_twice(name):
    Path(f"second-{name}").symlink_to(link_symbolically(name))
    return f"second-{name}"


def link_hard(name):
    Path(f"hard-{name}").hardlink_to(name)
    return f"hard-{name}"


def link_folder(name):
    Path("folder").symlink_to(".", target_is_directory=True)
    return f"folder/{name}"


SPELLINGS = {
    "itself": lambda name: name,
    "dot": lambda name: f"./{name}",
    "dots": lambda name: f"../{Path.cwd().name}/{name}",
    "absolute": lambda name: str(Path(name).absolute()),
    "symbolic link": link_symbolically,
    "link to a link": link_twice,
    "hard link": link_hard,
    "folder link": link_folder,
}
LINES = [  # a file that is read, and how
    ("d.csv", "fit d.csv --target cultivar --model tree"),
    ("t.csv", "fit d.csv --target cultivar --model tree --test t.csv"),
    ("d.csv", "predict m.safetensors d.csv"),
    ("m.csv", "predict m.csv d.csv --json"),
    ("m.safetensors", "predict m.safetensors d.csv --proba"),
    ("d.csv", "report m.safetensors d.csv --target cultivar"),
    ("m.safetensors", "report m.safetensors d.csv --target cultivar"),
    ("m.safetensors", "export m.safetensors --onnx"),
    ("m.safetensors", "export m.safetensors --c"),
    ("m.safetensors", "export m.safetensors --text"),
    ("m.safetensors", "export m.safetensors --graphviz --json"),
    ("m.safetensors", "export m.safetensors --sql wine"),
]


def make_sentence(written, read):
    written = Path(written)  # which leaves out "./"
    return f"-o {written} would overwrite {read}, which this command reads; name another file."


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(("name", "line"), LINES)
def test_an_input_is_not_written_over(name, line, spelling, inputs, capsys):
    other = SPELLINGS[spelling](name)
    check_refused(f"{line} -o {other}", make_sentence(other, name), inputs, capsys)


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("line", ["predict m.csv {}", "fit d.csv --target cultivar --test {}"])
def test_an_input_that_is_spelled_otherwise_is_not_written_over(line, spelling, inputs, capsys):
    other = SPELLINGS[spelling]("t.csv")
    said = make_sentence("t.csv", other)
    check_refused(f"{line.format(other)} -o t.csv", said, inputs, capsys)


FROM_STANDARD_INPUT = [
    ("d.csv", "fit {} --target cultivar --model tree"),
    ("t.csv", "fit d.csv --target cultivar --model tree --test {}"),
    ("d.csv", "predict m.safetensors {}"),
    ("d.csv", "report m.safetensors {} --target cultivar"),
]


@pytest.mark.skipif(sys.platform == "win32", reason="standard input has no path there")
@pytest.mark.parametrize("output", ["itself", "hard link", "/dev/stdin"])
@pytest.mark.parametrize("source", ["-", "/dev/stdin", "/proc/self/fd/0"])
@pytest.mark.parametrize(("name", "line"), FROM_STANDARD_INPUT)
def test_the_file_of_standard_input_is_not_written_over(
    name, line, source, output, inputs, monkeypatch, capsys
):
    if not (source == "-" or Path(source).exists()):
        pytest.skip(f"this system has no {source}")
    other = SPELLINGS[output](name) if output in SPELLINGS else output
    read = "standard input" if source == "-" else source
    with standard(0, name, "rb"), open(0, closefd=False) as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        said = make_sentence(other, read)
        check_refused(f"{line.format(source)} -o {other}", said, inputs, capsys)


INTO_STANDARD_OUTPUT = [
    ("d.csv", "fit d.csv --target cultivar --model tree --cv 2"),
    ("t.csv", "fit d.csv --target cultivar --model tree --test t.csv"),
    ("d.csv", "predict m.safetensors d.csv"),
    ("m.safetensors", "predict m.safetensors d.csv"),
    ("d.csv", "report m.safetensors d.csv --target cultivar -o x.html --json"),
    ("d.csv", "explain m.safetensors d.csv"),
    ("m.safetensors", "explain m.safetensors d.csv"),
    ("m.safetensors", "export m.safetensors --text"),
    ("m.safetensors", "info m.safetensors"),
]


@pytest.mark.parametrize(("name", "line"), INTO_STANDARD_OUTPUT)
def test_nothing_is_printed_into_an_input(name, line, inputs, monkeypatch, capsys):
    said = f"standard output goes into {name}, which this command reads; send it elsewhere."
    with Path(name).open("a") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        check_refused(line, said, inputs, capsys)


@pytest.mark.skipif(sys.platform == "win32", reason="the shell is another one there")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("predict m.safetensors - -o d.csv < d.csv", "-o d.csv would overwrite standard input"),
        ("predict m.safetensors - < d.csv >> d.csv", "standard output goes into standard input"),
        ("predict m.safetensors d.csv -o /dev/stdout >> d.csv", "overwrite d.csv"),
    ],
)
def test_a_shell_cannot_lead_a_command_to_its_input(line, said, inputs):
    done = run_in_shell(line)
    assert done.returncode == 2
    assert said in done.stderr
    assert {name: Path(name).read_bytes() for name in NAMES} == inputs


def run_in_shell(line):
    program = shlex.join([sys.executable, "-c", "from lhtree.cli import main; main()"])
    return subprocess.run(
        ["sh", "-c", f"{program} {line}"],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )


@pytest.mark.parametrize(("name", "line"), LINES)
def test_inputs_are_compared_before_they_are_read(name, line, capsys):
    inputs = dict.fromkeys(NAMES, b"neither a table nor a model")
    for other in NAMES:
        Path(other).write_bytes(inputs[other])
    check_refused(f"{line} -o {name}", make_sentence(name, name), inputs, capsys)


@pytest.mark.parametrize("line", sorted({line for _, line in LINES}))
@pytest.mark.parametrize("is_there", [False, True])
def test_other_files_are_written_as_before(line, is_there, inputs, capsys):
    if "--onnx" in line:
        pytest.importorskip("onnx")
    if is_there:
        Path("x.csv").write_bytes(inputs["d.csv"])  # equal bytes do not make the same file
    assert run([*shlex.split(line), "-o", "x.csv"]) == 0
    assert Path("x.csv").read_bytes() != inputs["d.csv"]
    assert {name: Path(name).read_bytes() for name in NAMES} == inputs


def test_a_table_may_be_read_twice(capsys):
    line = "fit d.csv --target cultivar --model tree --test d.csv -o x.safetensors"
    assert run(shlex.split(line)) == 0
    assert len(lhtree.load("x.safetensors").classes_) == 3


def test_a_hyphen_is_a_file_where_it_is_not_standard_input(inputs, monkeypatch, capsys):
    shutil.copy("m.csv", "-")
    with Path("d.csv").open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        check_refused("export - --c -o -", "-o - would overwrite -, which", inputs, capsys)
        assert run(shlex.split("predict m.csv - -o -")) == 0
    assert len(pd.read_csv("-")) == 178


@pytest.mark.parametrize("stream", [None, "closed"])
def test_a_missing_standard_stream_is_not_a_file(stream, inputs, monkeypatch, capsys):
    if stream == "closed":
        with Path("d.csv").open() as stream:
            pass
    monkeypatch.setattr(sys, "stdin", stream)
    assert run(shlex.split("predict m.csv d.csv -o x.csv")) == 0
    assert run(shlex.split("predict m.csv - -o d.csv")) == 1  # nothing to read, nothing written
    assert Path("d.csv").read_bytes() == inputs["d.csv"]


@pytest.mark.skipif(sys.platform == "win32", reason="devices have no paths there")
def test_devices_and_pipes_need_no_protection(inputs):
    done = run_in_shell("predict m.safetensors d.csv -o /dev/stdout > x.csv")
    assert done.returncode == 0, done.stderr
    assert len(pd.read_csv("x.csv")) == 178
    for line, said in [
        ("predict m.safetensors d.csv -o /dev/stdout | cat; exit 1", "No such file"),
        ("predict m.safetensors - -o /dev/null < /dev/null", "standard input is empty"),
        ("predict m.safetensors /dev/null -o /dev/null", "/dev/null is empty"),
        ("predict m.safetensors d.csv -o /dev/null", "Is not a regular file"),
    ]:
        done = run_in_shell(line)
        assert done.returncode == 1
        assert said in done.stderr
