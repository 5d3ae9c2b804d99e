"""Thesis table 3.4: entailment, premise and hypothesis read one after the other."""

from typing import Any

from ..training.runs import RunConfig
from ._contract import Arm, Experiment, Preset, Score, Training

ACCURACY = "test accuracy %"
_MEMORY = {"memory_slots": 16, "address_size": 4, "word_size": 32}
# Cell, options beside the hidden size, objective, published accuracy.
NETS: dict[str, tuple[str, dict[str, Any], str, float]] = {
    "ln-lstm-dropout": ("ln-lstm", {"recurrent_dropout": 0.1}, "supervised", 81.7),
    "ntm": ("ntm", {"memory_slots": 16, "word_size": 32}, "supervised", 80.2),
    "dntm": ("dntm", _MEMORY, "supervised", 80.9),
    "tardis-reinforce-auxiliary": ("tardis-reinforce", _MEMORY, "reinforce-auxiliary", 82.4),
    "tardis-gumbel": ("tardis", _MEMORY, "supervised", 84.3),
}


def _arms(
    corpora: dict[str, int],
    nets: tuple[str, ...],
    hidden: int,
    embedding_size: int,
    *,
    records: int,
    batch: int,
    pairs: int | None = None,
    published: bool = False,
) -> tuple[Arm, ...]:
    arms = []
    for corpus, updates in corpora.items():
        for name in nets:
            cell, options, objective, accuracy = NETS[name]
            config = RunConfig(
                "entailment",
                cell,
                {"corpus": corpus},
                {"hidden_size": hidden, **options},
                steps=updates,
                batch=batch,
                objective=objective,
                embedding_size=embedding_size,
                log_every=max(updates // records, 1),
                patience=max(records // 2, 1),
                validation_episodes=pairs,
            )
            test = Score("accuracy", {"split": "test"}, pairs, unit="%")
            numbers = {ACCURACY: accuracy} if published else {}
            text = f"{accuracy} % on all of SNLI"
            arms.append(Arm(f"{corpus}-{name}", Training(config, {ACCURACY: test}), text, numbers, corpus))
    return tuple(arms)


EXPERIMENT = Experiment(
    id="th-table-3.4",
    source="thesis table 3.4",
    shows="accuracy on whether a sentence follows from, contradicts or does not concern the one before it",
    published="on SNLI, in %: LSTM with layer normalisation and dropout 81.7, NTM 80.2 (with both 81.8), D-NTM 80.9 "
    "(82.3), TARDIS with REINFORCE and auxiliary cost 82.4, with Gumbel-softmax 84.3",
    presets={
        "smoke": Preset(
            _arms({"sick": 2}, ("ln-lstm-dropout",), 40, 5, records=1, batch=4, pairs=20),
            1,
            None,
            "SICK, 2 updates: shows only that it runs",
        ),
        "laptop": Preset(
            _arms({"sick": 2_000, "snli-subset": 2_000}, tuple(NETS), 64, 50, records=20, batch=32),
            3,
            None,
            "SICK (4,439 pairs of training) and a subset of SNLI (21,605) instead of all of it (549,367), so that "
            "accuracies cannot be compared with the published ones; 64 units, embeddings of 50, at most 2,000 updates "
            "of 32 pairs, stopped early by validation",
        ),
        "paper": Preset(
            _arms({"snli": 100_000}, tuple(NETS), 300, 300, records=50, batch=32, published=True),
            3,
            None,
            "the thesis states neither sizes nor updates: 300 units, embeddings of 300, about 6 epochs",
        ),
    },
    curves=("loss", "valid_accuracy"),
)
