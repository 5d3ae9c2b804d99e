"""Results with their provenance, and the table and picture made from them."""

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import equinox as eqx

from .._errors import MnemonError
from .._files import write_atomically
from .._provenance import provenance
from ..cells import count_parameters
from ._contract import Arm, Experiment, Training


def write_results(experiment: Experiment, preset: str, runs: Path, results: Path) -> Path:
    """Collect all finished jobs in `results/ID/PRESET.json`.

    What the file holds of runs that are no longer here stays, unless they had other settings; runs that another
    experiment lends are also taken from its results.
    """
    from ._runner import RESULT_FILE, job_folder

    grid = experiment.presets[preset]
    path = results / experiment.id / f"{preset}.json"
    before = stored_seeds(grid.arms, experiment.id, preset, results)
    arms = {}
    for arm in grid.arms:
        done = dict(before[arm.name])
        any_seed = job_folder(runs, experiment.id, preset, arm, 0)
        for found in any_seed.parent.glob(f"{arm.name}-seed*-{arm.settings}/{RESULT_FILE}"):
            seed = found.parent.name.removeprefix(f"{arm.name}-seed").removesuffix(f"-{arm.settings}")
            done[seed] = json.loads(found.read_text())
        done = dict(sorted(done.items(), key=lambda item: int(item[0])))
        about: dict[str, Any] = {
            "settings": arm.settings,
            "published": arm.published,
            "numbers": dict(arm.numbers),
            "group": arm.group,
            "seeds": done,
        }
        if done and isinstance(arm.job, Training):
            config = arm.job.config
            about["parameters"] = count_parameters(eqx.filter_eval_shape(config.make_model))
            about["baseline"] = config.make_task().chance["loss"]
        if arm.beside is not None:
            about["beside"] = arm.beside
        arms[arm.name] = about
    if path.exists():  # cells that an earlier command has put beside those of the experiment
        stored = json.loads(path.read_text())["arms"]
        arms |= {name: about for name, about in stored.items() if "beside" in about and name not in arms}
    content = {
        "id": experiment.id,
        "source": experiment.source,
        "shows": experiment.shows,
        "published": experiment.published,
        "preset": preset,
        "note": grid.note,
        "curves": list(experiment.curves),
        "provenance": provenance(),
        "arms": arms,
    }
    write_atomically(path, json.dumps(content, indent=1) + "\n")
    return path


def stored_seeds(
    arms: Sequence[Arm], experiment: str, preset: str, results: Path
) -> dict[str, dict[str, dict[str, Any]]]:
    """What the results have of each arm by seed, be it of runs that another experiment lends.

    Runs that were made with other settings than those of the arm are left out.
    """
    files: dict[str, dict[str, Any]] = {}
    for owner in {experiment, *(arm.home for arm in arms if arm.home)}:
        path = results / owner / f"{preset}.json"
        files[owner] = json.loads(path.read_text())["arms"] if path.exists() else {}
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for arm in arms:
        shown = [files[owner].get(arm.name, {}) for owner in (experiment, arm.home or experiment)]
        found[arm.name] = {
            seed: result
            for about in shown
            if about.get("settings") == arm.settings
            for seed, result in about["seeds"].items()
        }
    return found


def read_results(results: Path, experiment: str) -> dict[str, dict[str, Any]]:
    """The stored results of an experiment by preset."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted((results / experiment).glob("*.json"))}
    if not found:
        raise MnemonError(
            f"{results / experiment} holds no results; make them with `mnemon reproduce {experiment} --preset smoke`"
        )
    return found


def result_rows(content: dict[str, Any]) -> list[dict[str, Any]]:
    """One row for each arm of a result: measured beside published, with the spread over seeds."""
    rows = []
    # Every row has the columns of all.
    arms = content["arms"]
    scores = dict.fromkeys(s for arm in arms.values() for r in arm["seeds"].values() for s in r.get("scores", {}))
    known = {score for arm in arms.values() for score in arm.get("numbers", {})}
    any_lessons = any("lesson" in r.get("last", {}) for arm in arms.values() for r in arm["seeds"].values())
    any_diverged = any("diverged" in r for arm in arms.values() for r in arm["seeds"].values())
    for name, arm in arms.items():
        done = list(arm["seeds"].values())
        numbers = arm.get("numbers", {})
        steps = [result["steps_to_solve"] for result in done if result.get("solved")]
        losses = [result["last"]["loss"] for result in done if result.get("last")]
        rows.append(
            {
                "arm": name,
                "parameters": arm.get("parameters", 0),
                "seeds": len(done),
                "solved": f"{len(steps)}/{len(done)}",
                **({"diverged": _diverged(done)} if any_diverged else {}),
                **({"in lesson (median, range)": _lessons(done)} if any_lessons else {}),
                "updates to solve (median, range)": _spread([float(step) for step in steps], "{:,.0f}"),
                "last loss (median, range)": _spread(losses, "{:.4f}"),
                **{
                    column: value
                    for score in scores
                    for column, value in (
                        (score, _spread([r["scores"][score] for r in done if score in r.get("scores", {})], "{:.4g}")),
                        (f"{score}, published", f"{numbers[score]:g}" if score in numbers else "–"),
                    )
                    if column in scores or score in known
                },
                "without a memory": f"{arm['baseline']:.4f}" if "baseline" in arm else "–",
                "updates": f"{max((result['updates'] for result in done), default=0):,}",
                "published": arm["published"],
            }
        )
    return rows


def _lessons(done: list[dict[str, Any]]) -> str:
    """The lesson that the last record is of."""
    return _spread([result["last"]["lesson"] for result in done if "lesson" in result.get("last", {})], "{:.0f}")


def _diverged(done: list[dict[str, Any]]) -> str:
    at = ", ".join(f"{result['diverged']:,}" for result in done if "diverged" in result)
    return f"at update {at}" if at else "no"


def _spread(values: list[float], form: str) -> str:
    """Median and range."""
    if not values:
        return "–"
    middle = form.format(statistics.median(values))
    if len(values) == 1:
        return middle
    return f"{middle} [{form.format(min(values))}, {form.format(max(values))}]"
