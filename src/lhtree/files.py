"""Files that are replaced only when the new ones are complete."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

PathLike = str | os.PathLike[str]


def write_atomically(path: PathLike, content: bytes | str) -> None:
    """Write a file as a whole: a crash or a full disk leaves what was there before."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    with replacing(path) as file:
        file.write(data)


@contextlib.contextmanager
def replacing(path: PathLike) -> Iterator[BinaryIO]:
    """Open a new file that replaces `path` at the end of the block.

    The new file lies in the same folder until its bytes are on the disk. If the block
    raises, it is removed and `path` stays as it was. A link stays a link: the file that
    it leads to is replaced.
    """
    resolved = Path(os.path.realpath(path))
    draft = resolved.with_name(f".{resolved.name[:100]}.{secrets.token_hex(8)}.tmp")
    with _naming(path, draft):
        if resolved.is_dir():
            raise IsADirectoryError(errno.EISDIR, "Is a directory")
        if resolved.exists() and not resolved.is_file():
            # With write access to /dev, an ordinary file would replace /dev/null.
            raise OSError(errno.EINVAL, "Is not a regular file, and would be replaced by one")
        # Mode 666 less the umask, as for any new file; mkstemp's 600 would surprise.
        number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666)
        _drafts.add(draft)
        try:
            with os.fdopen(number, "wb") as file:
                yield file
                file.flush()
                _copy_mode(resolved, draft)
                os.fsync(number)
            draft.replace(resolved)
            _sync_folder(resolved.parent)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        finally:
            _drafts.discard(draft)


def remove_drafts() -> None:
    """Remove the unfinished files of this process, which is about to exit."""
    for draft in list(_drafts):
        draft.unlink(missing_ok=True)


_drafts: set[Path] = set()
_BINARY = getattr(os, "O_BINARY", 0)  # Windows would translate line ends


@contextlib.contextmanager
def _naming(path: PathLike, draft: Path) -> Iterator[None]:
    """Make errors name the caller's file instead of the draft or no file at all."""
    try:
        yield
    except OSError as error:
        if error.filename not in (None, str(draft)):
            raise
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from error


def _copy_mode(resolved: Path, draft: Path) -> None:
    """Give the new file the permissions of the one that it replaces."""
    with contextlib.suppress(FileNotFoundError):
        draft.chmod(resolved.stat().st_mode & 0o777)


def _sync_folder(folder: Path) -> None:
    """Write the new name to the disk, on systems where folders can be opened."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
