"""Thesis figure 4.8: how NRU depends on heads, memory and hidden size, permuted sequential MNIST."""

import dataclasses

from ._contract import Arm, Experiment, Preset
from ._thesis import nru
from .th_table_4_3 import EPOCH, psmnist_arm

HEADS, MEMORY, HIDDEN = (1, 4, 9, 16), (100, 256, 400), (50, 100, 200, 300)


def _arms(
    heads: tuple[int, ...],
    memory: tuple[int, ...],
    hidden: tuple[int, ...],
    base: tuple[int, int, int],
    updates: int,
    **options,
) -> tuple[Arm, ...]:
    """NRU with one size changed at a time; `base` has the others (h, m, k)."""
    h, m, k = base
    sizes = {f"k-{value}": (h, m, value) for value in heads}
    sizes |= {f"m-{value}": (h, value, k) for value in memory}
    sizes |= {f"h-{value}": (value, m, k) for value in hidden}
    published = {
        "k": "more heads help, little above 4 or 9",
        "m": "a large memory makes the beginning hard; all end alike",
        "h": "small hidden states are detrimental",
    }
    return tuple(
        dataclasses.replace(
            psmnist_arm(name, "nru", nru(*size), updates, **options),
            name=name,
            group=name[0],
            published=published[name[0]],
        )
        for name, size in sizes.items()
    )


EXPERIMENT = Experiment(
    id="th-fig-4.8",
    source="thesis figure 4.8",
    shows="accuracy of NRU on permuted sequential MNIST with one size changed at a time: heads k, memory m, hidden h",
    published="more heads help, with little return above 4 or 9; a larger memory makes learning harder in the "
    "beginning, but all converge to similar solutions; small hidden states are detrimental",
    presets={
        "smoke": Preset(
            _arms((4,), (), (6,), (20, 16, 4), 4, pooled=True, records=4, images=100),
            1,
            None,
            "4 updates of tiny networks: shows only that it runs",
        ),
        "laptop": Preset(
            _arms(
                (1, 4, 9, 16),
                (36, 64, 144),
                (20, 40, 80, 120),
                (80, 64, 4),
                2 * EPOCH,
                pooled=True,
                records=8,
                images=2000,
            ),
            3,
            None,
            "images pooled to 196 steps, 2 epochs instead of 40, about h = 80, m = 64, k = 4 instead of h = 200, "
            "m = 256, k = 4, with the other sizes in proportion; validated and tested on 2,000 images",
        ),
        "paper": Preset(
            _arms(HEADS, MEMORY, HIDDEN, (200, 256, 4), 40 * EPOCH, pooled=False, records=40),
            3,
            None,
            "as published, 3 seeds for 1",
        ),
    },
    curves=("valid_accuracy",),
)
