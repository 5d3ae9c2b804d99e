"""What an update with GEM costs, against the number of earlier tasks and of parameters."""

import dataclasses
import time
from pathlib import Path
from typing import Any

from ._contract import Arm, Experiment, Preset, settings_of, short_name


@dataclasses.dataclass(frozen=True)
class GemMeasurement:
    """Times of updates of an LSTM with several numbers of earlier tasks."""

    units: int
    tasks: tuple[int, ...]
    seconds: float

    def run(self, seed: int, folder: Path) -> dict[str, Any]:
        from ..bench._gem import gem_rows

        del seed, folder
        return {"rows": gem_rows([self.units], self.tasks, self.seconds)}

    def pace(self) -> str:
        return short_name(settings_of(self))

    @property
    def updates(self) -> int:
        """The measurements, one for each number of tasks."""
        return len(self.tasks)

    def time_updates(self, folder: Path) -> tuple[float, float]:
        """Of the measurement in the middle, which is about the mean: it takes longer to compile with more tasks."""
        middle = sorted(self.tasks)[len(self.tasks) // 2]
        begun = time.perf_counter()
        dataclasses.replace(self, tasks=(middle,)).run(0, folder)
        return 0.0, time.perf_counter() - begun


def table(content: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each size and number of tasks."""
    return [row for arm in content["arms"].values() for result in arm["seeds"].values() for row in result["rows"]]


def draw(content: dict[str, Any]) -> Any:
    """Time, in plain updates, and memory over the number of earlier tasks, a line for each number of parameters."""
    import altair as alt
    import polars as pl

    data = pl.DataFrame(table(content))
    return alt.hconcat(
        *(
            alt.Chart(data)
            .mark_line(point=True)
            .encode(
                x=alt.X("earlier tasks:Q"),
                y=alt.Y(f"{column}:Q", title=title),
                color=alt.Color("parameters:N"),
            )
            .properties(width=260, height=220)
            for column, title in (("plain updates", "cost in plain updates"), ("memory_mb", "memory in MB"))
        )
    )


def _preset(units: tuple[int, ...], tasks: tuple[int, ...], seconds: float, cost: str | None, note: str) -> Preset:
    arms = tuple(Arm(f"lstm-{size}", GemMeasurement(size, tasks, seconds), "new") for size in units)
    return Preset(arms, 1, cost, note)


EXPERIMENT = Experiment(
    id="gem-cost",
    source="new",
    shows="time of an update with GEM, in plain updates, and its memory, over the number of earlier tasks on copy",
    published="nothing; the thesis names the cost of GEM as work to come",
    presets={
        "smoke": _preset((16,), (1, 3), 0.3, None, "16 units, up to 3 tasks"),
        "laptop": _preset((64, 128, 256), (1, 2, 5, 10, 19), 4.0, None, "three sizes, up to 19 tasks"),
        "paper": _preset((64, 128, 256, 512), (1, 2, 5, 10, 15, 19), 10.0, None, "four sizes, up to 19 tasks"),
    },
    table=table,
    draw=draw,
)
