"""The pages of the documentation: programs print what is shown, links and lists are complete."""

import contextlib
import importlib
import io
import re
from pathlib import Path

import pytest

import licences
from lhtree.cli.app import COMMANDS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("**/*.md"))]
PAGES = [page for page in PAGES if not {"_build", "auto_examples", "generated"} & {*page.parts}]
PUBLIC = [
    "lhtree", "lhtree.explain", "lhtree.plot", "lhtree.report", "lhtree.export", "lhtree.dask",
]  # fmt: skip
FENCE = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", ["tables", "interpreting", "probabilities"])
def test_the_programs_of_a_guide_print_what_it_shows(name, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    page = DOCS / "guide" / f"{name}.md"
    blocks = FENCE.findall(page.read_text("utf-8"))
    assert blocks
    names, printed = {}, ""
    for language, text in blocks:
        if language == "text":
            assert printed == text
            printed = ""
            continue
        assert not printed, "what a program prints is shown below it"
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(text, page.name, "exec"), names)
        printed = output.getvalue()
    assert not printed


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_between_files_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s#]+)", text):
        if "://" not in target and not target.startswith("mailto:"):
            assert (page.parent / target).exists(), target
    for target in re.findall(r"\{doc\}`(?:[^`<]*<)?([^`>]+)>?`", text):
        place = (DOCS if target.startswith("/") else page.parent) / target.lstrip("/")
        if "auto_examples" in place.parts:  # made by the gallery from the example
            name = place.stem
            assert name == "index" or (ROOT / "examples" / f"{name}.py").exists(), target
        else:
            assert place.with_suffix(".md").exists(), target


def test_every_page_of_the_guide_is_listed():
    index = (DOCS / "guide" / "index.md").read_text("utf-8")
    listed = re.search(r":maxdepth: 1\n\n(.*)\n```", index, re.DOTALL)[1]
    pages = {page.stem for page in (DOCS / "guide").glob("*.md")} - {"index"}
    assert set(listed.split()) == pages


@pytest.mark.parametrize("name", PUBLIC)
def test_the_reference_lists_every_public_name(name):
    text = (DOCS / "api.md").read_text("utf-8")
    parts = re.split(r"currentmodule:: (\S+)", text)
    listed = {module: set() for module in PUBLIC}
    for module, part in zip(parts[1::2], parts[2::2], strict=True):
        listed[module] |= set(re.findall(r"^   (\w+)$", part, re.MULTILINE))
    assert listed[name] == set(importlib.import_module(name).__all__)


def test_the_guide_of_the_command_line_has_every_command_and_its_examples():
    text = (DOCS / "guide" / "command-line.md").read_text("utf-8")
    for name, (_, examples) in COMMANDS.items():
        assert f"## lhtree {name}\n" in text
        for line in examples:
            assert f"\n{line}\n" in text


def test_the_licences_of_all_dependencies_are_listed_and_compatible():
    page = licences.PAGE.read_text("utf-8")
    _, _, *rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", page, re.MULTILINE)
    assert {name: groups.split(", ") for name, _, groups in rows} == licences.list_needs()
    for name, licence, _ in rows:
        assert licences.is_compatible(licence), name


@pytest.mark.parametrize("licence", ["GPL-3.0-only", "BSD-3-Clause AND AGPL-3.0-only", "unknown"])
def test_other_licences_are_not_called_compatible(licence):
    assert not licences.is_compatible(licence)
