"""Thesis figure 4.1: copying memory, T = 100 and 200, about 23.5k parameters, batch 10."""

from ._contract import Experiment, Preset
from ._thesis import CELLS, recall_arms

PUBLISHED = {
    "rnn-orth": "stays at the baseline",
    "rnn-id": "stays at the baseline",
    "lstm": "slower than JANET",
    "lstm-chrono": "slower than JANET",
    "gru": "slower than JANET",
    "janet": "2-3 times the updates of NRU",
    "sru": "slower than JANET",
    "eurnn": "solved in a few hundred updates",
    "goru": "slower than JANET",
    "nru": "solved by about 25k updates, first after EURNN",
    "nru-amsgrad": "solved by about 25k updates, first after EURNN",
}
_NETS = (*CELLS, "nru-amsgrad")


def _arms(delays: dict[int, int], cells: tuple[str, ...] = _NETS):
    return recall_arms("copying", delays, cells, PUBLISHED, clip=0.5)


EXPERIMENT = Experiment(
    id="th-fig-4.1",
    source="thesis figure 4.1",
    shows="cross-entropy on copying memory over training, ten recurrent networks of about 23.5k parameters; NRU also "
    "with AMSGrad and gradients clipped at 0.5, as in its authors' configurations (all others: Adam, 1)",
    published="without a memory 0.17 (T = 100) and 0.09 (T = 200); EURNN solves it in a few hundred updates, "
    "NRU next, JANET needs 2-3 times as many; RNN-orth and RNN-id stay at the baseline",
    presets={
        "smoke": Preset(_arms({5: 40}, ("nru", "lstm")), 1, None, "T = 5, 40 updates: shows only that it runs"),
        "laptop": Preset(
            _arms({100: 30_000, 200: 15_000}),
            3,
            None,
            "each run ends when solved (a mean loss over 100 updates below a tenth of the baseline) or after 30,000 "
            "updates (T = 100) or 15,000 (T = 200) instead of 200,000",
        ),
        "paper": Preset(_arms({100: 200_000, 200: 200_000}), 3, None, "as published, 3 seeds for 1"),
    },
)
