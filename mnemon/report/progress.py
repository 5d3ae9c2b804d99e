"""How far a command has come."""

import json
import time

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar


class Progress:
    """A live bar on a terminal, plain lines elsewhere, JSON lines with `--json`. A context manager."""

    def __init__(self, title: str, total: int, as_json: bool, console: Console):
        self._json, self._live = as_json, console.is_terminal and not as_json
        self._printed, self._latest, self._total = 0.0, "", total
        self._bar = Bar(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f}  {task.fields[text]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not self._live,
        )
        self._task = self._bar.add_task(title, total=total, text="compiling")

    def __enter__(self) -> "Progress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begin(self, title: str, total: int) -> None:
        """Start anew, with the next of several parts."""
        self._latest, self._total = "", total
        self._bar.reset(self._task, description=title, total=total, text="compiling")

    def say(self, message: str) -> None:
        """A message beside the bar."""
        self._bar.console.print(message, markup=False, highlight=False, soft_wrap=True)

    def record(self, record: dict[str, float]) -> None:
        """A record of the trainer."""
        self._latest = f"loss {record['loss']:.4f}"
        if self._json:
            print(json.dumps(record), flush=True)

    def update(self, done: int, rate: float) -> None:
        """So many updates are done, at so many a second."""
        left = (self._total - done) / rate if rate else 0.0
        text = f"{self._latest}  {rate:,.1f} updates/s"
        self._bar.update(self._task, completed=done, text=text)
        now = time.monotonic()
        if not self._live and not self._json and (now - self._printed > 5 or done == self._total):
            self._printed = now
            self.say(f"update {done:,}/{self._total:,}  {text}  {left:,.0f} s left")
