"""Thesis figure 4.5: denoising, T = 100."""

from ._contract import Experiment, Preset
from ._thesis import CELLS, recall_arms

PUBLISHED = {cell: "solved, after about as many updates as the others" for cell in CELLS} | {
    "eurnn": "not solved",
    "nru": "solved; faster in the beginning",
}


def _arms(delay: int, steps: int, cells: tuple[str, ...] = CELLS):
    return recall_arms("denoising", {delay: steps}, cells, PUBLISHED)


EXPERIMENT = Experiment(
    id="th-fig-4.5",
    source="thesis figure 4.5",
    shows="cross-entropy on denoising over training, networks of about 23.5k parameters (here the authors train NRU as "
    "all others)",
    published="all but EURNN solve it after about as many updates; NRU learns faster in the beginning",
    presets={
        "smoke": Preset(_arms(10, 40, ("nru", "lstm")), 1, None, "T = 10, 40 updates: shows only that it runs"),
        "laptop": Preset(
            _arms(100, 20_000),
            3,
            None,
            "each run ends when solved (a loss below a tenth of that without a memory) or after 20,000 updates instead "
            "of 200,000",
        ),
        "paper": Preset(_arms(100, 200_000), 3, None, "as published, 3 seeds for 1"),
    },
)
