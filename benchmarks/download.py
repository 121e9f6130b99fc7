"""Fetch a file over HTTP: with a progress bar, resumed where it broke off, whole or not at all."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tqdm import tqdm

BLOCK = 1 << 16
N_TRIES = 3
TIMEOUT = 30.0  # seconds without a byte
_BROKEN = (OSError, http.client.HTTPException)  # urllib's errors are OSErrors


class DownloadError(Exception):
    """The file could not be had; the message says why."""


def fetch(url: str, path: Path, *, n_tries: int = N_TRIES, timeout: float = TIMEOUT) -> Path:
    """Return `path` once it holds the whole file.

    Bytes are collected in ``<path>.part``. A broken transfer is resumed, also one that an
    earlier process left behind; when all tries fail, nothing stays on the disk.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    reason: object = "no try was made"
    try:
        for _ in range(n_tries):
            try:
                _receive(url, part, timeout)
            except urllib.error.HTTPError as error:
                if error.code == 416:  # what is there is no beginning of the file
                    part.unlink(missing_ok=True)
                elif error.code < 500:
                    raise DownloadError(f"{url} answers {error.code} {error.reason}.") from error
                reason = f"{error.code} {error.reason}"
            except _BROKEN as error:
                reason = getattr(error, "reason", None) or error
            else:
                part.replace(path)
                return path
        raise DownloadError(f"{url} could not be read in {n_tries} tries: {reason}.")
    except BaseException:  # Ctrl-C too: nothing half-written stays
        part.unlink(missing_ok=True)
        raise


def _receive(url: str, part: Path, timeout: float) -> None:
    """Append to `part` until it has the announced length; raise OSError if bytes are missing."""
    start = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "lhtree-benchmarks"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        if answer.status != 206:  # the server sends the file from its beginning
            start = 0
        total = _find_length(answer, start)
        with (
            part.open("ab" if start else "wb") as file,
            tqdm(desc=part.stem, initial=start, total=total, unit="B", unit_scale=True) as bar,
        ):
            while block := answer.read(BLOCK):
                file.write(block)
                bar.update(len(block))
    size = part.stat().st_size
    if total is not None and size != total:
        raise OSError(f"{size} of {total} bytes came")


def _find_length(answer: Any, start: int) -> int | None:
    length = answer.headers.get("Content-Length")
    return None if length is None else int(length) + start
