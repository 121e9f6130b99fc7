"""The gallery's examples; all of them run when the site is built."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("plot_*.py"))


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


def test_the_papers_wine_figures_are_the_picture_of_the_readme(tmp_path):
    path = next(path for path in EXAMPLES if path.stem == "plot_wine")
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, path, tmp_path],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"class_0 +0 +178 +N3 +proline", done.stdout)
    assert "beta = 0: 5 nodes, 9 nodes, 5 nodes" in done.stdout
    assert "beta = 0.25: 5 nodes, 7 nodes, 7 nodes" in done.stdout
    root = EXAMPLES[0].parents[1]
    (name,) = re.findall(r"\((docs/_static/.*?)\)", (root / "README.md").read_text("utf-8"))
    committed, made = root / name, tmp_path / "wine.png"
    assert committed.stat().st_size < 150_000
    # Fonts differ between systems, so the pictures are compared by size and mean colour.
    first, second = (Image.open(each).convert("RGB") for each in (committed, made))
    assert first.size == second.size
    means = [np.asarray(each, dtype=float).mean(axis=(0, 1)) for each in (first, second)]
    np.testing.assert_allclose(*means, atol=2)
