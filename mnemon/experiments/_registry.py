"""Every experiment by id. A new experiment is one file and one entry here."""

from .._errors import unknown
from . import (
    copy_lengths,
    fwr_table,
    gfw_table_1,
    jacobian_decay,
    nsm_theorem_2,
    th_fig_3_3,
    th_fig_3_5,
    th_fig_4_1,
    th_fig_4_2,
    th_fig_4_7,
    th_forgetting,
    th_stability,
    th_table_3_3,
)
from ._contract import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.id: module.EXPERIMENT
    for module in (
        th_fig_3_3,
        th_fig_3_5,
        th_fig_4_1,
        th_fig_4_2,
        th_fig_4_7,
        th_stability,
        th_forgetting,
        nsm_theorem_2,
        jacobian_decay,
        fwr_table,
        gfw_table_1,
        th_table_3_3,
        copy_lengths,
    )
}


def get_experiment(name: str) -> Experiment:
    """The experiment of an id."""
    if name not in EXPERIMENTS:
        raise unknown("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]
