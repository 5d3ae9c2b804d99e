"""bAbI, one network for all twenty tasks."""

from typing import Any

from ..training.runs import RunConfig
from ._contract import Arm, Experiment, Preset, Score, Training
from ._graphs import dnc

ERROR, FAILED = "mean error %", "failed tasks"
# Published mean error over the tasks and failed tasks, both means over runs, where stated.
PUBLISHED: dict[str, dict[str, float]] = {
    "lstm": {ERROR: 27.3, FAILED: 17.1},
    "ntm": {ERROR: 28.5, FAILED: 17.3},
    "dnc": {ERROR: 16.7, FAILED: 11.2},
    "dnc-md": {ERROR: 9.5},
    "nutm": {ERROR: 5.6},
}
_MASKED = {"masked_content": True, "deallocate": True}


def _nets(lstm: int, hidden: int, slots: int, word: int, heads: int, programs: int) -> dict[str, dict[str, Any]]:
    memory = dnc(hidden, slots, word, heads)
    return {
        "lstm": {"hidden_size": lstm, "peepholes": False},
        "ntm": {"hidden_size": hidden, "memory_slots": slots, "word_size": word},
        "dnc": memory,
        "dnc-md": {**memory, **_MASKED},
        "nutm": {**memory, "core": "dnc", "programs": programs},
    }


def _arms(
    nets: dict[str, dict[str, Any]],
    updates: int,
    *,
    batch: int,
    lr: float,
    optimizer: str,
    records: int,
    stories: int | None,
    **task: Any,
) -> tuple[Arm, ...]:
    test = {"split": "test"}
    scores = {
        ERROR: Score("error", test, stories, 20, unit="%", of="parts"),
        FAILED: Score("error", test, stories, 20, of="failed parts"),
    }
    return tuple(
        Arm(
            name,
            Training(
                RunConfig(
                    "babi",
                    name.removesuffix("-md"),
                    task,
                    options,
                    steps=updates,
                    batch=batch,
                    lr=lr,
                    optimizer=optimizer,
                    clip=10.0,
                    log_every=max(updates // records, 1),
                    patience=records,
                    validation_episodes=100 if stories is None else stories,
                ),
                scores,
            ),
            numbers=PUBLISHED[name],
        )
        for name, options in nets.items()
    )


_TINY = _nets(4, 4, 5, 3, 1, 2)

EXPERIMENT = Experiment(
    id="babi-joint",
    source="Graves et al. 2016, extended data table 1; Csordás & Schmidhuber 2019; Le et al. 2020",
    shows="error in questions about short stories, one network for all 20 tasks of bAbI; a task fails above 5 %",
    published="mean error over tasks, mean over runs, in %: LSTM 27.3 ± 0.8, NTM 28.5 ± 2.9, DNC 16.7 ± 7.6 (best "
    "3.8), with masking and de-allocation 9.5 ± 1.6, NUTM on a DNC with 4 programs 5.6 ± 1.9",
    presets={
        "smoke": Preset(
            _arms(
                {name: _TINY[name] for name in ("lstm", "dnc-md")},
                2,
                batch=2,
                lr=1e-3,
                optimizer="adam",
                records=1,
                stories=4,
                number=1,
            ),
            1,
            None,
            "task 1 only, 2 updates of tiny networks: shows only that it runs",
        ),
        "laptop": Preset(
            _arms(
                _nets(128, 64, 32, 24, 2, 2),
                1_500,
                batch=16,
                lr=1e-3,
                optimizer="adam",
                records=5,
                stories=100,
                longest=120,
            ),
            3,
            None,
            "LSTM of 128 units, the others of 64 with 32 words of 24; trained on stories of at most 120 words for "
            "1,500 updates of 16 with Adam at 0.001, tested on 100 stories of each task; the stories of training of "
            "task 3 are missing from the archive at hand",
        ),
        "paper": Preset(
            _arms(
                _nets(512, 256, 256, 64, 4, 4),
                500_000,
                batch=1,
                lr=1e-4,
                optimizer="rmsprop",
                records=100,
                stories=None,
            ),
            3,
            None,
            "sizes, RMSProp at 0.0001 and batch 1 as published for LSTM, NTM and DNC (no momentum; one process for 16 "
            "workers), the same for the others; 500,000 updates; 3 seeds for 20",
        ),
    },
)
