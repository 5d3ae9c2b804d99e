"""Ba et al. 2016, table 1: error on associative retrieval with 20, 50 and 100 units."""

from typing import Any

from ..training.runs import RunConfig
from ._contract import Arm, Experiment, Preset, Score, Training

# Cell, its options beside the size, and the published test error in % for each number of units.
CELLS: dict[str, tuple[str, dict[str, Any], dict[int, float]]] = {
    "irnn": (
        "rnn-id",
        {"activation": "relu", "init": "identity", "recurrent_scale": 0.5, "layer_norm": False},
        {20: 62.11, 50: 60.23, 100: 0.34},
    ),
    "lstm": ("lstm", {"peepholes": False}, {20: 60.81, 50: 1.85, 100: 0.0}),
    "fast-weights": ("fast-weights", {"decay": 0.9}, {20: 1.81, 50: 0.0, 100: 0.0}),
}
_TEST = {"test accuracy": Score("accuracy", {"split": "test"}, episodes=20_000, batch=1000)}


def _arms(sizes: tuple[int, ...], steps: int, stop_when_solved: bool) -> tuple[Arm, ...]:
    arms = []
    for size in sizes:
        for name, (cell, options, errors) in CELLS.items():
            config = RunConfig(
                "associative-retrieval",
                cell,
                {"split": "train"},
                {**options, "hidden_size": size},
                steps=steps,
                batch=128,
                clip=5.0,
                embedding_size=100,
                stop_when_solved=stop_when_solved,
            )
            arms.append(Arm(f"{name}-{size}", Training(config, _TEST), f"test error {errors[size]:g} %"))
    return tuple(arms)


EXPERIMENT = Experiment(
    id="fwr-table",
    source="Ba et al. 2016, table 1",
    shows="error on associative retrieval of 4 pairs with 20, 50 and 100 recurrent units",
    published="fast weights 1.81, 0 and 0 %, LSTM 60.81, 1.85 and 0 %, IRNN 62.11, 60.23 and 0.34 %",
    presets={
        "smoke": Preset(_arms((20,), 40, False), 1, "not measured", "40 updates: shows only that it runs"),
        "laptop": Preset(
            _arms((20, 50, 100), 60_000, True),
            3,
            "not measured",
            "embeddings of 100 straight into the cell and a linear readout, without the paper's layers of 100 ReLU "
            "units; each run ends when solved (training error below 1 %) or after 60,000 updates",
        ),
        "paper": Preset(
            _arms((20, 50, 100), 200_000, False),
            3,
            "not measured",
            "embeddings of 100 straight into the cell and a linear readout; the paper does not state its updates",
        ),
    },
)
