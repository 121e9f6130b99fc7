"""Names, labels and numbers in SQL."""

from __future__ import annotations

from typing import Any

DOUBLE = "DOUBLE PRECISION"


def quote_name(name: Any) -> str:
    """Return an identifier in quotes."""
    if not isinstance(name, str) or "\0" in name:
        raise ValueError(f"{name!r} is not a name of a column or table.")
    return '"' + name.replace('"', '""') + '"'


def quote_label(label: Any) -> str:
    """Return a label as a constant."""
    if isinstance(label, str):
        if "\0" in label:
            raise ValueError(
                f"The label {label!r} has a null character, which SQL cannot hold; rename it."
            )
        return "'" + label.replace("'", "''") + "'"
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    return quote_number(label) if isinstance(label, float) else str(label)


def quote_number(value: float) -> str:
    """Return a double; without an exponent a database may read a decimal."""
    text = repr(float(value))
    return text if "e" in text else text + "e0"
