"""``lhtree info``: what is in a model file."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from sklearn.base import is_classifier

from lhtree.cli.models import ModelFile, load_model
from lhtree.cli.overwrite import keep_inputs
from lhtree.cli.screen import AsJson, Examples, add_row, get_console, make_table, print_json
from lhtree.data.reading import name_features
from lhtree.data.validation import join_few

EXAMPLES = Examples("lhtree info wine.safetensors")
N_STRONGEST = 10


def info(model: ModelFile, as_json: AsJson = False) -> None:
    """Show the parameters, classes and strongest features of a model."""
    keep_inputs(None, model)
    facts = describe(load_model(model))
    facts["bytes"] = model.stat().st_size
    if as_json:
        print_json(facts)
    else:
        print_facts(facts, get_console())


def describe(model: Any) -> dict[str, Any]:
    """Return the parameters, classes, size and strongest features of a model.

    A model of numbers has no classes, only a boosted one has rounds.
    """
    default = type(model)().get_params()
    all_names = name_features(model)
    feature, own = np.unique(model.column_source_, return_inverse=True)  # those the trees see
    names = [all_names[j] for j in feature]
    importance = np.bincount(own, model.forest_.compute_importances())
    order = np.argsort(-importance, kind="stable")[:N_STRONGEST]
    return {
        "model": type(model).__name__,
        **({"classes": model.classes_.tolist()} if is_classifier(model) else {}),
        "features": names,
        **({"rounds": model.n_iter_} if hasattr(model, "n_iter_") else {}),
        "trees": len(model.trees_),
        "leaves": model.get_n_leaves(),
        "depth": model.get_depth(),
        "parameters": model.get_params(),
        "changed": [k for k, v in model.get_params().items() if repr(v) != repr(default[k])],
        "importances": {names[j]: float(importance[j]) for j in order if importance[j] > 0},
    }


def print_facts(facts: dict[str, Any], console: Console) -> None:
    """Print the facts as tables."""
    table = make_table("", facts["model"])
    if "classes" in facts:
        add_row(table, "classes", join_few(facts["classes"], 10))
    add_row(table, "features", len(facts["features"]))
    if "rounds" in facts:
        add_row(table, "rounds", facts["rounds"])
    add_row(table, "trees", f"{facts['trees']}, {facts['leaves']} leaves, depth {facts['depth']}")
    changed = ", ".join(f"{name}={facts['parameters'][name]!r}" for name in facts["changed"])
    add_row(table, "parameters", changed or "all defaults")
    add_row(table, "file", f"{facts['bytes'] / 1e6:.2f} MB")
    console.print(table)
    table = make_table("strongest features", "importance", right=("importance",))
    for name, value in facts["importances"].items():
        add_row(table, name, f"{value:.3f}")
    console.print(table)
