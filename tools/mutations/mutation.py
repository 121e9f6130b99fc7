"""What a planted bug is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """One bug: `old`, which stands exactly once in the files of `folder`, becomes `new`."""

    name: str
    folder: str
    old: str
    new: str
    tests: tuple[str, ...]  # those that exist are run, in this order


def in_core(name: str, old: str, new: str) -> Mutation:
    """Return a bug of the native core."""
    return Mutation(
        name, "native", old, new, ("test_tree.py", "test_classifier.py", "test_weights.py")
    )


def in_package(name: str, old: str, new: str) -> Mutation:
    """Return a bug of the classifiers around it."""
    return Mutation(
        name,
        "src/lhtree",
        old,
        new,
        ("test_classifier.py", "test_weights.py", "test_out_of_bag.py"),
    )
