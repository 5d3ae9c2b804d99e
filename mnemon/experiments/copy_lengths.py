"""Copying sequences longer than those of training (Graves et al. 2014; thesis 3.6)."""

import dataclasses
from pathlib import Path
from typing import Any

from ..training.runs import open_run
from ._contract import Arm, Experiment, Preset, Score, Training
from .th_table_3_3 import EXPERIMENT as TABLE

_WRONG = "wrong bits at "


@dataclasses.dataclass(frozen=True)
class SharedTraining(Training):
    """A training run that is also an arm of another experiment: what that has finished is not trained again."""

    # Where the run may be found is no part of what is to be done.
    experiment: str = dataclasses.field(default="", compare=False)
    arm: Arm | None = dataclasses.field(default=None, compare=False)

    def run(self, seed: int, folder: Path) -> dict[str, Any]:
        from ._runner import job_folder, read_result

        if self.arm is None:
            return super().run(seed, folder)
        runs, preset = folder.parents[2], folder.parent.name
        there = job_folder(runs, self.experiment, preset, self.arm, seed)
        config = dataclasses.replace(self.config, seed=seed)
        finished = read_result(there) is not None and open_run(there).config == config
        return super().run(seed, there if finished else folder)


def _arms(preset: str, lengths: tuple[int, ...], episodes: int, only: str | None = None) -> tuple[Arm, ...]:
    scores = {
        f"{_WRONG}{length}": Score("bit_error", {"min_length": length, "max_length": length}, episodes, 20)
        for length in lengths
    }
    prefix = "ntm-copy-"
    return tuple(
        Arm(
            arm.name.removeprefix(prefix),
            SharedTraining(arm.job.config, scores, TABLE.id, arm),
            "fails beyond the lengths of training" if arm.job.config.cell == "lstm" else "generalises",
        )
        for arm in TABLE.presets[preset].arms
        if isinstance(arm.job, Training) and arm.name.startswith(prefix) and only in (None, arm.job.config.cell)
    )


def draw(content: dict[str, Any]) -> Any:
    """Wrong bits over the length of the sequence: the median over seeds, and a band from the least to the most."""
    import altair as alt
    import polars as pl

    rows = [
        {"network": name, "length": int(score.removeprefix(_WRONG)), "wrong": float(wrong)}
        for name, arm in content["arms"].items()
        for result in arm["seeds"].values()
        for score, wrong in result["scores"].items()
    ]
    chart = alt.Chart(pl.DataFrame(rows)).encode(
        x=alt.X("length:Q", title="rows of the sequence"),
        color=alt.Color("network:N", title=None, scale=alt.Scale(scheme="tableau10")),
    )
    line = chart.mark_line(strokeWidth=1.5, point=True).encode(
        y=alt.Y("median(wrong):Q", title="wrong bits of a sequence")
    )
    band = chart.mark_area(opacity=0.15).encode(y="min(wrong):Q", y2="max(wrong):Q")
    return (band + line).properties(width=620, height=260)


EXPERIMENT = Experiment(
    id="copy-lengths",
    source="Graves et al. 2014, section 4.1; thesis 3.6",
    shows="wrong bits of a sequence in the copy task, trained to 20 rows and tested to 120; the networks are those of "
    f"{TABLE.id}",
    published="NTM copies 120 rows with few errors; LSTM fails beyond 20; memory networks generalise more easily",
    presets={
        "smoke": Preset(_arms("smoke", (2, 4), 20, only="lstm"), 1, None, "LSTM, 20 updates: shows only that it runs"),
        "laptop": Preset(_arms("laptop", tuple(range(20, 121, 10)), 100), 3, None, "10,000 updates of 16 sequences"),
        "paper": Preset(
            _arms("paper", tuple(range(20, 121, 10)), 100),
            3,
            None,
            "the publications state neither the thesis's updates nor its batch",
        ),
    },
    draw=draw,
)
