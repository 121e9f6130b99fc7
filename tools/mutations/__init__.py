"""The bugs that tools/mutate.py plants, by the part of the code that they are in."""

import importlib
import pkgutil

from mutations.mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = tuple(
    mutation
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__))
    if name != "mutation"
    for mutation in importlib.import_module(f"mutations.{name}").MUTATIONS
)
