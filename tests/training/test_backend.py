"""Every backend of a fit has the members of the interface, with the same arguments."""

import inspect

import pytest

from lhtree.training.backend import Backend, OutOfBagRows


def list_members(protocol):
    """Return the names that a protocol declares."""
    return sorted(name for name in vars(protocol) if not name.startswith("_"))


def list_arguments(function):
    """Return names and kinds of the arguments of a method."""
    parameters = inspect.signature(function).parameters.values()
    return [(parameter.name, parameter.kind) for parameter in parameters]


@pytest.mark.parametrize(
    ("protocol", "module", "name"),
    [
        (Backend, "lhtree.training.local", "Local"),
        (Backend, "lhtree.dask.backend", "DaskBackend"),
        (OutOfBagRows, "lhtree.training.local", "LocalOutOfBagRows"),
        (OutOfBagRows, "lhtree.dask.backend", "DaskOutOfBagRows"),
    ],
)
def test_backends_have_the_members_of_the_interface(protocol, module, name):
    implementation = getattr(pytest.importorskip(module), name)
    names = list_members(protocol)
    assert len(names) >= 5
    for name in names:
        declared = getattr(protocol, name)
        # Attributes of dataclasses are fields where they have no default.
        is_field = name in getattr(implementation, "__dataclass_fields__", {})
        assert is_field or hasattr(implementation, name), name
        if isinstance(declared, property):
            assert is_field or isinstance(getattr(implementation, name), property), name
        else:
            assert list_arguments(getattr(implementation, name)) == list_arguments(declared), name
