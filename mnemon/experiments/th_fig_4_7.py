"""Thesis figure 4.7: the norm of the gradient over training on copying memory."""

from ..training.runs import RunConfig
from ._contract import Arm, Experiment, Preset, Training

PUBLISHED = {
    "nru": "high early, falls at about 25k updates, when solved",
    "janet": "rises after about 25k updates",
    "lstm-chrono": "rises after about 25k updates",
}


def _arms(delay: int, steps: int) -> tuple[Arm, ...]:
    return tuple(
        Arm(cell, Training(RunConfig("copying", cell, {"delay": delay}, steps=steps)), published)
        for cell, published in PUBLISHED.items()
    )


EXPERIMENT = Experiment(
    id="th-fig-4.7",
    source="thesis figure 4.7",
    shows="norm of the gradient over training on copying memory, T = 100",
    published="NRU's is considerably higher early and falls when it has converged, at about 25k updates; those of "
    "JANET and LSTM-chrono rise after about 25k",
    presets={
        "smoke": Preset(_arms(5, 40), 1, None, "T = 5, 40 updates: shows only that it runs"),
        "laptop": Preset(_arms(100, 30_000), 3, None, "30,000 updates"),
        "paper": Preset(_arms(100, 200_000), 3, None, "as published"),
    },
    curves=("gradient_norm", "loss"),
)
