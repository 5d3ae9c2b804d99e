"""The runs that the figures of thesis chapter 5 share: five networks on three distributions."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from ..lifelong.benchmark import LifelongConfig, run_lifelong
from ..lifelong.distributions import distribution
from ..lifelong.entries import ENTRIES
from ..lifelong.levels import Watch
from ..training import fit, make_optimizer
from ._contract import Arm, Preset, settings_of, short_name, time_training

RUNS = "th-fig-5.2"  # where the runs are
FIGURE_DISTRIBUTIONS = ("copy", "associative-recall", "stroke-mnist")
SMOKE = (("copy", "small-lstm-gem-net2net"), ("copy", "large-lstm"), ("stroke-mnist", "small-lstm"))


@dataclasses.dataclass(frozen=True)
class Lifelong:
    """A run of the lifelong benchmark. Its result has all metrics of the run."""

    config: LifelongConfig

    def run(self, seed: int, folder: Path) -> dict[str, Any]:
        config = dataclasses.replace(self.config, seed=seed)
        result = run_lifelong(config, folder, resume=True, watch=Watch(report=lambda message: None))
        return {name: value for name, value in result.items() if name != "provenance"}

    def pace(self) -> str:
        return short_name(settings_of(dataclasses.replace(self.config, seed=0)))

    @property
    def updates(self) -> int:
        """If every level is passed, without growing."""
        return self.config.levels * self.config.updates

    def time_updates(self, folder: Path) -> tuple[float, float]:
        """Means over levels, by Simpson's rule from the first, a middle and the last: both the length of an episode and
        the number of tasks in the memory grow with the level. Without the examinations after each level."""
        del folder
        count = self.config.levels
        timed = [self._time_level(level) for level in (1, (1 + count) // 2, count)]
        begin, update = ((first + 4 * middle + last) / 6 for first, middle, last in zip(*timed, strict=True))
        return count * begin, update

    def _time_level(self, level: int) -> tuple[float, float]:
        """Of training on a level with examples of all levels before it in the memory."""
        config, found = self.config, distribution(self.config.distribution)
        model, objective, key = config.make_model(), config.make_objective(), jax.random.key(0)
        for earlier in map(found.task, range(1, level)):
            episodes = earlier.batch(key, jnp.asarray(0), config.batch)
            carry = _carry_of_one_update(objective, model, earlier, episodes, config.batch, key)
            objective = objective.after_task(model, earlier, carry, key=key)
        return time_training(
            lambda watch: fit(
                model,
                found.task(level),
                updates=config.updates,
                batch=config.batch,
                optimizer=make_optimizer("adam", config.lr, config.clip),
                objective=objective,
                log_every=config.window,
                on_progress=watch,
            )
        )


@eqx.filter_jit
def _carry_of_one_update(objective, model, task, episodes, batch: int, key) -> Any:
    """Compiled, since what is not needed for it, as the network, is then not run."""
    return objective(model, task, episodes, objective.init_carry(model, task, batch), key=key)[1].carry


def presets(entries: Sequence[str], where: Sequence[str], published: str) -> dict[str, Preset]:
    """The three presets of a figure that shows these entries on these distributions."""
    tiny: dict[str, Any] = {"levels": 2, "updates": 20, "window": 10, "episodes": 20, "threshold": 0.0}
    smoke = [
        _arm(place, name, published, **tiny, cell_options={"hidden_size": 6}, sizes=(9,) if "net2net" in name else ())
        for place, name in SMOKE
        if place in where and name in entries
    ]
    laptop = [
        _arm(place, name, published, seeds=3 if place == "copy" else 1, levels=levels, updates=1500)
        for place, levels in (("copy", 6), ("associative-recall", 3), ("stroke-mnist", 3))
        if place in where
        for name in entries
    ]
    # What two cores can do of the published runs.
    laptop += [
        _arm("copy", name, published, group="copy-10000-updates", seeds=1, levels=4)
        for name in ("small-lstm-gem-net2net", "large-lstm-gem")
        if "copy" in where and name in entries
    ]
    paper = [_arm(place, name, published) for place in where for name in entries]
    return {
        "smoke": Preset(
            tuple(smoke),
            1,
            None,
            "6 units, 2 levels of 20 updates that all pass: shows only that it runs",
        ),
        "laptop": Preset(
            tuple(laptop),
            3,
            None,
            "1,500 updates a level for 10,000 and 3,000 after growing for 20,000; 6 levels of copy (5 to 20 rows) for "
            "20, 3 seeds; 3 levels of associative recall (5 to 11 items) and of stroke MNIST (1 to 3 digits), 1 seed; "
            "with the published updates the first 4 levels of copy of the two networks with GEM that clear the most",
        ),
        "paper": Preset(tuple(paper), 1, None, "as published; the margin of GEM, 0.5, is that of its paper"),
    }


def _arm(
    where: str, name: str, published: str, group: str | None = None, seeds: int | None = None, **changes: Any
) -> Arm:
    group = where if group is None else group
    return Arm(
        f"{group}-{name}",
        Lifelong(LifelongConfig.enter(where, name, **changes)),
        published,
        group=group,
        home=RUNS,
        seeds=seeds,
    )


def results(content: dict[str, Any]) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """Distribution, entry, seed and result of each run."""
    for name, arm in content["arms"].items():
        for seed, result in arm["seeds"].items():
            yield arm["group"], name.removeprefix(f"{arm['group']}-"), seed, result


def table(content: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each run: all scores that are single numbers."""
    return [
        {
            "distribution": where,
            "entry": entry,
            "seed": seed,
            "levels cleared": f"{result['cleared']} of {len(result['lengths'])}",
            "grew at level": ", ".join(result["expanded"]) or "–",
            "previous": _number(result["previous"]),
            "future": _number(result["future"]),
            **{score: _number(result[score]) for score in ("ACC", "BWT", "FWT")},
            "parameters": result["parameters"]["last"],
            "published": content["arms"][f"{where}-{entry}"]["published"],
        }
        for where, entry, seed, result in results(content)
    ]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def bars(content: dict[str, Any], metric: str, title: str) -> Any:
    """A bar for each entry, a panel for each distribution: the mean over seeds, and a point for each seed."""
    import altair as alt
    import polars as pl

    rows = [
        {"distribution": where, "entry": entry, "seed": seed, "accuracy": result[metric]}
        for where, entry, seed, result in results(content)
    ]
    data = pl.DataFrame(rows, schema={"distribution": str, "entry": str, "seed": str, "accuracy": float})
    order = [name for name in ENTRIES if name in set(data["entry"])]
    x = alt.X("entry:N", title=None, sort=order, axis=alt.Axis(labelAngle=-40))
    scale = alt.Scale(domain=[0, 1])
    panels = []
    for place in data["distribution"].unique(maintain_order=True):
        base = alt.Chart(data.filter(pl.col("distribution") == place))
        bar = base.mark_bar(opacity=0.6).encode(x, y=alt.Y("mean(accuracy):Q", title=title, scale=scale))
        points = base.mark_point(color="black", size=18).encode(x, y=alt.Y("accuracy:Q", scale=scale))
        panels.append((bar + points).properties(width=200, height=200, title=place))
    return alt.hconcat(*panels)


FIVE = tuple(ENTRIES)
