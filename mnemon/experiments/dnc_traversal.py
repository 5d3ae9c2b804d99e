"""Graves et al. 2016: traversal of graphs, and of the London Underground."""

from typing import Any

from ._contract import Experiment, Preset
from ._graphs import FINAL, TINY_DNC, dnc, graph_arms

LONDON = "London %"
PUBLISHED = {"dnc": {FINAL: 99.0, LONDON: 98.8}}


def _arms(nets: dict[str, dict[str, Any]], path: int | None = None, final: int = 14, **options: Any):
    held_out = {LONDON: {"graph": "london", **({} if path is None else {"path": path})}}
    return graph_arms("traversal", nets, PUBLISHED, final=final, held_out=held_out, **options)


EXPERIMENT = Experiment(
    id="dnc-traversal",
    source="Graves et al. 2016, traversal",
    shows="walks on a graph that is described to the network, taught in 14 lessons; then walks of 7 steps on the "
    "London Underground, which is never taught",
    published="DNC 99.0 ± 1.1 % of the last lesson and 98.8 ± 1.6 % of London after about a million examples; the best "
    "LSTM 37 % of the first lesson after almost two million",
    presets={
        "smoke": Preset(
            _arms(TINY_DNC, path=2, final=1, lessons=1, updates=2, batch=2, check_every=1, lr=1e-3, episodes=4),
            1,
            None,
            "one lesson, 2 updates of a tiny DNC: shows only that it runs",
        ),
        "laptop": Preset(
            _arms(
                {"dnc": dnc(128, 64, 64, 4), "lstm": {"hidden_size": 128, "peepholes": False}},
                lessons=14,
                updates=40_000,
                batch=16,
                check_every=100,
                lr=1e-3,
                episodes=200,
                lesson_options={"dnc": ("9:memory_slots=128", "13:memory_slots=256")},
                tested_with={"dnc": {"memory_slots": 256}},
            ),
            3,
            None,
            "DNC of 128 units with 64 words of 64 and 4 read heads, LSTM of 128 units; 40,000 updates of 16 graphs "
            "with Adam at 0.001, in whatever lesson they end; the memory has 128 words from lesson 9 on and 256 from "
            "lesson 13 on, so that it holds the graphs; the scores are those of the end, with 256 words",
        ),
        "paper": Preset(
            _arms(
                {"dnc": dnc(256, 256, 50, 5, layers=3), "lstm": {"hidden_size": 512, "peepholes": False}},
                lessons=14,
                updates=500_000,
                batch=2,
                check_every=100,
                lr=1e-5,
                optimizer="rmsprop",
                episodes=200,
            ),
            3,
            None,
            "the published DNC (clipped by the norm of the whole gradient, not at each LSTM activation) for a million "
            "examples; the paper's search over LSTMs is one of 512 units; 3 seeds for 20",
        ),
    },
    curves=("lesson", "valid_sequences"),
)
