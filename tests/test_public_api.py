"""The public surface is small and pinned: a change here is a change for users."""

import inspect

import mnemon

PUBLIC = {
    "AbstractCell",
    "AbstractTask",
    "CELLS",
    "Copying",
    "Denoising",
    "Model",
    "Plan",
    "Stack",
    "TASKS",
    "Unrolled",
    "VariableCopying",
    "__version__",
    "choose_plan",
    "count_parameters",
    "evaluate",
    "fit",
    "fit_size",
    "make_cell",
    "make_model",
    "make_optimizer",
    "make_task",
    "unroll",
    "use_cores",
}


def test_public_names():
    names = {name for name in vars(mnemon) if not name.startswith("_") or name == "__version__"}
    modules = {name for name in names if inspect.ismodule(getattr(mnemon, name))}
    assert names - modules == PUBLIC


def test_every_public_name_is_documented():
    for name in PUBLIC - {"__version__", "CELLS", "TASKS"}:
        assert getattr(mnemon, name).__doc__, name
