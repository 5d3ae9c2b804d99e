"""Thesis figure 3.3: how long the paths through the memory of untrained networks become."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from ..lens.paths import memory_path_lengths, simulate_slots
from ._contract import Arm, Experiment, Preset


@dataclasses.dataclass(frozen=True)
class MemoryPaths:
    """Simulate reads and writes of an untrained network; the length of the paths of wormholes at each step."""

    network: str
    steps: int
    slots: int
    simulations: int

    def run(self, seed: int, folder: Path) -> dict[str, Any]:
        del folder
        random = np.random.default_rng(seed)
        reads, writes = simulate_slots(self.network, self.steps, self.slots, self.simulations, random)
        lengths = memory_path_lengths(reads, writes, self.slots)
        return {
            "expected": self.steps / self.slots - 1,
            "length": float(lengths[:, -1].mean()),
            "standard_error": float(lengths[:, -1].std() / self.simulations**0.5),
            "curve": {
                "step": list(range(1, self.steps + 1)),
                "mean": lengths.mean(axis=0).round(4).tolist(),
                "low": np.quantile(lengths, 0.1, axis=0).round(4).tolist(),
                "high": np.quantile(lengths, 0.9, axis=0).round(4).tolist(),
            },
        }


def _preset(simulations: int, seeds: int, cost: str | None, note: str) -> Preset:
    arms = tuple(
        Arm(network, MemoryPaths(network, 200, 50, simulations), "T/k - 1 = 3 at the end")
        for network in ("tardis", "umann")
    )
    return Preset(arms, seeds, cost, note)


def table(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The length at the end beside T/k - 1."""
    rows = []
    for name, arm in content["arms"].items():
        done = list(arm["seeds"].values())
        rows.append(
            {
                "network": name,
                "seeds": len(done),
                "path length at the end": ", ".join(f"{r['length']:.3f} ± {r['standard_error']:.3f}" for r in done),
                "T/k - 1": done[0]["expected"],
                "published": arm["published"],
            }
        )
    return rows


def draw(content: dict[str, Any]) -> Any:
    """Mean over simulations, and the band that holds 80 % of them; dashed: t/k - 1."""
    import altair as alt
    import polars as pl

    frames = [
        pl.DataFrame(arm["seeds"]["0"]["curve"]).with_columns(network=pl.lit(name))
        for name, arm in content["arms"].items()
    ]
    data = pl.concat(frames).with_columns(expected=pl.max_horizontal(pl.lit(0.0), pl.col("step") / 50 - 1))
    x = alt.X("step:Q", title="step")
    base = alt.Chart(data)
    band = base.mark_area(opacity=0.25).encode(x, y=alt.Y("low:Q", title="length of the path in a slot"), y2="high:Q")
    line = base.mark_line().encode(x, y="mean:Q")
    dashed = base.mark_line(strokeDash=[5, 4], color="#888").encode(x, y="expected:Q")
    return (
        (band + dashed + line)
        .properties(width=280, height=220)
        .facet(column=alt.Column("network:N", title="dashed: t/k - 1"))
    )


EXPERIMENT = Experiment(
    id="th-fig-3.3",
    source="thesis figure 3.3",
    shows="expected length of the paths of wormholes in the memory, T = 200, k = 50 slots",
    published="T/k - 1 = 3 for TARDIS and for uMANN, 100 simulations",
    presets={
        "smoke": _preset(5, 1, "2 s", "5 simulations"),
        "laptop": _preset(100, 3, "5 s", "as published, for each of 3 seeds"),
        "paper": _preset(100, 1, "3 s", "as published"),
    },
    table=table,
    draw=draw,
)
