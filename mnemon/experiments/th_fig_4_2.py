"""Thesis figure 4.2: how the memory of a trained NRU changes over the steps of an episode of copying."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from ..lens.trace import save_trace, trace_run
from ..training.runs import RunConfig
from ._contract import Arm, Experiment, Preset, Training


@dataclasses.dataclass(frozen=True)
class TracedTraining(Training):
    """A training run, then a trace of one episode; the result has how far one part of the state moves at each step."""

    part: str = dataclasses.field(kw_only=True)

    def run(self, seed: int, folder: Path) -> dict[str, Any]:
        result = super().run(seed, folder)
        traced = trace_run(folder, seed=seed, report=lambda message: None)
        save_trace(traced, folder / "trace.safetensors")
        states = traced.state[self.part].reshape(len(traced.inputs), -1)
        moved = np.linalg.norm(np.diff(states, axis=0, prepend=np.zeros_like(states[:1])), axis=1)
        task: Any = self.config.make_task()
        length = task.length
        phases = {
            "while reading": slice(0, length),
            "while waiting": slice(length, -length - 1),
            "from the marker on": slice(-length - 1, None),
        }
        means = {name: float(moved[steps].mean()) for name, steps in phases.items()}
        return {**result, "shown": traced.about["shown"], "moved": moved.round(5).tolist(), "mean_moved": means}


def table(content: dict[str, Any]) -> list[dict[str, Any]]:
    """How far the memory moves a step, in each phase of the episode."""
    return [
        {
            "network": name,
            "seed": seed,
            "solved": "yes" if result["solved"] else "no",
            **{f"change a step {phase}": f"{value:.3f}" for phase, value in result["mean_moved"].items()},
            "published": arm["published"],
        }
        for name, arm in content["arms"].items()
        for seed, result in arm["seeds"].items()
    ]


def draw(content: dict[str, Any]) -> Any:
    """The change of the memory at each step, a line a seed."""
    import altair as alt
    import polars as pl

    frames = [
        pl.DataFrame({"step": range(1, len(result["moved"]) + 1), "change": result["moved"]}).with_columns(
            seed=pl.lit(f"{name}, seed {seed}")
        )
        for name, arm in content["arms"].items()
        for seed, result in arm["seeds"].items()
    ]
    return (
        alt.Chart(pl.concat(frames))
        .mark_line(strokeWidth=1.5)
        .encode(
            x=alt.X("step:Q", title="step of the episode"),
            y=alt.Y("change:Q", title="change of the memory"),
            color=alt.Color("seed:N", title=None, scale=alt.Scale(scheme="tableau10")),
        )
        .properties(width=620, height=220)
    )


def _arms(delay: int, steps: int) -> tuple[Arm, ...]:
    config = RunConfig("copying", "nru", {"delay": delay}, steps=steps, stop_when_solved=True)
    return (
        Arm("nru", TracedTraining(config, part="memory"), "writes in the first 10 steps and after the marker only"),
    )


EXPERIMENT = Experiment(
    id="th-fig-4.2",
    source="thesis figure 4.2",
    shows="change of the memory of a trained NRU at each step of an episode of copying memory, T = 100",
    published="the memory changes in the first 10 steps and after the marker only",
    presets={
        "smoke": Preset(_arms(5, 40), 1, None, "T = 5, 40 updates: shows only that it runs"),
        "laptop": Preset(_arms(100, 30_000), 3, None, "trained until solved, at most 30,000 updates"),
        "paper": Preset(_arms(100, 200_000), 3, None, "as published"),
    },
    table=table,
    draw=draw,
)
