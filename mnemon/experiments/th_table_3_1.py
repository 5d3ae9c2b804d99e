"""Thesis table 3.1: TARDIS on the characters of the Penn Treebank."""

from typing import Any

from ._contract import Arm, Experiment, Preset
from .th_table_4_2 import BITS, text_arm

# Cell, options beside the sizes, objective, published bits.
NETS: dict[str, tuple[str, dict[str, Any], str, float]] = {
    "ln-lstm-dropout": ("ln-lstm", {"recurrent_dropout": 0.1}, "supervised", 1.28),
    "tardis-reinforce-r": ("tardis-reinforce", {}, "reinforce", 1.28),
    "tardis-reinforce-auxiliary": ("tardis-reinforce", {"reset_gates": False}, "reinforce-auxiliary", 1.28),
    "tardis-reinforce-auxiliary-r": ("tardis-reinforce", {}, "reinforce-auxiliary", 1.26),
    "tardis-gumbel-r": ("tardis", {}, "supervised", 1.25),
}
_TARDIS = {"memory_slots": 16, "address_size": 4, "word_size": 32}


def _arms(nets: tuple[str, ...], lstm: int, tardis: dict[str, int], **options: Any) -> tuple[Arm, ...]:
    arms = []
    for name in nets:
        cell, changes, objective, bits = NETS[name]
        sizes = {"hidden_size": lstm} if cell == "ln-lstm" else tardis
        arms.append(text_arm(name, cell, {**sizes, **changes}, {BITS: bits}, objective=objective, **options))
    return tuple(arms)


EXPERIMENT = Experiment(
    id="th-table-3.1",
    source="thesis table 3.1",
    shows="bits a character on the test text of the Penn Treebank: LSTM with layer normalisation and dropout, TARDIS "
    "with REINFORCE and with Gumbel-softmax, with RESET gates (R) and auxiliary cost",
    published="LSTM 1.28; TARDIS with REINFORCE + R 1.28, + auxiliary 1.28, + auxiliary + R 1.26, Gumbel-softmax + R "
    "1.25",
    presets={
        "smoke": Preset(
            _arms(
                ("tardis-gumbel-r",),
                4,
                {"hidden_size": 5, "memory_slots": 3, "address_size": 2, "word_size": 4, "addressing_size": 3},
                updates=2,
                records=1,
                batch=4,
                window=20,
                embedding_size=5,
                pieces=8,
            ),
            1,
            None,
            "2 updates of a tiny network: shows only that it runs",
        ),
        "laptop": Preset(
            _arms(
                tuple(NETS),
                120,
                {"hidden_size": 64, **_TARDIS},
                updates=400,
                records=4,
                batch=32,
                window=100,
                embedding_size=64,
            ),
            3,
            None,
            "LSTM of 120 and TARDIS of 64 units with 16 slots (the thesis states no sizes), a quarter of an epoch, "
            "batch 32, pieces of 100 characters",
        ),
        "paper": Preset(
            _arms(tuple(NETS), 1000, {"hidden_size": 1000, **_TARDIS}, updates=20 * 262, records=20),
            3,
            None,
            "pieces of 150 characters as published; the thesis states no sizes and no dropout (here 1,000 units, 16 "
            "slots, 0.1), and 20 epochs as in table 4.2",
        ),
    },
    curves=("loss", "valid_bits"),
)
