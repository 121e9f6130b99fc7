"""The gallery's examples; all of them run when the site is built."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_has_a_title_and_ends_with_what_to_notice(path):
    text = path.read_text(encoding="utf-8")
    assert re.match(r'"""\n(.+)\n=+\n', text), "the docstring starts with an underlined title"
    last = text.rsplit("# %%", 1)[1]
    assert "# **What to notice.**" in last
    assert all(line.startswith("#") for line in last.strip().splitlines())


def test_the_papers_wine_study_runs():
    path = next(path for path in EXAMPLES if path.stem == "plot_wine_beta")
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, path], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "proline +1.00" in done.stdout
