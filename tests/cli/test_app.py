"""The command line, and the example of the README."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import lhtree
from lhtree.cli import demo, main
from lhtree.cli.app import app

README = Path(__file__).parents[2] / "README.md"
PAPER = ["97.6 ± 2.8", "97.8 ± 1.6", "96.8 ± 2.4", "93.0 ± 3.2", "94.1 ± 4.2"]


def run(*arguments):
    return CliRunner().invoke(app, arguments)


@pytest.fixture(scope="module")
def numbers():
    result = run("demo", "--json")
    assert result.exit_code == 0
    return json.loads(result.stdout)


def test_demo_scores_five_betas_and_a_forest(numbers):
    assert [score["beta"] for score in numbers["trees"]] == [0, 0.25, 0.5, 0.75, 1]
    accuracies = [score["accuracy"] for score in numbers["trees"]] + [numbers["forest"]]
    assert all(85 <= accuracy["mean"] <= 100 for accuracy in accuracies)
    assert all(0 < accuracy["std"] < 10 for accuracy in accuracies)
    assert numbers["n_splits"] == 10


def test_demo_repeats_the_numbers_of_the_paper(numbers):
    papers = [score["paper"] for score in numbers["trees"]]
    assert [f"{paper['mean']:.1f} ± {paper['std']:.1f}" for paper in papers] == PAPER


def test_demo_sorts_the_terms_of_each_first_split(numbers):
    splits = numbers["first_splits"]
    assert [split["positive_class"] for split in splits] == ["class_0", "class_1", "class_2"]
    assert splits[0]["terms"][0]["feature"] == "proline"
    for split in splits:
        magnitudes = [abs(term["weight"]) for term in split["terms"]]
        assert magnitudes[0] == 1
        assert magnitudes == sorted(magnitudes, reverse=True)
        assert len(magnitudes) == 4


def test_demo_prints_the_numbers_as_whole_lines(numbers):
    result = run("demo")
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    for score, paper in zip(numbers["trees"], PAPER, strict=True):
        accuracy = f"{score['accuracy']['mean']:.1f} ± {score['accuracy']['std']:.1f}"
        assert f"one tree {score['beta']:g} {accuracy} {paper}" in lines
    for split in numbers["first_splits"]:
        first, *others = (f"{t['feature']} {t['weight']:+.2f}" for t in split["terms"])
        assert f"{split['positive_class']} {first}" in lines
        assert set(others) <= set(lines)


def test_narrow_columns_do_not_cut_piped_text(monkeypatch):
    wide = run("demo").stdout
    monkeypatch.setenv("COLUMNS", "20")
    assert run("demo").stdout == wide


def test_version_is_that_of_the_package():
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout == f"lhtree {lhtree.__version__}\n"


@pytest.mark.parametrize("arguments", [["demo", "--unknown"], ["unknown"], ["demo", "extra"], []])
def test_wrong_usage_exits_with_2(arguments):
    assert run(*arguments).exit_code == 2


def run_main(monkeypatch, *arguments):
    """Return the exit code of the command."""
    monkeypatch.setattr(sys, "argv", ["lhtree", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    return exit_.value.code


def test_main_turns_an_error_into_one_sentence(monkeypatch, capsys):
    def fail():
        raise ValueError("beta must be a number from 0 to 1, got 2.")

    monkeypatch.setattr(demo, "compute_demo", fail)
    assert run_main(monkeypatch, "demo") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "lhtree: beta must be a number from 0 to 1, got 2.\n"
    assert run_main(monkeypatch, "demo", "--debug") == 1
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_ends_without_a_traceback(monkeypatch, capsys):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "compute_demo", interrupt)
    assert run_main(monkeypatch, "demo") == 130
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["typer", "pandas", "pyarrow"])
def test_without_its_packages_the_command_says_what_to_install(name):
    program = f"import sys; sys.modules[{name!r}] = None; from lhtree.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        f'The command lhtree needs {name}: install with pip install "lhtree[cli]".\n'
    )


def test_readme_example_prints_what_readme_shows(capsys):
    pytest.importorskip("pandas")
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", README.read_text("utf-8"), re.M | re.S)
    (code,) = (text for language, text in blocks if language == "python")
    (output,) = (text for language, text in blocks if language == "text")
    exec(compile(code, README.name, "exec"), {})
    assert capsys.readouterr().out == output
