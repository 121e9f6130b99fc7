"""Ctrl-C ends a command within a second, whatever it waits for."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lhtree.files import remove_drafts

SECONDS_TO_END = 0.7  # for the ordinary way: an exception that cleans up
EXIT_CODE = 128 + signal.SIGINT


@contextmanager
def ending_on_interrupt() -> Iterator[None]:
    """End the process on an interrupt even if Python cannot handle it.

    Python turns the signal into an exception between two of its own instructions. A
    library that waits for data or swallows the exception would keep the process alive.
    In that case a second thread, which receives the signal at once, removes unfinished
    files and ends the process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    has_ended = threading.Event()
    threading.Thread(target=_watch, args=(receiver, has_ended), daemon=True).start()
    try:
        yield
    finally:
        has_ended.set()
        signal.set_wakeup_fd(before)
        sender.close()


def _watch(receiver: socket.socket, has_ended: threading.Event) -> None:
    while signals := receiver.recv(1):
        if signals[0] == signal.SIGINT and not has_ended.wait(SECONDS_TO_END):
            remove_drafts()
            os._exit(EXIT_CODE)
    receiver.close()
