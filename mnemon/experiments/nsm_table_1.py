"""Le et al. 2020, table 1: NTM and NUTM on sequences longer than those of training."""

from typing import Any

from ..training.runs import RunConfig
from ._contract import Arm, Experiment, Preset, Score, Training

BITS = "wrong bits, longer"


def _fixed(option: str, low: int, high: int) -> dict[str, Any]:
    return {f"min_{option}": low, f"max_{option}": high}


# Options of training and of the longer test, hidden sizes of NTM and NUTM, published wrong bits a sequence of both.
TASKS: dict[str, tuple[str, dict[str, Any], dict[str, Any], tuple[int, int], tuple[float, float]]] = {
    "copy": ("ntm-copy", {}, _fixed("length", 20, 120), (100, 80), (0.00, 0.00)),
    "long-copy": ("ntm-copy", {"max_length": 40}, _fixed("length", 199, 199), (100, 80), (16.04, 0.02)),
    "repeat-copy": (
        "repeat-copy",
        {},
        _fixed("length", 10, 19) | _fixed("repeats", 10, 19),
        (100, 80),
        (405.10, 366.69),
    ),
    "recall": ("associative-recall", {}, _fixed("items", 6, 20), (100, 80), (7.66, 1.35)),
    "n-grams": ("dynamic-ngrams", {}, {}, (100, 80), (132.59, 127.68)),
    "sort": ("priority-sort", {}, {}, (200, 150), (24.41, 20.00)),
}


def _arms(
    tasks: dict[str, dict[str, Any]],
    updates: int,
    sizes: dict[str, Any] | None = None,
    *,
    lr: float,
    optimizer: str,
    batch: int,
    episodes: int = 1000,
    test: dict[str, Any] | None = None,
) -> tuple[Arm, ...]:
    """`tasks` with changes of their options; `sizes` and `test` in place of those of the table."""
    arms = []
    for name, changes in tasks.items():
        task, options, longer, hidden, published = TASKS[name]
        heads = 5 if name == "sort" else 1
        for number, cell in enumerate(("ntm", "nutm")):
            memory = {"memory_slots": 256 if name == "long-copy" else 128, "word_size": 20}
            heads_of = {"read_heads": heads, "write_heads": heads} if heads > 1 else {}
            cell_options = sizes or {"hidden_size": hidden[number], **memory, **heads_of}
            config = RunConfig(
                task,
                cell,
                {**options, **changes},
                cell_options,
                steps=updates,
                batch=batch,
                lr=lr,
                optimizer=optimizer,
                clip=10.0,
            )
            score = Score("bit_error", longer if test is None else test, episodes, 20)
            numbers = {BITS: published[number]}
            arms.append(Arm(f"{name}-{cell}", Training(config, {BITS: score}), numbers=numbers, group=name))
    return tuple(arms)


EXPERIMENT = Experiment(
    id="nsm-table-1",
    source="Le et al. 2020, table 1",
    shows="wrong bits in sequences longer than those of training: NTM, and NUTM, whose interface comes from one of two "
    "stored programs at each step",
    published="NTM against NUTM: copy 0.00, 0.00; repeat copy 405.10, 366.69; recall 7.66, 1.35; N-grams 132.59, "
    "127.68; sort 24.41, 20.00; long copy 16.04, 0.02 (the best of 5 runs)",
    presets={
        "smoke": Preset(
            _arms(
                {"copy": {"max_length": 2, "bits": 3}},
                10,
                {"hidden_size": 4, "memory_slots": 5, "word_size": 3},
                lr=1e-3,
                optimizer="adam",
                batch=2,
                episodes=4,
                test=_fixed("length", 3, 3),
            ),
            1,
            None,
            "copies of 2 rows, 10 updates of tiny networks: shows only that it runs",
        ),
        "laptop": Preset(
            _arms(
                {"copy": {}, "recall": {}},
                4_000,
                lr=1e-3,
                optimizer="adam",
                batch=16,
                episodes=200,
            ),
            3,
            None,
            "copy and recall at the published sizes; 4,000 updates of 16 sequences with Adam at 0.001, tested on 200 "
            "longer ones",
        ),
        "paper": Preset(
            _arms({name: {} for name in TASKS}, 100_000, lr=1e-4, optimizer="rmsprop", batch=1),
            5,
            None,
            "RMSProp at 0.0001 and batch 1 (gradients clipped by norm, without momentum); 100,000 updates; the sizes "
            "of NUTM on recall, N-grams and sort, which are in a missing appendix, by analogy; wrong bits of N-grams "
            "at the length of training",
        ),
    },
)
