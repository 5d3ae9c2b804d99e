"""Schlag & Schmidhuber 2017, figure 2: accuracy and bits of the answers over training."""

from . import gfw_table_1
from ._contract import Experiment, borrow

EXPERIMENT = Experiment(
    id="gfw-fig-2",
    source="Schlag & Schmidhuber 2017, figure 2",
    shows="accuracy and bits of the answers (partial: where the target is no blank) on validation text over training; "
    "the runs are those of gfw-table-1",
    published="gated fast weights converge first, then the hypernetwork, LSTM and fast weights as attention last",
    presets={
        name: type(preset)(borrow(gfw_table_1.EXPERIMENT, name), preset.seeds, None, preset.note)
        for name, preset in gfw_table_1.EXPERIMENT.presets.items()
    },
    curves=("valid_partial_accuracy", "valid_partial_bits"),
)
