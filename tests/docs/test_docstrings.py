"""Docstrings: complete, well formed, and their examples run."""

import doctest
import importlib
import inspect
import pkgutil

import pytest
from numpydoc.validate import validate

import lhtree

IGNORED = {
    "GL08",  # magic methods need no docstring
    "ES01",  # an extended summary is not always needed
    "SA01",  # nor a See Also section
    "EX01",  # nor an example for every method
    "GL01",  # the summary starts on the first line
    "SS06",
    "RT03",  # a return value may be described by its name and type
    "YD01",
}
MODULES = [module.name for module in pkgutil.walk_packages(lhtree.__path__, "lhtree.")]


def list_public_objects():
    for module in ["lhtree", *MODULES]:
        content = importlib.import_module(module)
        for name in getattr(content, "__all__", []):
            if not (getattr(content, name).__module__ or "").startswith("lhtree"):
                continue  # re-exported from another package
            yield f"{module}.{name}"
            if inspect.isclass(getattr(content, name)):
                yield from list_members(getattr(content, name), f"{module}.{name}")


def list_members(cls, path):
    for name, value in inspect.getmembers(cls):
        is_own = "lhtree" in (getattr(value, "__module__", "") or "")
        if not name.startswith("_") and (is_own or isinstance(value, property)):
            yield f"{path}.{name}"


@pytest.mark.parametrize("name", list(list_public_objects()))
def test_docstrings_follow_numpydoc(name):
    is_estimator_or_function = (
        "Classifier" in name or name.count(".") == 1 or name.split(".")[1].islower()
    )
    errors = [
        f"{code}: {text}"
        for code, text in validate(name)["errors"]
        # The class docstring describes fields and methods of the flat arrays.
        if code not in IGNORED and (is_estimator_or_function or not code.startswith(("PR", "RT")))
    ]
    assert not errors


@pytest.mark.parametrize("name", [name for name in MODULES if not name.endswith("_core")])
def test_examples_in_docstrings_run(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
