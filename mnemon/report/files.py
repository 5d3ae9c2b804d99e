"""Pictures and tables as files."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import vl_convert

from .._files import write_atomically


def save_chart(chart: Any, folder: Path, name: str) -> list[Path]:
    """Write a chart as SVG, PNG and PDF."""
    folder.mkdir(parents=True, exist_ok=True)
    spec = chart.to_json()
    pictures = {
        "svg": vl_convert.vegalite_to_svg(spec).encode(),
        "png": vl_convert.vegalite_to_png(spec, scale=1.5),
        "pdf": vl_convert.vegalite_to_pdf(spec),
    }
    for ending, picture in pictures.items():
        (folder / f"{name}.{ending}").write_bytes(picture)
    return [folder / f"{name}.{ending}" for ending in pictures]


def save_table(rows: Sequence[dict[str, Any]], folder: Path, name: str) -> list[Path]:
    """Write a table as CSV and Markdown."""
    lines = io.StringIO()
    writer = csv.DictWriter(lines, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    texts = {"csv": lines.getvalue(), "md": markdown_table(rows)}
    for ending, text in texts.items():
        write_atomically(folder / f"{name}.{ending}", text)
    return [folder / f"{name}.{ending}" for ending in texts]


def markdown_table(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as a Markdown table.

    >>> print(markdown_table([{"cell": "nru", "loss": 0.1}]))
    | cell | loss |
    | --- | --- |
    | nru | 0.1 |
    <BLANKLINE>
    """
    lines = [list(rows[0]), ["---"] * len(rows[0]), *(map(str, row.values()) for row in rows)]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)
