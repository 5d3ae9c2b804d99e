"""`mnemon cells | tasks`."""

import dataclasses
import json

import tyro

from ._output import OUT, Listing, print_table


def cells(arguments: list[str]) -> None:
    """The cells: name, family, paper, state, parameters at their reference sizes, file."""
    options = tyro.cli(Listing, prog="mnemon cells", description=cells.__doc__, args=arguments)
    from ..report.listings import cell_rows

    print_table(cell_rows(), options.json, "Cells (parameters with 10 inputs and 9 outputs, readout included)")


def tasks(arguments: list[str]) -> None:
    """The tasks: name, what it measures, chance, perfect; `mnemon tasks TASK [options]` shows episodes of one."""
    if arguments and not arguments[0].startswith("-"):
        _show_episodes(arguments[0], arguments[1:])
        return
    options = tyro.cli(Listing, prog="mnemon tasks", description=tasks.__doc__, args=arguments)
    from ..report.listings import task_rows

    print_table(task_rows(), options.json, "Tasks (at their default options)")


@dataclasses.dataclass(kw_only=True)
class _Episodes:
    """Options of episodes that are shown; those of the task are added to them."""

    episodes: int = 1
    """How many."""
    seed: int = 0
    """Seed of the episodes."""
    json: bool = False
    """Print JSON."""


def _show_episodes(name: str, arguments: list[str]) -> None:
    """Episodes of a task as a person would read them, with its scores at these options."""
    import jax

    from .._errors import require
    from .._options import changed_options, option_fields, parse_options
    from ..tasks import make_task, task_class, task_options

    parameters, cls = task_options(name), task_class(name)
    description = f"Episodes of {name}: {cls.measures}."
    fields = option_fields(cls, parameters)
    options = parse_options(f"mnemon tasks {name}", description, _Episodes, fields, arguments)
    require(options.episodes >= 1, "episodes", options.episodes, "at least one", "--episodes 3")
    task = make_task(name, **changed_options(options, parameters))
    keys = jax.random.split(jax.random.key(options.seed), options.episodes)
    shown = [task.show(task.sample(key)) for key in keys]
    if options.json:
        print(json.dumps({"task": name, "chance": task.chance, "perfect": task.perfect, "episodes": shown}))
        return
    OUT.print("\n\n".join(shown), markup=False, highlight=False, soft_wrap=True)
    scores = [
        {"metric": metric, "without a memory": value, "perfect": task.perfect.get(metric, float("nan"))}
        for metric, value in task.chance.items()
    ]
    print_table(scores, False, f"\n{name}: {cls.measures}; at most {task.horizon:,} steps from cause to effect")
