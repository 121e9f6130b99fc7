"""Write docs/licences.md: the licences of everything that the package needs.

Usage::

    pip install ".[all,docs,test]" nanobind scikit-build-core
    python tools/licences.py            # writes the page
    python tools/licences.py --check    # compares it with what is installed

Names come from pyproject.toml, licences from the metadata of the installed packages. A
licence that is not known to be compatible with BSD-3-Clause ends the program.
"""

import argparse
import re
import sys
import tomllib
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "licences.md"

# Wordings of metadata, by the names of SPDX.
NAMES = {
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "3-clause bsd": "BSD-3-Clause",
    "bsd 2-clause license": "BSD-2-Clause",
    "bsd license": "BSD",
    "mit license": "MIT",
    "mit license (mit)": "MIT",
    "python software foundation license": "PSF-2.0",
}
# They allow use, also unchanged as part of something else, under the terms of BSD-3-Clause.
# MPL-2.0 asks for the source of its own files only, none of which is in this package.
COMPATIBLE = {
    "0BSD", "Apache-2.0", "BSD", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT",
    "MPL-2.0", "PSF-2.0", "Zlib",
}  # fmt: skip
INTRODUCTION = """# Licences of the dependencies

Made by `python tools/licences.py` from the metadata of the installed packages; do not edit.

`lhtree` has the licence BSD-3-Clause. It copies nothing from these packages: they are installed
next to it, each under its own licence. The exception is nanobind, parts of which are compiled into
the native core. All are compatible with BSD-3-Clause.

| package | licence | needed by |
| --- | --- | --- |
"""


def list_needs() -> dict[str, list[str]]:
    """Return for each package what needs it: the build, the package itself, or extras."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
    project = settings["project"]
    groups = {
        "lhtree": project["dependencies"],
        "the build": settings["build-system"]["requires"],
        **{f"`{name}`": lines for name, lines in project["optional-dependencies"].items()},
    }
    needs: dict[str, list[str]] = {}
    for group, lines in groups.items():
        for line in lines:
            name = re.match(r"[\w.-]+", line)[0]
            if name != "lhtree":
                needs.setdefault(name, []).append(group)
    return needs


def find_licence(package: Distribution) -> str:
    """Return the licence of an installed package: an SPDX expression, where there is one."""
    metadata: Any = package.metadata  # its hints lack `get` in some versions of Python
    if expression := metadata.get("License-Expression"):
        return str(expression)
    classifiers = metadata.get_all("Classifier", [])
    words = [line.split(" :: ")[-1] for line in classifiers if line.startswith("License ::")]
    words.append((metadata.get("License") or "").split("\n")[0])
    for name in metadata.get_all("License-File", []):
        text = package.read_text(f"licenses/{name}") or package.read_text(name) or ""
        words.append(text.strip().split("\n")[0])
    for word in map(str.strip, words):
        if word.lower() in NAMES or is_compatible(word):
            return NAMES.get(word.lower(), word)
    return " / ".join(filter(None, words)) or "unknown"


def is_compatible(licence: str) -> bool:
    """Whether all parts of an SPDX expression are compatible with BSD-3-Clause."""
    return all(part in COMPATIBLE for part in re.split(r" AND ", licence))


def make_page() -> str:
    """Return the page; end the program at a licence that needs a look."""
    rows = []
    for name, groups in sorted(list_needs().items(), key=lambda item: item[0].lower()):
        licence = find_licence(distribution(name))
        if not is_compatible(licence):
            sys.exit(f"{name} has the licence {licence!r}; see whether it is compatible.")
        rows.append(f"| {name} | {licence} | {', '.join(groups)} |\n")
    return INTRODUCTION + "".join(rows)


def main() -> None:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    page = make_page()
    if not parser.parse_args().check:
        PAGE.write_text(page, "utf-8")
    elif PAGE.read_text("utf-8") != page:
        sys.exit("docs/licences.md is not up to date; run python tools/licences.py.")


if __name__ == "__main__":
    main()
