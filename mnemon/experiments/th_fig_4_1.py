"""Thesis figure 4.1: copying memory, T = 100 and 200, about 23.5k parameters, batch 10."""

from ..training.runs import RunConfig
from ._contract import Arm, Experiment, Preset, Training

PUBLISHED = {
    "rnn-orth": "stays at the baseline",
    "rnn-id": "stays at the baseline",
    "lstm": "slower than JANET",
    "lstm-chrono": "slower than JANET",
    "gru": "slower than JANET",
    "janet": "2-3 times the updates of NRU",
    "nru": "solved by about 25k updates, first after EURNN",
}


def arm(cell: str, delay: int, steps: int) -> Arm:
    """One cell at one delay, with the thesis's settings."""
    config = RunConfig("copying", cell, {"delay": delay}, steps=steps, stop_when_solved=True)
    return Arm(f"copying-{delay}-{cell}", Training(config), PUBLISHED[cell])


def _arms(cells: list[str], delays: tuple[int, ...], steps: int) -> tuple[Arm, ...]:
    return tuple(arm(cell, delay, steps) for delay in delays for cell in cells)


EXPERIMENT = Experiment(
    id="th-fig-4.1",
    source="thesis figure 4.1",
    shows="cross-entropy on copying memory over training, ten recurrent networks of about 23.5k parameters",
    published="without a memory 0.17 (T = 100) and 0.09 (T = 200); EURNN solves it in a few hundred updates, "
    "NRU next, JANET needs 2-3 times as many; RNN-orth and RNN-id stay at the baseline",
    presets={
        "smoke": Preset(_arms(["nru", "lstm"], (5,), 40), 1, "20 s", "T = 5, 40 updates: shows only that it runs"),
        "laptop": Preset(
            _arms(["rnn-orth", "lstm", "gru", "janet", "nru"], (100,), 30_000),
            3,
            "not measured on a quiet machine",
            "five of the cells, T = 100 only; each run ends when solved (a mean loss over 100 updates below a tenth of "
            "the baseline) "
            "or after 30,000 updates instead of 200,000",
        ),
        "paper": Preset(
            _arms(list(PUBLISHED), (100, 200), 200_000), 3, "about 20 hours", "as published, 3 seeds for 1"
        ),
    },
)
