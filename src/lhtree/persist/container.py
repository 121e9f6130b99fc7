"""The file: arrays in the safetensors format, a JSON description, and a digest of both.

The description is the only entry of the format's metadata, since the order of several
would change from one save to the next. It starts with the digest: SHA-256 over the
whole file with the digest's own characters set to zeros.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, NoReturn

import numpy as np

from lhtree.arrays import Arrays

KEY = "lhtree"  # of the metadata
BLANK = "0" * 64
# In the file, the quotes of the description are those of a string within a string.
DIGEST = re.compile(rb'"lhtree":"\{\\"digest\\":\\"([0-9a-f]{64})\\"')
OPENING, CLOSING = list(b"[{"), list(b"]}")
NO_SIGNS = bytes(set(range(256)) - set(b'"[]{}'))
DTYPES = {
    **{"F64": np.float64, "F32": np.float32, "I64": np.int64, "I32": np.int32},
    **{"I16": np.int16, "U16": np.uint16, "I8": np.int8, "U8": np.uint8},
}
SIZE_BYTES = 8  # a file starts with the size of its header
MOST_HEADER = 1 << 24
MOST_LEVELS = 32


def encode_file(description: dict[str, Any], arrays: Arrays) -> list[bytes | memoryview]:
    """Return the bytes of a file in chunks, so that large arrays are not copied again."""
    from safetensors.numpy import save

    text = json.dumps(
        {"digest": BLANK, **description}, allow_nan=False, separators=(",", ":"), ensure_ascii=True
    )
    data = save(arrays, metadata={KEY: text})
    size = int.from_bytes(data[:SIZE_BYTES], "little")
    if size > MOST_HEADER:
        raise ValueError(
            f"its labels, names and parameters take {size} bytes, but a file holds at most "
            f"{MOST_HEADER}"
        )
    start, end = _locate_digest(data, size)
    whole = memoryview(data)
    return [whole[:start], _compute_digest(data, start, end).encode(), whole[end:]]


def decode_file(data: bytes) -> tuple[dict[str, Any], Arrays]:
    """Return the description and the arrays of a file; raise a ValueError if it is not valid."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    size = _check_size(data)
    _check_digest(data, size)
    header = _read_json(data[SIZE_BYTES : SIZE_BYTES + size], "header")
    _check_header(header, len(data) - SIZE_BYTES - size)
    description = _read_json(header["__metadata__"][KEY].encode(), "description")
    if type(description) is not dict:
        raise ValueError("its description is not a JSON object")
    try:
        return description, load(data)
    except SafetensorError as error:
        raise ValueError(f"it is not a safetensors file ({error})") from error


def _check_size(data: bytes) -> int:
    """Return the size of the header, which must fit into the file."""
    if len(data) < SIZE_BYTES:
        raise ValueError(f"it has {len(data)} bytes, too few for a header")
    size = int.from_bytes(data[:SIZE_BYTES], "little")
    if size > MOST_HEADER:
        raise ValueError(
            f"it is not a safetensors file, or its header exceeds {MOST_HEADER} bytes"
        )
    if size > len(data) - SIZE_BYTES:
        raise ValueError(f"its header of {size} bytes does not fit into {len(data)} bytes")
    return size


def _locate_digest(data: bytes, size: int) -> tuple[int, int]:
    """Return where the digest starts and ends."""
    found = list(DIGEST.finditer(data, SIZE_BYTES, SIZE_BYTES + size))
    if len(found) != 1:
        raise ValueError("its header has no digest written by lhtree")
    return found[0].span(1)


def _compute_digest(data: bytes, start: int, end: int) -> str:
    """Return the digest of a file that holds it from `start` to `end`."""
    whole = memoryview(data)
    digest = hashlib.sha256(whole[:start])
    digest.update(BLANK.encode())
    digest.update(whole[end:])
    return digest.hexdigest()


def _check_digest(data: bytes, size: int) -> None:
    start, end = _locate_digest(data, size)
    if _compute_digest(data, start, end).encode() != data[start:end]:
        raise ValueError(
            "its digest does not match its content, so it was changed or damaged after saving"
        )


def _check_header(header: Any, n_bytes: int) -> None:
    """Check what the package safetensors may not check: kinds, names, sizes."""
    if type(header) is not dict:
        raise ValueError("its header is not a JSON object")
    metadata = header.get("__metadata__")
    if type(metadata) is not dict or set(metadata) != {KEY} or type(metadata[KEY]) is not str:
        raise ValueError("its header has no description of a model")
    total = 0
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        if type(entry) is not dict or set(entry) != {"dtype", "shape", "data_offsets"}:
            raise ValueError(f"its entry {name[:40]!r} is not an array")
        if entry["dtype"] not in DTYPES:
            raise ValueError(f"its array {name[:40]!r} has the unknown type {entry['dtype']!r}")
        total += _count_bytes(name, entry, n_bytes)
    if total != n_bytes:
        raise ValueError(f"its arrays take {total} bytes, but {n_bytes} follow the header")


def _count_bytes(name: str, entry: dict[str, Any], n_bytes: int) -> int:
    shape = entry["shape"]
    is_list = type(shape) is list and len(shape) <= 2
    if not is_list or not all(type(n) is int and 0 <= n <= n_bytes for n in shape):
        raise ValueError(f"its array {name[:40]!r} has an impossible shape")
    size = int(np.dtype(DTYPES[entry["dtype"]]).itemsize)
    for n in shape:
        size *= n
    return size


def _read_json(data: bytes, what: str) -> Any:
    """Read JSON; refuse repeated keys, deep nesting and too many parts."""
    try:
        _check_brackets(data, what)
        return json.loads(
            data.decode(), object_pairs_hook=_to_dict, parse_constant=_refuse_constant
        )
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"its {what} is not JSON ({error})") from error


def _check_brackets(data: bytes, what: str) -> None:
    """Refuse text of many tiny or deep parts: as Python objects they take far more memory."""
    plain = data.replace(b"\\\\", b"").replace(b'\\"', b"")  # quotes left are ends of strings
    sign = np.frombuffer(plain.translate(None, NO_SIGNS), dtype=np.uint8)
    is_outside = np.cumsum(sign == ord('"'), dtype=np.uint8) % 2 == 0
    opens = is_outside & np.isin(sign, OPENING)
    n_parts = np.count_nonzero(opens)
    if n_parts > 64 + len(data) // 16:
        raise ValueError(f"its {what} has {n_parts} parts in {len(data)} characters")
    step = opens.astype(np.int8) - (is_outside & np.isin(sign, CLOSING))
    if np.cumsum(step, dtype=np.int32).max(initial=0) > MOST_LEVELS:
        raise ValueError(f"its {what} has more than {MOST_LEVELS} levels")


def _to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("its JSON repeats a key")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"its JSON has the number {name}")
