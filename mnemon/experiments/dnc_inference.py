"""Graves et al. 2016: relations on graphs, and in a family."""

from typing import Any

from ._contract import Experiment, Preset
from ._graphs import FINAL, TINY_LSTM, dnc, graph_arms

FAMILY = "family %"
PUBLISHED = {"dnc": {FINAL: 95.5, FAMILY: 81.8}}


def _arms(nets: dict[str, dict[str, Any]], final: int = 17, **options: Any):
    held_out = {FAMILY: {"graph": "family"}}
    return graph_arms("inference", nets, PUBLISHED, final=final, held_out=held_out, **options)


EXPERIMENT = Experiment(
    id="dnc-inference",
    source="Graves et al. 2016, inference",
    shows="relations that are chains of edges of a graph described to the network, taught in 17 lessons; then "
    "relations of 4 steps in a family, which is never taught",
    published="DNC 95.5 ± 2.2 % of the last lesson, 81.8 ± 13.5 % of the family",
    presets={
        "smoke": Preset(
            _arms(TINY_LSTM, final=1, lessons=1, updates=2, batch=2, check_every=1, lr=1e-3, episodes=4),
            1,
            None,
            "one lesson, 2 updates of a tiny LSTM: shows only that it runs",
        ),
        "laptop": Preset(
            _arms(
                {"dnc": dnc(128, 64, 64, 4), "lstm": {"hidden_size": 128, "peepholes": False}},
                lessons=17,
                updates=30_000,
                batch=16,
                check_every=100,
                lr=1e-3,
                episodes=200,
                lesson_options={"dnc": ("6:memory_slots=128",)},
                tested_with={"dnc": {"memory_slots": 128}},
            ),
            3,
            None,
            "DNC of 128 units with 64 words of 64 and 4 read heads, LSTM of 128 units; 30,000 updates of 16 graphs "
            "with Adam at 0.001, in whatever lesson they end; the memory has 128 words from lesson 6 on, so that it "
            "holds the graphs; the scores are those of the end, with 128 words",
        ),
        "paper": Preset(
            _arms(
                {"dnc": dnc(256, 128, 50, 5, layers=3)},
                lessons=17,
                updates=500_000,
                batch=32,
                check_every=100,
                lr=1e-5,
                optimizer="rmsprop",
                episodes=200,
            ),
            3,
            None,
            "the published DNC (clipped by the norm of the whole gradient, not at each LSTM activation); 500,000 "
            "updates, as the paper states none; 3 seeds for 20",
        ),
    },
    curves=("lesson", "valid_sequences"),
)
