"""Schlag & Schmidhuber 2017, table 1: sequence-to-sequence retrieval."""

from typing import Any

from ..training.runs import RunConfig
from ._contract import Arm, Experiment, Preset, Score, Training

EPOCH = 702  # updates, with 256 streams and segments of 32

# Cell, options at the published size, options at about 46,000 parameters, published.
CELLS: dict[str, tuple[str, dict[str, Any], dict[str, Any], str]] = {
    "attention-fw": (
        "fast-weights",
        {"hidden_size": 300, "form": "matrix"},
        {"hidden_size": 200, "form": "matrix"},
        "partial accuracy 0.5323 with 100,140 parameters",
    ),
    "lstm": (
        "lstm",
        {"hidden_size": 600, "peepholes": False},
        {"hidden_size": 100, "peepholes": False},
        "partial accuracy 0.6252 with 1,487,640 parameters",
    ),
    "hyper-lstm": (
        "hyper-lstm",
        {"hidden_size": 600, "hyper_size": 384, "hyper_embedding_size": 32},
        {"hidden_size": 64, "hyper_size": 32, "hyper_embedding_size": 8},
        "partial accuracy 0.7804 with 3,848,215 parameters",
    ),
    "gated-fast-weights": (
        "gated-fast-weights",
        {"hidden_size": 40, "slow_layer_size": 100},
        {"hidden_size": 40, "slow_layer_size": 100},
        "partial accuracy 0.9522 with 46,234 parameters",
    ),
}


def _scores(streams: int) -> dict[str, Score]:
    """On the whole test text, cut into so many streams."""
    episodes = -(-287_500 // 32)
    return {
        f"test {metric}": Score(metric, {"split": "test"}, episodes, streams)
        for metric in ("accuracy", "partial_accuracy", "bits", "partial_bits")
    }


def _arms(steps: int, batch: int, published_sizes: bool) -> tuple[Arm, ...]:
    arms = []
    for name, (cell, full, small, published) in CELLS.items():
        config = RunConfig(
            "seq2seq-retrieval",
            cell,
            cell_options=full if published_sizes else small,
            steps=steps,
            batch=batch,
            lr=0.002,
            optimizer="nadam",
            clip=0.1,
            embedding_size=15,
        )
        arms.append(Arm(name, Training(config, _scores(batch)), published))
    return tuple(arms)


EXPERIMENT = Experiment(
    id="gfw-table-1",
    source="Schlag & Schmidhuber 2017, table 1",
    shows="accuracy and bits of the answers on sequence-to-sequence retrieval",
    published="partial accuracy: AttentionFW 0.5323, LSTM 0.6252, HyperNetwork 0.7804, gated fast weights 0.9522",
    presets={
        "smoke": Preset(_arms(10, 8, False), 1, "not measured", "10 updates of 8 streams: shows only that it runs"),
        "laptop": Preset(
            _arms(20 * EPOCH, 256, False),
            3,
            "not measured",
            "20 epochs; the gated net at its published size, the others at about its number of parameters; the norm "
            "of the gradient clipped at 0.1, without which training is unsteady (the paper mentions no clipping)",
        ),
        "paper": Preset(
            _arms(100 * EPOCH, 256, True),
            3,
            "not measured",
            "published sizes (the hypernetwork, whose sizes the paper does not give, with 3.4 million parameters); "
            "100 epochs, as the paper states none; the norm of the gradient clipped at 0.1",
        ),
    },
)
