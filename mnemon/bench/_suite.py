"""The comparisons that the targets name, as one table with its provenance."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from .._files import write_atomically
from .._provenance import provenance
from ._cells import Spec, large, small
from .command import bench_cell


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A cell at sizes, and the rivals it is measured against."""

    size: str
    spec: Spec
    against: tuple[str, ...]
    target: dict[str, float] = dataclasses.field(default_factory=dict)  # how many times as fast, by rival


_DNC_SMALL = {"hidden_size": 64, "memory_slots": 32, "word_size": 16, "read_heads": 4}
_DNC_LARGE = {"hidden_size": 256, "memory_slots": 128, "word_size": 50, "read_heads": 5}

SUITE = (
    Comparison("small", small("lstm"), ("torch", "equinox", "flax"), {"torch.nn.LSTM": 1.1}),
    Comparison("large", large("lstm"), ("torch", "equinox", "flax"), {"torch.nn.LSTM": 1.1}),
    Comparison("small", small("gru"), ("torch", "equinox", "flax"), {"torch.nn.GRU": 1.1}),
    Comparison("large", large("gru"), ("torch", "equinox", "flax"), {"torch.nn.GRU": 1.1}),
    Comparison(
        "small",
        small("nru"),
        ("torch", "torch-compile"),
        {"PyTorch loop": 25.0, "torch.compile of the step": 6.0},
    ),
    Comparison(
        "large",
        large("nru"),
        ("torch", "torch-compile"),
        {"PyTorch loop": 6.0, "torch.compile of the step": 1.2},
    ),
    Comparison("small", Spec("dnc", 10, 40, 10, _DNC_SMALL), ("dnc",), {"PyPI dnc": 10.0}),
    Comparison("large", Spec("dnc", 16, 40, 10, _DNC_LARGE), ("dnc",), {"PyPI dnc": 4.0}),
)


def run_suite(seconds: float, results: Path) -> list[dict[str, Any]]:
    """Measure every comparison and write the table; what is measured so far is on disk after each."""
    rows: list[dict[str, Any]] = []
    for comparison in SUITE:
        for row in bench_cell(comparison.spec, comparison.size, comparison.against, seconds):
            rows.append(row | {"target": comparison.target.get(row["by"])})
        write_atomically(
            results / "bench" / "suite.json", json.dumps({"provenance": provenance(), "rows": rows}, indent=1)
        )
    return rows
