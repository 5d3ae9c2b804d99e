"""What a run writes down as it goes: a line of metrics for each record."""

import json
import os
from pathlib import Path

Record = dict[str, float]
METRICS_FILE = "metrics.jsonl"


class Log:
    """The append-only file of records. Only whole lines count; lines after the checkpoint are cut on resume."""

    def __init__(self, folder: Path | None):
        self._path = None if folder is None else folder / METRICS_FILE
        self.records: list[Record] = [] if self._path is None else read_records(self._path)

    def cut_after(self, update: int) -> None:
        self.records = [record for record in self.records if record["step"] <= update]
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            part = self._path.with_suffix(".part")
            part.write_text("".join(json.dumps(record) + "\n" for record in self.records))
            os.replace(part, self._path)

    def append(self, record: Record) -> None:
        self.records.append(record)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(record) + "\n")

    def sync(self) -> None:
        """Make sure that the records are on the disk before the checkpoint that follows them."""
        if self._path is not None:
            with self._path.open("a") as file:
                os.fsync(file.fileno())


def read_records(path: Path) -> list[Record]:
    """The whole lines of a metrics file; a last line that was cut off is left out."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]
    return [json.loads(line) for line in lines]
