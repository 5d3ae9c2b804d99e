"""`mnemon cells | tasks`."""

import tyro

from ._output import Listing, print_table


def cells(arguments: list[str]) -> None:
    """The cells: name, family, paper, state, parameters at their reference sizes, file."""
    options = tyro.cli(Listing, prog="mnemon cells", description=cells.__doc__, args=arguments)
    from ..report.listings import cell_rows

    print_table(cell_rows(), options.json, "Cells (parameters with 10 inputs and 9 outputs, readout included)")


def tasks(arguments: list[str]) -> None:
    """The tasks: name, what it measures, chance, perfect."""
    options = tyro.cli(Listing, prog="mnemon tasks", description=tasks.__doc__, args=arguments)
    from ..report.listings import task_rows

    print_table(task_rows(), options.json, "Tasks (at their default options)")
