"""How a run ends before its time: a number that is not finite, or Ctrl-C."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

from .._errors import MnemonError


def kept_at(checkpoint: Path | None) -> str:
    """Where a run can go on from, in words."""
    return "no checkpoint was kept" if checkpoint is None else f"the last good checkpoint is {checkpoint}"


class Diverged(MnemonError):
    """The loss, or what the optimizer made of its gradient, was not finite."""

    def __init__(self, update: int, checkpoint: Path | None):
        super().__init__(f"the loss or its gradient was not finite at update {update}; {kept_at(checkpoint)}")
        self.update, self.checkpoint = update, checkpoint

    def __reduce__(self):  # from one process to another
        return type(self), (self.update, self.checkpoint)


class Interrupted(MnemonError):
    """Ctrl-C: the run was saved and can go on."""


@contextlib.contextmanager
def interrupt_flag() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets, so that the trainer can finish its update and save; a second Ctrl-C interrupts."""
    flag = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield flag
        return

    def handler(number, frame):
        if flag.is_set():
            raise KeyboardInterrupt
        flag.set()

    previous = signal.signal(signal.SIGINT, handler)
    try:
        yield flag
    finally:
        signal.signal(signal.SIGINT, previous)
