"""Thesis figure 3.5: shortest paths from step 50 to step 5 through the memories of untrained networks."""

import dataclasses
from pathlib import Path
from typing import Any

from ..lens.paths import KINDS, simulated_paths
from ._contract import Arm, Experiment, Preset

START, END = 5, 50


@dataclasses.dataclass(frozen=True)
class PathSimulation:
    """Shortest paths in simulations of one untrained network with memories of several sizes."""

    network: str
    slots: tuple[int, ...]
    simulations: int

    def run(self, seed: int, folder: Path) -> dict[str, Any]:
        del folder
        options = {"start": START, "end": END, "simulations": self.simulations, "seed": seed}
        found = [simulated_paths(self.network, slots, **options) for slots in self.slots]
        return {
            "slots": list(self.slots),
            "length": [float(paths.length.mean()) for paths in found],
            "outside": [float(paths.outside.mean()) for paths in found],
            "standard_error": [float(paths.length.std() / self.simulations**0.5) for paths in found],
        }


PUBLISHED = {
    "tardis": "shortest of the three for small memories",
    "umann": "longest: random writes use the memory worst",
    "urmann": "outside the wormholes falls nearly exponentially, as TARDIS",
}


def _preset(slots: tuple[int, ...], simulations: int, seeds: int, cost: str | None, note: str) -> Preset:
    arms = tuple(Arm(name, PathSimulation(name, slots, simulations), PUBLISHED[name]) for name in KINDS)
    return Preset(arms, seeds, cost, note)


def table(content: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each network and size, means over all simulations of all seeds."""
    rows = []
    for name, arm in content["arms"].items():
        done = list(arm["seeds"].values())
        for n, slots in enumerate(done[0]["slots"]):
            rows.append(
                {
                    "network": name,
                    "slots": slots,
                    "shortest path": round(sum(r["length"][n] for r in done) / len(done), 2),
                    "of it outside wormholes": round(sum(r["outside"][n] for r in done) / len(done), 2),
                    "steps without a memory": END - START,
                    "published": arm["published"],
                }
            )
    return rows


def draw(content: dict[str, Any]) -> Any:
    """Length of the shortest path, and what of it is outside wormholes, over the size of the memory."""
    import altair as alt
    import polars as pl

    data = pl.DataFrame(table(content)).rename({"shortest path": "a", "of it outside wormholes": "b"})
    panels = [
        alt.Chart(data, title=title)
        .mark_line(point=True)
        .encode(
            x=alt.X("slots:Q", title="slots of the memory"),
            y=alt.Y(f"{column}:Q", title="connections"),
            color=alt.Color("network:N", title=None, scale=alt.Scale(scheme="tableau10")),
        )
        .properties(width=280, height=220)
        for column, title in (("a", f"shortest path from step {END} to {START}"), ("b", "of it outside wormholes"))
    ]
    return alt.hconcat(*panels)


SIZES = (1, 2, 3, 5, 8, 10, 15, 20, 25, 30, 40, 50)
EXPERIMENT = Experiment(
    id="th-fig-3.5",
    source="thesis figure 3.5",
    shows="shortest path from step 50 to step 5 in untrained TARDIS, uMANN and urMANN over the size of the memory",
    published="paths become dramatically shorter with more memory; TARDIS uses small memories best, uMANN worst; "
    "200 simulations",
    presets={
        "smoke": _preset((2, 10, 50), 10, 1, "2 s", "3 sizes, 10 simulations"),
        "laptop": _preset(
            SIZES,
            200,
            3,
            "10 s",
            "as published, for each of 3 seeds; the sizes of memory are ours (the thesis has none "
            "in print), and urMANN, which the thesis defines for k >= T, writes round and round",
        ),
        "paper": _preset(SIZES, 200, 1, "5 s", "as published, one seed; sizes of memory and urMANN as for laptop"),
    },
    table=table,
    draw=draw,
)
