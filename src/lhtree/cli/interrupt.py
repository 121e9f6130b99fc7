"""Ctrl-C ends a command within a second, whatever it waits for."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lhtree.persist.files import remove_drafts

SECONDS_TO_END = 0.7  # for the ordinary way: an exception that cleans up behind itself
EXIT_CODE = 128 + signal.SIGINT


@contextmanager
def ending_on_interrupt() -> Iterator[None]:
    """See that an interrupt ends the process even if Python does not get to handle it.

    Python turns the signal into an exception between two of its own instructions. A
    library that waits for data, or one that swallows the exception, would keep the
    process alive: then a second thread, which hears of the signal at once, removes
    unfinished files and ends the process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ear, mouth = socket.socketpair()
    mouth.setblocking(False)
    before = signal.set_wakeup_fd(mouth.fileno(), warn_on_full_buffer=False)
    has_ended = threading.Event()
    threading.Thread(target=_watch, args=(ear, has_ended), daemon=True).start()
    try:
        yield
    finally:
        has_ended.set()
        signal.set_wakeup_fd(before)
        mouth.close()


def _watch(ear: socket.socket, has_ended: threading.Event) -> None:
    while signals := ear.recv(1):
        if signals[0] == signal.SIGINT and not has_ended.wait(SECONDS_TO_END):
            remove_drafts()
            os._exit(EXIT_CODE)
    ear.close()
