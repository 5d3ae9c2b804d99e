"""Other cells beside those of a table: a new one among its baselines."""

import dataclasses
from collections.abc import Sequence

import equinox as eqx

from .._elsewhere import plain_name
from .._errors import BadValue, require
from ..cells import count_parameters
from ..training.runs import RunConfig
from ._contract import Arm, Experiment, Training


def with_cells(experiment: Experiment, preset: str, cells: Sequence[str], like: str) -> tuple[Experiment, list[str]]:
    """The experiment with cells added to a preset, and the names of the arms that they are.

    In each panel a cell is trained as the network `like` is, with as many parameters, and has no published numbers.
    """
    if experiment.table is not None or experiment.draw is not None:
        raise BadValue(
            f"{experiment.id} has a table or a figure of its own, which has no room for another cell; "
            "others have, e.g. `mnemon reproduce th-fig-4.1 --beside nutm`"
        )
    grid = experiment.presets[preset]
    trainings = [(arm, arm.job) for arm in grid.arms if isinstance(arm.job, Training)]
    labels = list(dict.fromkeys(arm.label for arm, _ in trainings))
    require(like in labels, "like", like, f"one of {', '.join(labels)}", f"--like {labels[0]}")
    added = [_added(arm, training, cell) for cell in cells for arm, training in trainings if arm.label == like]
    names = [arm.name for arm in (*grid.arms, *added)]
    twice = sorted({name for name in names if names.count(name) > 1})
    require(not twice, "beside", ", ".join(twice), "cells whose names the table does not have, each once", "nutm")
    presets = {**experiment.presets, preset: dataclasses.replace(grid, arms=(*grid.arms, *added))}
    return dataclasses.replace(experiment, presets=presets), [arm.name for arm in added]


def _added(arm: Arm, training: Training, cell: str) -> Arm:
    # What was chosen for the other cell does not concern this one.
    config = dataclasses.replace(training.config, cell=cell, cell_options={}, lesson_options=(), objective=None)
    scores = {name: dataclasses.replace(score, cell_options={}) for name, score in training.scores.items()}
    job = Training(config.with_budget(_parameters(training.config)), scores)
    name = arm.name.removesuffix(arm.label) + plain_name(cell)
    return dataclasses.replace(arm, name=name, job=job, published="–", numbers={}, beside=cell)


def _parameters(config: RunConfig) -> int:
    """Those that a budget counts: of the cell, and of what reads it out."""
    cell = eqx.filter_eval_shape(config.make_model).cell
    return count_parameters(cell) + (cell.output_size + 1) * config.make_task().output_size
