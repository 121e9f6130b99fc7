"""Tables of numbers and names in C."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

SAFE = re.compile(r"[A-Za-z0-9 _.,:;=+*/()<>-]")  # no quotes, no backslash, no trigraph


def check_prefix(prefix: Any) -> None:
    """Refuse what cannot start the names of a file."""
    if not isinstance(prefix, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,40}", prefix):
        raise ValueError(f"prefix must be a C identifier, got {prefix!r}.")


def write_whole(name: str, array: NDArray[Any]) -> str:
    """Write a table of integers of the smallest type: small devices have little memory."""
    kind = _choose_type(array)
    suffix = "LL" if kind == "int64_t" else ""
    return write_table(f"const {kind} {name}", (f"{value}{suffix}" for value in array.tolist()))


def _choose_type(array: NDArray[Any]) -> str:
    low, high = int(array.min(initial=0)), int(array.max(initial=0))
    for kind, bits in (("signed char", 7), ("short", 15), ("long", 31)):
        if low > -(2**bits) and high < 2**bits:
            return kind
    return "int64_t"


def write_numbers(name: str, array: NDArray[np.float64]) -> str:
    """Write a table of doubles, exactly; infinity needs math.h."""
    values = ("HUGE_VAL" if value == np.inf else value.hex() for value in array.tolist())
    return write_table(f"const double {name}", values)


def write_table(declaration: str, values: Iterable[str]) -> str:
    """Write an array of constants."""
    listed = list(values) or ["0"]  # C has no empty arrays
    lines, line = [], ""
    for value in listed:
        if len(line) + len(value) > 96:
            lines.append(line.rstrip())
            line = ""
        line += value + ", "
    lines.append(line.rstrip(", "))
    return f"static {declaration}[{len(listed)}] = {{\n  " + "\n  ".join(lines) + "\n};"


def quote_string(text: str) -> str:
    """Return a C string in UTF-8; all but plain characters are octal escapes."""
    encoded = text.encode("utf-8", "surrogatepass")
    safe = (chr(byte) if SAFE.fullmatch(chr(byte)) else f"\\{byte:03o}" for byte in encoded)
    return '"' + "".join(safe) + '"'
