"""Every experiment by id. A new experiment is one file and one entry here."""

from .._errors import unknown
from . import th_fig_4_1
from ._contract import Experiment

EXPERIMENTS: dict[str, Experiment] = {experiment.id: experiment for experiment in [th_fig_4_1.EXPERIMENT]}


def get_experiment(name: str) -> Experiment:
    """The experiment of an id."""
    if name not in EXPERIMENTS:
        raise unknown("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]
