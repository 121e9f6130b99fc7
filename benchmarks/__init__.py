"""Measurements of the package next to its peers, and the pages that show them."""

import importlib.util
import os
import sys

# A worker may have a core of its own: it must be there before anything imports the package.
if _core_path := os.environ.get("LHTREE_CORE"):
    _spec = importlib.util.spec_from_file_location("lhtree._core", _core_path)
    assert _spec is not None
    assert _spec.loader is not None
    _core = sys.modules["lhtree._core"] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(_core)
    importlib.import_module("lhtree").__dict__["_core"] = _core
