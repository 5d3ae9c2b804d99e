"""Thesis table 4.3: accuracy on permuted sequential MNIST."""

from typing import Any

from ..training.runs import RunConfig
from ._contract import Arm, Experiment, Preset, Score, Training
from ._thesis import CELLS, clip, nru, sized, sru

EPOCH = 500  # updates of 100 images
TEST = "test accuracy %"
# Published accuracy on the validation and on the test images.
PUBLISHED = {
    "rnn-orth": (88.70, 89.26),
    "rnn-id": (85.98, 86.13),
    "lstm": (90.01, 89.86),
    "lstm-chrono": (88.10, 88.43),
    "gru": (92.16, 92.39),
    "janet": (92.50, 91.94),
    "sru": (92.79, 92.49),
    "eurnn": (94.60, 94.50),
    "goru": (86.90, 87.00),
    "nru": (95.46, 95.38),
}
# About 165k parameters; EURNN has 17k at 1024 units, and GORU can have 136k or more than 500k.
_PAPER = sized(
    rnn_orth=400,
    rnn_id=400,
    lstm=200,
    lstm_chrono=200,
    gru=232,
    janet=283,
    sru=sru(150, 155, 50),
    eurnn=1024,
    goru=256,
    nru=nru(212, 256),
)
# About 23k parameters, those of the copying task; EURNN 256 units.
_LAPTOP = sized(eurnn=256, goru=64, nru=nru(80, 64))
_SMOKE = sized(lstm=4, nru=nru(4, 4))
# The authors' LSTM has peepholes, which begin between 0 and 1: here also without.
WITHOUT_PEEPHOLES = "-without-peepholes"
_PLAIN_LSTM = f"lstm{WITHOUT_PEEPHOLES}"


def psmnist_arm(
    name: str,
    cell: str,
    options: dict[str, Any],
    updates: int,
    *,
    pooled: bool,
    records: int,
    images: int | None = None,
    numbers: dict[str, float] | None = None,
) -> Arm:
    """A network on permuted MNIST: the model of the best validation is tested, on so many images at most."""
    group = "196" if pooled else "784"
    config = RunConfig(
        "psmnist",
        cell,
        {"pooled": pooled},
        options,
        steps=updates,
        batch=100,
        clip=clip(cell),
        log_every=max(updates // records, 1),
        patience=records,
        validation_episodes=images,
    )
    test = {TEST: Score("accuracy", {"split": "test"}, episodes=images, unit="%")}
    published = "–" if numbers is None else f"{numbers[TEST]} % of test images"
    return Arm(f"{group}-{name}", Training(config, test), published, numbers or {}, group)


def _arms(sizes: dict[str, dict[str, Any]], names: tuple[str, ...], updates: int, **options: Any) -> tuple[Arm, ...]:
    arms = []
    for name in names:
        cell = name.removesuffix(WITHOUT_PEEPHOLES)
        size = sizes.get(cell, {}) | ({} if name == cell else {"peepholes": False})
        arms.append(psmnist_arm(name, cell, size, updates, numbers={TEST: PUBLISHED[cell][1]}, **options))
    return tuple(arms)


EXPERIMENT = Experiment(
    id="th-table-4.3",
    source="thesis table 4.3",
    shows="accuracy on permuted sequential MNIST, ten recurrent networks; LSTM, which has peepholes in the authors' "
    "code, also without them",
    published="test accuracy in %: " + ", ".join(f"{cell} {test}" for cell, (_, test) in PUBLISHED.items()),
    presets={
        "smoke": Preset(
            _arms(_SMOKE, ("lstm", "nru"), 4, pooled=True, records=2, images=100),
            1,
            None,
            "4 updates of networks of 4 units: shows only that it runs",
        ),
        "laptop": Preset(
            _arms(_LAPTOP, (*CELLS, _PLAIN_LSTM), 8 * EPOCH, pooled=True, records=8, images=2000)
            + _arms(_PAPER, ("lstm", _PLAIN_LSTM, "nru"), 4 * EPOCH, pooled=False, records=4, images=2000),
            3,
            None,
            "images pooled to 196 steps for 8 epochs with about 23,000 parameters instead of 165,000; the full 784 "
            "steps for 4 epochs with NRU and LSTM of the published sizes; validated and tested on 2,000 images",
        ),
        "paper": Preset(
            _arms(_PAPER, CELLS, 100 * EPOCH, pooled=False, records=100),
            3,
            None,
            "the authors' configurations: 100 epochs, validated at each; 3 seeds for 1",
        ),
    },
    curves=("valid_accuracy",),
)
