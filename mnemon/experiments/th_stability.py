"""Thesis 4.3.5, stability: NRU on copying memory with random labels."""

from ..training.runs import RunConfig
from ._contract import Arm, Experiment, Preset, Training


def _arms(delays: tuple[int, ...], steps: int) -> tuple[Arm, ...]:
    return tuple(
        Arm(
            f"nru-{delay}",
            Training(RunConfig("copying", "nru", {"delay": delay, "random_labels": True}, steps=steps)),
            "does not diverge",
        )
        for delay in delays
    )


EXPERIMENT = Experiment(
    id="th-stability",
    source="thesis 4.3.5, stability",
    shows="loss of NRU on copying memory with labels that cannot be learned: a memory that only adds must not explode",
    published="training does not diverge for T = 100, 200 and 500",
    presets={
        "smoke": Preset(_arms((5,), 40), 1, None, "T = 5, 40 updates: shows only that it runs"),
        "laptop": Preset(
            _arms((100, 200, 500), 5_000),
            3,
            None,
            "5,000 updates (the thesis gives no number); a run that diverges stops with an error, so a finished row "
            "did not diverge, and its loss should be that without a memory",
        ),
        "paper": Preset(_arms((100, 200, 500), 50_000), 3, None, "as published"),
    },
)
