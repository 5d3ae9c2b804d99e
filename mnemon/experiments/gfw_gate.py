"""An ablation of gated fast weights: the update without its gate."""

import dataclasses

from . import gfw_table_1
from ._contract import Arm, Experiment, Preset, Training, borrow

GATED = "gated-fast-weights"


def _preset(name: str, note: str) -> Preset:
    of = gfw_table_1.EXPERIMENT.presets[name]
    (gated,) = borrow(gfw_table_1.EXPERIMENT, name, lambda arm: arm == GATED)
    if not isinstance(gated.job, Training):
        raise TypeError("the arm is no training run")
    config = gated.job.config
    config = dataclasses.replace(config, cell_options={**config.cell_options, "gate": False})
    without = Arm("without-the-gate", dataclasses.replace(gated.job, config=config), "not published")
    return Preset((gated, without), of.seeds, None, note)


EXPERIMENT = Experiment(
    id="gfw-gate",
    source="Schlag & Schmidhuber 2017, equation 8",
    shows="sequence-to-sequence retrieval with fast weights that are gated, and with the update added instead; the "
    "first run is that of gfw-table-1",
    published="the gate gave the best results among several interactions; no numbers for the others",
    presets={
        "smoke": _preset("smoke", "10 updates of 8 streams: shows only that it runs"),
        "laptop": _preset("laptop", "as gfw-table-1"),
        "paper": _preset("paper", "as gfw-table-1"),
    },
    curves=("valid_partial_accuracy",),
)
