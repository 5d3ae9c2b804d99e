"""The tables of cells and tasks, as rows for people, scripts and the README."""

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import equinox as eqx
import jax

from ..cells import CELLS, count_parameters, make_cell
from ..data import available
from ..experiments import EXPERIMENTS, Preset
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


def experiment_rows(results: Path) -> list[dict[str, Any]]:
    """A row for each experiment."""
    return [
        {
            "id": experiment.id,
            "source": experiment.source,
            "shows": experiment.shows,
            "published": experiment.published,
            "presets": "; ".join(_preset(name, preset, results / experiment.id) for name, preset in presets),
            "results": "; ".join(
                _state(path, dict(presets)) for path in sorted((results / experiment.id).glob("*.json"))
            )
            or "none",
        }
        for experiment in EXPERIMENTS.values()
        for presets in [list(experiment.presets.items())]
    ]


def _preset(name: str, preset: Preset, results: Path) -> str:
    """A preset with its size, and its cost where that was measured: as stated, or as the stored results say."""
    path, cost = results / f"{name}.json", preset.cost
    if cost is None and path.exists():
        seeds = [result for arm in _arms(path).values() for result in arm["seeds"].values()]
        seconds = [result["seconds"] for result in seeds if "seconds" in result]
        cost = f"{sum(seconds) / 60:.0f} min of one core for the {len(seconds)} runs here" if seconds else None
    runs = f"{len(preset.arms)} x {preset.seeds} runs"
    return f"{name}: {runs}" + (f", {cost}" if cost else "")


def _state(path: Path, presets: Mapping[str, Preset]) -> str:
    """How much of a preset has results."""
    preset = presets[path.stem]
    done = sum(len(arm["seeds"]) for arm in _arms(path).values())
    return f"{path.stem}: {done} of {len(preset.arms) * preset.seeds}"


def _arms(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())["arms"]


def _scores(scores: dict[str, float]) -> str:
    return " ".join(f"{name} {value:.4g}" for name, value in scores.items())


def _source(cls: type) -> str:
    package = Path(__file__).parent.parent
    return str(Path(inspect.getsourcefile(cls) or "").relative_to(package.parent))
