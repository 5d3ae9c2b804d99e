"""Every experiment by id. A new experiment is one file and one entry here."""

from .._errors import unknown
from . import (
    babi_joint,
    copy_lengths,
    dnc_inference,
    dnc_shortest_path,
    dnc_traversal,
    fwr_table,
    gem_cost,
    gfw_fig_2,
    gfw_gate,
    gfw_table_1,
    gfw_table_2,
    jacobian_decay,
    lr_window,
    nsm_table_1,
    nsm_theorem_2,
    th_fig_3_3,
    th_fig_3_5,
    th_fig_4_1,
    th_fig_4_2,
    th_fig_4_3,
    th_fig_4_4,
    th_fig_4_5,
    th_fig_4_6,
    th_fig_4_7,
    th_fig_4_8,
    th_fig_5_1,
    th_fig_5_2,
    th_fig_5_3,
    th_fig_5_4,
    th_fig_5_5,
    th_forgetting,
    th_stability,
    th_table_3_1,
    th_table_3_2,
    th_table_3_3,
    th_table_3_4,
    th_table_4_1,
    th_table_4_2,
    th_table_4_3,
)
from ._contract import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.id: module.EXPERIMENT
    for module in (
        th_table_3_1,
        th_table_3_2,
        th_table_3_3,
        th_table_3_4,
        th_fig_3_3,
        th_fig_3_5,
        th_table_4_1,
        th_table_4_2,
        th_table_4_3,
        th_fig_4_1,
        th_fig_4_2,
        th_fig_4_3,
        th_fig_4_4,
        th_fig_4_5,
        th_fig_4_6,
        th_fig_4_7,
        th_fig_4_8,
        th_stability,
        th_forgetting,
        th_fig_5_1,
        th_fig_5_2,
        th_fig_5_3,
        th_fig_5_4,
        th_fig_5_5,
        gem_cost,
        dnc_traversal,
        dnc_shortest_path,
        dnc_inference,
        babi_joint,
        nsm_table_1,
        nsm_theorem_2,
        fwr_table,
        gfw_table_1,
        copy_lengths,
        gfw_fig_2,
        gfw_table_2,
        gfw_gate,
        jacobian_decay,
        lr_window,
    )
}


def get_experiment(name: str) -> Experiment:
    """The experiment of an id."""
    if name not in EXPERIMENTS:
        raise unknown("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]
