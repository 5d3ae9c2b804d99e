"""Thesis 4.3.5, stability: NRU on copying memory with random labels."""

from typing import Any

from ..training.runs import RunConfig
from ._contract import Arm, Experiment, Preset, Training

# As all networks of the chapter are trained, and as in the authors' configuration of NRU on copying memory.
NETS: dict[str, dict[str, Any]] = {"nru": {}, "nru-amsgrad": {"optimizer": "amsgrad", "clip": 0.5}}


def _arms(delays: tuple[int, ...], steps: int) -> tuple[Arm, ...]:
    return tuple(
        Arm(
            f"{name}-{delay}",
            Training(RunConfig("copying", "nru", {"delay": delay, "random_labels": True}, steps=steps, **settings)),
            "does not diverge",
        )
        for delay in delays
        for name, settings in NETS.items()
    )


EXPERIMENT = Experiment(
    id="th-stability",
    source="thesis 4.3.5, stability",
    shows="loss of NRU on copying memory with labels that cannot be learned: a memory that only adds must not explode; "
    "with Adam and gradients clipped at 1, and with AMSGrad and 0.5 as in the authors' configuration",
    published="training does not diverge for T = 100, 200 and 500",
    presets={
        "smoke": Preset(_arms((5,), 40), 1, None, "T = 5, 40 updates: shows only that it runs"),
        "laptop": Preset(
            _arms((100, 200, 500), 2_000),
            3,
            None,
            "2,000 updates (the thesis gives no number); the loss of a run that does not diverge should be that "
            "without a memory. Early in training a memory can grow exponentially over an episode",
        ),
        "paper": Preset(_arms((100, 200, 500), 50_000), 3, None, "as published"),
    },
)
