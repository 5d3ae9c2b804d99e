"""The tables of cells and tasks, as rows for people, scripts and the README."""

import inspect
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import equinox as eqx
import jax

from ..cells import CELLS, count_parameters, make_cell, time_varying
from ..data import available
from ..experiments import EXPERIMENTS, Preset, get_experiment
from ..experiments._estimate import Cost, Costs, as_time
from ..lens.trace import named_arrays
from ..model import Model
from ..tasks import TASKS, make_task

# The sizes of the thesis's copying task, at which it compares cells of about 23.5k parameters.
REFERENCE_INPUTS, REFERENCE_OUTPUTS = 10, 9


def cell_rows() -> list[dict[str, Any]]:
    """A row for each registered cell."""
    rows = []
    for entry in CELLS.values():
        model = eqx.filter_eval_shape(
            lambda key, name=entry.name: Model(
                make_cell(name, REFERENCE_INPUTS, horizon=100, key=key), REFERENCE_OUTPUTS, key=key
            ),
            jax.random.key(0),
        )
        state = eqx.filter_eval_shape(lambda m: m.cell.init_state(), model)
        parts = [f"{name}[{'x'.join(map(str, leaf.shape))}]" for name, leaf in named_arrays(state).items()]
        rows.append(
            {
                "name": entry.name,
                "family": entry.family,
                "paper": entry.paper,
                "state": " ".join(parts),
                "parameters": count_parameters(model),
                "file": _source(entry.cell),
                "time-varying": time_varying(model.cell),
                "time-varying per parameter": time_varying(model.cell) / count_parameters(model),
            }
        )
    return rows


def task_rows() -> list[dict[str, Any]]:
    """A row for each registered task, at its default options."""
    rows = []
    for name, cls in TASKS.items():
        if cls.needs is None or available(cls.needs):
            task = make_task(name)
            chance, perfect = _scores(task.chance), _scores(task.perfect)
        else:
            chance = perfect = f"needs data: mnemon data list {cls.needs}"
        rows.append(
            {
                "name": name,
                "measures": cls.measures,
                "chance": chance,
                "perfect": perfect,
                "file": _source(cls),
            }
        )
    return rows


def experiment_rows(results: Path, ids: Sequence[str] = ()) -> list[dict[str, Any]]:
    """A row for each experiment, or for those named."""
    rows, costs = [], Costs(results)
    for experiment in map(get_experiment, ids or EXPERIMENTS):
        stored = {name: _stored(results / experiment.id / f"{name}.json") for name in experiment.presets}
        presets = experiment.presets.items()
        rows.append(
            {
                "id": experiment.id,
                "source": experiment.source,
                "shows": experiment.shows,
                "published": experiment.published,
                "presets": "; ".join(
                    _preset(name, preset, stored[name], costs.of(experiment.id, name)) for name, preset in presets
                ),
                "results": "; ".join(
                    f"{name}: {len(stored[name])} of {len(preset.arms) * preset.seeds} runs"
                    for name, preset in presets
                    if stored[name]
                )
                or "none",
            }
        )
    return rows


def _stored(path: Path) -> list[dict[str, Any]]:
    """The results of all runs that have one."""
    arms = json.loads(path.read_text())["arms"] if path.exists() else {}
    return [result for arm in arms.values() for result in arm["seeds"].values()]


def _preset(name: str, preset: Preset, results: list[dict[str, Any]], cost: Cost) -> str:
    """A preset with its size, and its cost: as stated, as the stored results say, as estimated."""
    seconds = [result["seconds"] for result in results if "seconds" in result]
    taken = f"the {len(seconds)} here took {as_time(sum(seconds))} in all" if seconds else ""
    whom = "all" if cost.known == cost.arms else f"{cost.known} of {cost.arms} arms"
    about = f"about {as_time(cost.seconds)} for {whom}" if cost.known else ""
    costs = [preset.cost] if preset.cost else list(filter(None, [taken, about])) or ["cost not measured"]
    return ", ".join([f"{name}: {len(preset.arms)} x {preset.seeds} runs", *costs])


def _scores(scores: dict[str, float]) -> str:
    return " ".join(f"{name} {value:.4g}" for name, value in scores.items())


def _source(cls: type) -> str:
    package = Path(__file__).parent.parent
    return str(Path(inspect.getsourcefile(cls) or "").relative_to(package.parent))
