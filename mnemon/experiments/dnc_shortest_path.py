"""Graves et al. 2016: shortest paths on graphs, and on the London Underground."""

from typing import Any

from ._contract import Experiment, Preset
from ._graphs import FINAL, TINY_LSTM, dnc, graph_arms

LONDON = "London %"
PUBLISHED = {"dnc": {FINAL: 64.0, LONDON: 55.3}}


def _arms(nets: dict[str, dict[str, Any]], path: int | None = None, final: int = 15, **options: Any):
    held_out = {LONDON: {"graph": "london", **({} if path is None else {"path": path})}}
    return graph_arms("shortest-path", nets, PUBLISHED, final=final, held_out=held_out, metric="minimal", **options)


EXPERIMENT = Experiment(
    id="dnc-shortest-path",
    source="Graves et al. 2016, shortest path",
    shows="share of shortest paths found on a graph that is described to the network, taught in 15 lessons with "
    "DAgger; then paths of 4 steps on the London Underground, which is never taught",
    published="DNC 64.0 ± 3.5 % of the last lesson, 55.3 ± 6.4 % of London",
    presets={
        "smoke": Preset(
            _arms(TINY_LSTM, path=2, final=1, lessons=1, updates=2, batch=2, check_every=1, lr=1e-3, episodes=4),
            1,
            None,
            "one lesson, 2 updates of a tiny LSTM: shows only that it runs",
        ),
        "laptop": Preset(
            _arms(
                {"dnc": dnc(128, 64, 64, 4), "lstm": {"hidden_size": 128, "peepholes": False}},
                lessons=15,
                updates=20_000,
                batch=16,
                check_every=100,
                lr=1e-3,
                episodes=100,
                lesson_options={"dnc": ("8:memory_slots=128",)},
                tested_with={"dnc": {"memory_slots": 128}},
            ),
            3,
            None,
            "DNC of 128 units with 64 words of 64 and 4 read heads, LSTM of 128 units; 20,000 updates of 16 graphs "
            "with Adam at 0.001, examined every 100, in whatever lesson they end; the memory has 128 words from "
            "lesson 8 on, as published; the scores are those of the end, with 128 words",
        ),
        "paper": Preset(
            _arms(
                {"dnc": dnc(256, 128, 50, 5, layers=2)},
                lessons=15,
                updates=1_000_000,
                batch=1,
                check_every=2_000,
                lr=3e-6,
                optimizer="rmsprop",
                episodes=50,
            ),
            3,
            None,
            "the published DNC (clipped by the norm of the whole gradient, not at each LSTM activation); a million "
            "updates, as the paper states none; 3 seeds for 20",
        ),
    },
    curves=("lesson", "valid_minimal"),
)
