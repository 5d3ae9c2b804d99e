"""Thesis figure 4.4: updates to convergence of the three best networks on the four copying tasks."""

import re
from typing import Any

from . import th_fig_4_1, th_fig_4_3
from ._contract import Experiment, Preset, borrow

_BEST = ("nru", "janet", "lstm-chrono")


def _preset(name: str, note: str) -> Preset:
    # Of a tiny grid all arms are taken: it has none of the three.
    pattern = ".*" if name == "smoke" else rf".*-\d+-({'|'.join(_BEST)})"
    arms = [
        arm
        for experiment in (th_fig_4_1.EXPERIMENT, th_fig_4_3.EXPERIMENT)
        for arm in borrow(experiment, name, lambda arm: re.fullmatch(pattern, arm) is not None)
    ]
    return Preset(tuple(arms), th_fig_4_1.EXPERIMENT.presets[name].seeds, None, note)


def draw(content: dict[str, Any]) -> Any:
    """A bar for each network and task: the median updates to a solution; a cross is a run that ended without one."""
    import altair as alt
    import polars as pl

    rows = [
        {
            "task": arm["group"],
            "network": name.removeprefix(f"{arm['group']}-"),
            "updates": result["steps_to_solve"] or result["updates"],
            "ended": "solved" if result["solved"] else "not solved",
        }
        for name, arm in content["arms"].items()
        for result in arm["seeds"].values()
    ]
    base = alt.Chart(pl.DataFrame(rows)).encode(
        x=alt.X("task:N", title=None, axis=alt.Axis(labelAngle=0)),
        xOffset="network:N",
        color=alt.Color("network:N", title=None, scale=alt.Scale(scheme="tableau10")),
    )
    bars = base.mark_bar(opacity=0.55).encode(y=alt.Y("median(updates):Q", title="updates to solve"))
    shapes = alt.Scale(domain=["solved", "not solved"], range=["circle", "cross"])
    points = base.mark_point(filled=True, size=40).encode(
        y="updates:Q", shape=alt.Shape("ended:N", title=None, scale=shapes)
    )
    return (bars + points).properties(width=520, height=280, title=content["source"])


EXPERIMENT = Experiment(
    id="th-fig-4.4",
    source="thesis figure 4.4",
    shows="updates that NRU, JANET and LSTM-chrono need on copying and variable copying, T = 100 and 200; the runs are "
    "those of th-fig-4.1 and th-fig-4.3",
    published="NRU converges significantly faster than JANET and LSTM-chrono on all four",
    presets={
        "smoke": _preset("smoke", "the runs of the two smoke presets: shows only that it works"),
        "laptop": _preset("laptop", "the runs of the two laptop presets, with their limits on updates"),
        "paper": _preset("paper", "as published, 3 seeds for 1"),
    },
    draw=draw,
)
