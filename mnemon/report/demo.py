"""The demonstration: two networks learn side by side, and a page shows what happened."""

import json
import subprocess
import sys
import threading
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from .._errors import MnemonError

CELLS = ("nru", "lstm")


def run_demo(folder: Path, steps: int, delay: int, console: Console) -> Path:
    """Train both networks at the same time, one process each, and write the page."""
    console.print(
        f"Copying: remember 10 symbols for {delay} steps; NRU and LSTM of about 23,500 parameters; {steps:,} updates.",
        highlight=False,
    )
    columns = (
        TextColumn("[bold]{task.description:>4}"),
        BarColumn(),
        TextColumn("{task.fields[text]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        trainings = [_Training(cell, folder / cell, steps, delay, progress) for cell in CELLS]
        for training in trainings:
            training.wait()
    from ..training.runs import open_run
    from .page import write_report

    console.print("Drawing the page ...")
    runs = [open_run(folder / cell) for cell in CELLS]
    return write_report(runs, folder / "demo.html", "mnemon: who remembers?", report=console.print)[0]


class _Training:
    """One `mnemon train --json` in its own process; its records move a bar."""

    def __init__(self, cell: str, folder: Path, steps: int, delay: int, progress: Progress):
        options = {"--steps": steps, "--delay": delay, "--log-every": 50, "--seed": 1, "--out": folder}
        words = [str(word) for pair in options.items() for word in pair]
        command = [sys.executable, "-m", "mnemon", "train", "copying", cell, *words, "--overwrite", "--json"]
        self._cell, self._progress, self._steps = cell, progress, steps
        self._bar = progress.add_task(cell, total=steps, text="compiling")
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout or []:
            record = json.loads(line)
            step, loss = int(record["step"]), record["loss"]
            plain = "" if self._progress.console.is_terminal else f"{self._cell}: "
            text = f"update {step:,}/{self._steps:,}  loss {loss:.4f}"
            self._progress.update(self._bar, completed=step, text=text)
            if plain and step % 1000 == 0 and "out" not in record:
                self._progress.console.print(plain + text, highlight=False)

    def wait(self) -> None:
        errors = "" if self._process.stderr is None else self._process.stderr.read()
        self._reader.join()
        if self._process.wait():
            raise MnemonError(f"training {self._cell} failed: {errors.strip()}")
