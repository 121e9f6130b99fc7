"""The documentation pages: programs print what is shown, links and lists are complete."""

import contextlib
import importlib
import io
import re
import shlex
from pathlib import Path

import pytest
from sklearn.datasets import load_wine

import licences
from lhtree.cli.app import COMMANDS, run

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("**/*.md"))]
PAGES = [page for page in PAGES if not {"_build", "auto_examples", "generated"} & {*page.parts}]
PUBLIC = [
    "lhtree", "lhtree.explain", "lhtree.plot", "lhtree.report", "lhtree.export", "lhtree.dask",
]  # fmt: skip
FENCE = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


PROGRAMS = [
    page
    for page in PAGES
    if page.is_relative_to(DOCS)
    and "```python" in page.read_text("utf-8")
    and page.stem != "scaling-out"  # needs a cluster, see below
]


def run_programs(page, text):
    """Run the programs of a page one after the other; each prints what is shown below it."""
    names, printed = {}, ""
    for language, block in FENCE.findall(text):
        if language == "text":
            assert printed == block
            printed = ""
            continue
        assert not printed, "what a program prints is shown below it"
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(block, page.name, "exec"), names)
        printed = output.getvalue()
    assert not printed
    return names


@pytest.mark.parametrize("page", PROGRAMS, ids=lambda page: page.stem)
def test_the_programs_of_a_page_print_what_it_shows(page, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    run_programs(page, page.read_text("utf-8"))


@pytest.mark.filterwarnings("ignore::UserWarning:distributed")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Dask's reader of Parquet files
def test_the_program_for_a_cluster_runs_on_one(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    page = DOCS / "guide" / "scaling-out.md"
    text = page.read_text("utf-8")
    assert text.count("scheduler:8786") == 1
    table = load_wine(as_frame=True).frame.rename(columns={"target": "label"})
    monkeypatch.chdir(tmp_path)
    Path("clicks").mkdir()
    for k in range(2):
        table[k::2].to_parquet(f"clicks/{k}.parquet", index=False)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
    ) as cluster:
        names = run_programs(page, text.replace("scheduler:8786", cluster.scheduler_address))
        with names["client"]:
            X = table.drop(columns="label")
            assert names["local"].score(X, table["label"]) > 0.95
            assert len(names["predicted"].compute()) == len(table)


def test_the_commands_of_the_guide_print_what_it_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "guide" / "command-line.md").read_text("utf-8")
    n_shown, printed = 0, []
    for language, block in re.findall(r"^```(sh|text)\n(.*?)^```$", text, re.M | re.S):
        lines = block.splitlines()
        if language == "sh":
            for line in lines:
                program, *arguments = shlex.split(line)
                if arguments[0] in ("demo", "report") and "--csv" not in arguments:
                    continue  # long, and run by the tests of the help
                assert (program, run(arguments)) == ("lhtree", 0), capsys.readouterr().err
                printed = [each.rstrip() for each in capsys.readouterr().out.splitlines()]
        else:
            wanted = [each.rstrip() for each in lines]
            assert wanted
            places = range(len(printed) - len(wanted) + 1)
            assert any(printed[i : i + len(wanted)] == wanted for i in places), printed
            n_shown += 1
    assert n_shown == 5


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
