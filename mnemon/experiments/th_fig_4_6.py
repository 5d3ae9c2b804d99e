"""Thesis figure 4.6: accuracy on validation images over training, permuted sequential MNIST."""

from . import th_table_4_3
from ._contract import Experiment, Preset, borrow


def _preset(name: str, group: str) -> Preset:
    of = th_table_4_3.EXPERIMENT.presets[name]
    arms = borrow(th_table_4_3.EXPERIMENT, name, lambda arm: arm.startswith(group))
    return Preset(arms, of.seeds, None, of.note)


EXPERIMENT = Experiment(
    id="th-fig-4.6",
    source="thesis figure 4.6",
    shows="accuracy on validation images over training, permuted sequential MNIST; the runs are those of th-table-4.3",
    published="NRU is stable and best; RNN-orth and RNN-id are not stable",
    presets={"smoke": _preset("smoke", "196"), "laptop": _preset("laptop", "196"), "paper": _preset("paper", "784")},
    curves=("valid_accuracy", "valid_loss"),
)
