"""Thesis 4.3.5, forgetting: NRU on copying memory, its state reset only every k examples."""

from ..training.runs import RunConfig
from ._contract import Arm, Experiment, Preset, Training
from .th_stability import NETS


def _arms(delay: int, resets: tuple[int, ...], steps: int, nets: tuple[str, ...] = tuple(NETS)) -> tuple[Arm, ...]:
    return tuple(
        Arm(
            f"{name}-reset-{every}",
            Training(
                RunConfig(
                    "copying",
                    "nru",
                    {"delay": delay, "reset_every": every},
                    steps=steps,
                    stop_when_solved=True,
                    **NETS[name],
                )
            ),
            "learns to reset its memory at the start of each example",
        )
        for every in resets
        for name in nets
    )


EXPERIMENT = Experiment(
    id="th-forgetting",
    source="thesis 4.3.5, forgetting ability",
    shows="loss of NRU on copying memory when its state is reset only once every k examples",
    published="NRU learns to reset its memory at the start of every example, k = 2, 5 and 10",
    presets={
        "smoke": Preset(_arms(5, (2,), 40, ("nru",)), 1, None, "T = 5, k = 2, 40 updates: shows only that it runs"),
        "laptop": Preset(
            _arms(100, (1, 2, 5, 10), 30_000),
            3,
            None,
            "T = 100, at most 30,000 updates; k = 1, where every example starts afresh, for comparison; with Adam "
            "and gradients clipped at 1, and with AMSGrad and 0.5 as in the authors' configuration",
        ),
        "paper": Preset(_arms(100, (2, 5, 10), 200_000), 3, None, "as published"),
    },
)
