"""Thesis figure 4.3: copying memory with a variable lag up to T = 100 and 200."""

from ._contract import Experiment, Preset
from ._thesis import CELLS, recall_arms

PUBLISHED = {cell: "slower than JANET" for cell in CELLS} | {
    "eurnn": "performs poorly",
    "janet": "second",
    "nru": "the fastest",
    "nru-amsgrad": "the fastest",
}
_NETS = (*CELLS, "nru-amsgrad")


def _arms(delays: dict[int, int], cells: tuple[str, ...] = _NETS, shares: dict[str, float] | None = None):
    return recall_arms("variable-copying", delays, cells, PUBLISHED, shares)


EXPERIMENT = Experiment(
    id="th-fig-4.3",
    source="thesis figure 4.3",
    shows="cross-entropy on copying memory with a variable lag, networks of about 23.5k parameters; NRU also with "
    "AMSGrad, as in its authors' configuration for T = 200",
    published="NRU is the fastest to solve it, followed by JANET; EURNN, a fixed clock, performs poorly",
    presets={
        "smoke": Preset(_arms({5: 40}, ("nru", "lstm")), 1, None, "lags up to 5, 40 updates: shows only that it runs"),
        "laptop": Preset(
            _arms({100: 15_000, 200: 8_000}, shares={"eurnn": 0.5}),
            3,
            None,
            "each run ends when solved (a loss below a tenth of that without a memory) or after 15,000 updates "
            "(T = 100) or 8,000 (T = 200) instead of 200,000, EURNN, whose updates take three times as long, after "
            "half of them; each example has its own lag, the authors draw one for each batch",
        ),
        "paper": Preset(
            _arms({100: 200_000, 200: 200_000}),
            3,
            None,
            "as published, 3 seeds for 1; each example has its own lag, the authors draw one for each batch",
        ),
    },
)
