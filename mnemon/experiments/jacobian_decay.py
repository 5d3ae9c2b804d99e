"""Jacobian decay: how far each registered cell carries a gradient, untrained and after training on copying."""

import dataclasses
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from ..cells import CELLS
from ..lens import differentiable_parts, jacobian_flow
from ..lens.jacobian import WHOLE
from ..lens.trace import trace
from ..training.runs import RunConfig, open_run
from ._contract import Arm, Experiment, Preset, Training

# Parts with more entries than this (large memories) would take long; gradients still flow through them.
_MOST_ENTRIES = 256
# Cells whose whole state is a matrix: at their usual sizes the Jacobian would have 4,096 rows and more.
_SMALLER: dict[str, dict[str, Any]] = {
    "associative": {"hidden_size": 16},
    "associative-delta": {"hidden_size": 16},
    "ff-fast-weights": {"hidden_size": 16},
}
_SIZES = f"cells at their usual sizes, but {', '.join(_SMALLER)} with 16 units"


@dataclasses.dataclass(frozen=True)
class JacobianDecay(Training):
    """A training run (of no update at all: untrained), then the Jacobians of one episode from its last step back."""

    def run(self, seed: int, folder: Path) -> dict[str, Any]:
        result = super().run(seed, folder)
        run = open_run(folder)
        _, model = run.load(report=lambda message: None)
        traced = trace(model, run.config.make_task(), jax.random.key(seed))
        sizes = differentiable_parts(model.cell)
        small = [part for part, size in sizes.items() if size <= _MOST_ENTRIES]
        inputs = model.embed(jnp.asarray(traced.inputs)[None])[0]
        flow = jacobian_flow(model.cell, inputs, parts=small)
        tops = {part: [float(f"{value:.4g}") for value in values] for part, values in flow.top.items()}
        return {
            "updates": self.config.steps,
            "solved": result["solved"],
            "loss": result["last"].get("loss"),
            "eta": flow.eta,
            "distance": flow.distances.tolist(),
            "top": tops,
        }

    def pace(self) -> str:
        return f"{super().pace()}-jacobians"

    def time_updates(self, folder: Path) -> tuple[float, float]:
        """Also of the Jacobians, which an untrained network has as well."""
        begun = time.perf_counter()
        JacobianDecay(dataclasses.replace(self.config, steps=0)).run(0, folder / "untrained")
        jacobians = time.perf_counter() - begun
        to_begin, an_update = super().time_updates(folder / "trained")
        return jacobians + to_begin, an_update


def _preset(cells: list[str], delay: int, steps: int, seeds: int, cost: str | None, note: str) -> Preset:
    arms = tuple(
        Arm(
            f"{cell}-{updates}",
            JacobianDecay(RunConfig("copying", cell, {"delay": delay}, _SMALLER.get(cell, {}), steps=updates)),
            "new",
        )
        for cell in cells
        for updates in (0, steps)
    )
    return Preset(arms, seeds, cost, note)


def table(content: dict[str, Any]) -> list[dict[str, Any]]:
    """What is left of a gradient after half the episode and after all of it, for the part that keeps most."""
    rows = []
    for name, arm in content["arms"].items():
        cell, _, updates = name.rpartition("-")
        for seed, result in arm["seeds"].items():
            middle = len(result["distance"]) // 2
            part = max(result["top"], key=lambda p: result["top"][p][0])
            rows.append(
                {
                    "cell": cell,
                    "updates": int(updates),
                    "seed": int(seed),
                    "part that keeps most": part,
                    f"over {result['distance'][middle]} steps": f"{result['top'][part][middle]:.2g}",
                    f"over {result['distance'][0]} steps": f"{result['top'][part][0]:.2g}",
                    "largest step (eta)": f"{result['eta']:.3g}",
                    "solved": "yes" if result["solved"] else "no",
                }
            )
    return rows


def draw(content: dict[str, Any]) -> Any:
    """A panel for each cell: the largest singular value over the distance, dashed untrained, solid trained."""
    import altair as alt
    import polars as pl

    frames = []
    for name, arm in content["arms"].items():
        cell, _, updates = name.rpartition("-")
        for seed, result in arm["seeds"].items():
            (whole,) = {WHOLE} & set(result["top"]) or set(result["top"])
            about = {"cell": cell, "seed": seed, "network": "untrained" if updates == "0" else "trained"}
            frame = pl.DataFrame({"distance": result["distance"], "value": result["top"][whole]})
            frames.append(frame.with_columns(**{key: pl.lit(value) for key, value in about.items()}))
    # What has fallen further than this is gone.
    data = pl.concat(frames).filter((pl.col("value") > 0) & (pl.col("value") < 1e6))
    scale = alt.Scale(type="log", domain=[1e-8, 1e4], clamp=True)
    order = ["trained", "untrained"]
    return (
        alt.Chart(data)
        .mark_line(strokeWidth=1.3)
        .encode(
            x=alt.X("distance:Q", title="steps between"),
            y=alt.Y("value:Q", title="largest singular value", scale=scale, axis=alt.Axis(format="~e")),
            color=alt.Color("network:N", title=None, sort=order),
            strokeDash=alt.StrokeDash("network:N", legend=None, sort=order),
            detail="seed:N",
        )
        .properties(width=150, height=105)
        .facet(alt.Facet("cell:N", title=None, sort=list(CELLS)), columns=5)
    )


EXPERIMENT = Experiment(
    id="jacobian-decay",
    source="new",
    shows="how far each registered cell carries a gradient, untrained and after training on copying memory",
    published="nowhere: none of the papers has this picture",
    presets={
        "smoke": _preset(["rnn", "nru"], 5, 20, 1, None, "2 cells, T = 5, 20 updates: shows only that it runs"),
        "laptop": _preset(list(CELLS), 30, 1_500, 1, None, f"T = 30, 1,500 updates; {_SIZES}"),
        "paper": _preset(list(CELLS), 100, 30_000, 3, None, f"T = 100, 30,000 updates; {_SIZES}"),
    },
    table=table,
    draw=draw,
)
