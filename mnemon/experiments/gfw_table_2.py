"""Schlag & Schmidhuber 2017, table 2: time of training relative to LSTM at about 50,000 parameters."""

import copy
import dataclasses
import statistics
from pathlib import Path
from typing import Any

from ..training import fit
from ..training.runs import RunConfig
from ._contract import Arm, Experiment, Preset, Training

FACTOR = "relative to LSTM"
# Cell, options at about 50,000 parameters, published factor.
CELLS: dict[str, tuple[str, dict[str, Any], float]] = {
    "attention-fw": ("fast-weights", {"hidden_size": 208, "form": "matrix"}, 1.6),
    "lstm": ("lstm", {"hidden_size": 103, "peepholes": False}, 1.0),
    "hyper-lstm": ("hyper-lstm", {"hidden_size": 68, "hyper_size": 32, "hyper_embedding_size": 8}, 1.4),
    "gated-fast-weights": ("gated-fast-weights", {"hidden_size": 40, "slow_layer_size": 108}, 1.8),
}


@dataclasses.dataclass(frozen=True)
class UpdateTime(Training):
    """The time of an update, without the time to compile."""

    def run(self, seed: int, folder: Path) -> dict[str, Any]:
        config = dataclasses.replace(self.config, seed=seed)
        result = fit(
            config.make_model(),
            config.make_task(),
            updates=config.steps,
            batch=config.batch,
            optimizer=config.make_optimizer(),
            seed=seed,
            log_every=max(config.steps // 10, 1),
        )
        return {"milliseconds": 1e3 / result.updates_per_second, "updates": config.steps}


def _arms(updates: int, batch: int, cells: tuple[str, ...] = tuple(CELLS)) -> tuple[Arm, ...]:
    arms = []
    for name in cells:
        cell, options, factor = CELLS[name]
        config = RunConfig(
            "seq2seq-retrieval",
            cell,
            {"split": "valid"},
            options,
            steps=updates,
            batch=batch,
            optimizer="nadam",
            clip=0.1,
            embedding_size=15,
        )
        arms.append(Arm(name, UpdateTime(config), f"{factor:g} times LSTM", {FACTOR: factor}))
    return tuple(arms)


def _relative(content: dict[str, Any]) -> dict[str, Any]:
    """The results with the time relative to the median of LSTM as a score."""
    content = copy.deepcopy(content)
    lstm = statistics.median(r["milliseconds"] for r in content["arms"]["lstm"]["seeds"].values())
    for arm in content["arms"].values():
        for result in arm["seeds"].values():
            result["scores"] = {FACTOR: result["milliseconds"] / lstm}
    return content


def table(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Milliseconds an update, and the factor measured and published."""
    rows = []
    for name, arm in _relative(content)["arms"].items():
        times = [result["milliseconds"] for result in arm["seeds"].values()]
        factors = [result["scores"][FACTOR] for result in arm["seeds"].values()]
        rows.append(
            {
                "network": name,
                "ms an update (median)": f"{statistics.median(times):.3g}",
                FACTOR: f"{statistics.median(factors):.2f} [{min(factors):.2f}, {max(factors):.2f}]",
                f"{FACTOR}, published": f"{arm['numbers'][FACTOR]:g}",
            }
        )
    return rows


def draw(content: dict[str, Any]) -> Any:
    """The factors, measured and published."""
    from ._report import scores_chart

    return scores_chart(_relative(content))


EXPERIMENT = Experiment(
    id="gfw-table-2",
    source="Schlag & Schmidhuber 2017, table 2",
    shows="time of an update of sequence-to-sequence retrieval relative to LSTM, about 50,000 parameters each",
    published="on a P100 GPU, 5,000 updates: AttentionFW 22 min (1.6), LSTM 14 (1.0), hypernetwork 20 (1.4), gated "
    "fast weights 25 (1.8)",
    presets={
        "smoke": Preset(_arms(20, 8, ("lstm", "attention-fw")), 1, None, "20 updates of 8 streams: too few to tell"),
        "laptop": Preset(_arms(200, 256), 3, None, "200 updates of 256 streams"),
        "paper": Preset(_arms(5_000, 256), 3, None, "5,000 updates of 256 streams, on whatever machine it runs on"),
    },
    table=table,
    draw=draw,
)
