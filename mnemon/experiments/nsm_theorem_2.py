"""Stored programs, Theorem 2: the chance of critical vanishing with one program and with many."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from ..lens.programs import critical_product, many_programs_chance, one_program_chance, sampled_chances
from ._contract import Arm, Experiment, Preset

# Values of gamma b: the chances depend on nothing else, and on T.
PRODUCTS = np.round(np.concatenate([np.linspace(0.5, 4.0, 36), np.linspace(4.25, 10.0, 24)]), 4)


@dataclasses.dataclass(frozen=True)
class Chances:
    """Both chances for one number of steps, exact and by Monte Carlo."""

    steps: int
    samples: int

    def run(self, seed: int, folder: Path) -> dict[str, Any]:
        del folder
        one, many = one_program_chance(PRODUCTS), many_programs_chance(self.steps, PRODUCTS)
        sampled_one, sampled_many = sampled_chances(self.steps, PRODUCTS, self.samples, np.random.default_rng(seed))
        return {
            "steps": self.steps,
            "products": PRODUCTS.tolist(),
            "one": one.tolist(),
            "many": many.tolist(),
            "sampled_many": sampled_many.tolist(),
            "largest_error": float(max(np.abs(one - sampled_one).max(), np.abs(many - sampled_many).max())),
            "critical": critical_product(self.steps),
        }


def _preset(steps: tuple[int, ...], samples: int, seeds: int, cost: str | None, note: str) -> Preset:
    published = "many < one for small 1/gamma^T"
    return Preset(tuple(Arm(f"T{n}", Chances(n, samples), published) for n in steps), seeds, cost, note)


def table(content: dict[str, Any]) -> list[dict[str, Any]]:
    """Where the statement holds, and the chances at some gamma b."""
    rows = []
    for arm in content["arms"].values():
        done = list(arm["seeds"].values())
        first = done[0]
        row = {"T": first["steps"], "holds for gamma b above": round(first["critical"], 3)}
        for product in (2.0, 3.0, 5.0, 10.0):
            at = first["products"].index(product)
            row[f"one / many at gamma b = {product:g}"] = f"{first['one'][at]:.3f} / {first['many'][at]:.2g}"
        row["largest error of Monte Carlo"] = f"{max(result['largest_error'] for result in done):.4f}"
        rows.append({**row, "published": arm["published"]})
    return rows


def draw(content: dict[str, Any]) -> Any:
    """Left: the chances over gamma b, lines exact, points sampled. Right: where the statement holds."""
    import altair as alt
    import polars as pl

    results = [arm["seeds"]["0"] for arm in content["arms"].values()]
    order = ["one program", *(f"T = {result['steps']}" for result in results)]
    exact = [pl.DataFrame({"product": results[0]["products"], "chance": results[0]["one"], "of": order[0]})]
    sampled = []
    for result, name in zip(results, order[1:], strict=True):
        exact.append(pl.DataFrame({"product": result["products"], "chance": result["many"], "of": name}))
        sampled.append(pl.DataFrame({"product": result["products"], "chance": result["sampled_many"], "of": name}))
    color = alt.Color("of:N", title=None, sort=order, scale=alt.Scale(scheme="tableau10"))
    x = alt.X("product:Q", title="γ b", scale=alt.Scale(domain=[0.5, 10]))
    y = alt.Y("chance:Q", title="chance of critical vanishing")
    lines = alt.Chart(pl.concat(exact)).mark_line().encode(x, y, color)
    points = alt.Chart(pl.concat(sampled)).mark_point(size=8, opacity=0.6).encode(x, y, color)
    left = (lines + points).properties(width=330, height=240, title="many programs; lines exact, points Monte Carlo")

    steps = np.unique(np.round(np.geomspace(2, 1000, 60)).astype(int))
    border = pl.DataFrame({"T": steps, "border": [critical_product(int(n)) for n in steps], "top": 6.0, "low": 1.0})
    over = alt.X("T:Q", scale=alt.Scale(type="log"), title="steps T")
    base = alt.Chart(border)
    height = alt.Scale(domain=[1, 6])
    holds = base.mark_area(color="#76b7b2", opacity=0.5).encode(
        over, y=alt.Y("border:Q", scale=height, title="γ b"), y2="top:Q"
    )
    fails = base.mark_area(color="#e15759", opacity=0.35).encode(over, y=alt.Y("low:Q", scale=height), y2="border:Q")
    texts = pl.DataFrame(
        {"T": [40, 40], "at": [4.6, 1.9], "text": ["many vanish less often", "many vanish more often"]}
    )
    labels = alt.Chart(texts).mark_text().encode(over, y=alt.Y("at:Q", scale=height), text="text:N")
    limit = alt.Chart(pl.DataFrame({"e": [float(np.e)]})).mark_rule(strokeDash=[4, 4]).encode(y="e:Q")
    right = (holds + fails + limit + labels).properties(
        width=280, height=240, title="where the statement holds; dashed: e"
    )
    return left | right


EXPERIMENT = Experiment(
    id="nsm-theorem-2",
    source="stored programs, Theorem 2",
    shows="chance of critical vanishing with one program and with T independent ones, and where many beat one",
    published="many programs vanish less often than one for small 1/gamma^T (asymptotic)",
    presets={
        "smoke": _preset((2, 10), 2_000, 1, "2 s", "2 values of T, 2,000 samples"),
        "laptop": _preset(
            (2, 5, 10, 50, 200),
            100_000,
            3,
            "30 s",
            "no numbers were published; both chances depend on gamma b and T alone, and the statement holds exactly "
            "for gamma b above a value that falls from 3.51 at T = 2 to e: below it, down to 1, many vanish more often",
        ),
        "paper": _preset((2, 5, 10, 50, 200), 100_000, 1, "10 s", "one seed"),
    },
    table=table,
    draw=draw,
)
