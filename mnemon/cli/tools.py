"""`mnemon data | bench | lens | lifelong`: what has a package of its own."""

from ._output import ERR, print_table


def data(arguments: list[str]) -> None:
    """Real data: `mnemon data list`, `mnemon data get NAME`, `mnemon data check`."""
    from ..data.command import data as run

    run(arguments, print_table)


def bench(arguments: list[str]) -> None:
    """Time and memory: `mnemon bench [CELL ...] [--against torch]`, `mnemon bench gem`, `mnemon bench curves`."""
    from ..bench.command import bench as run

    run(arguments, print_table)


def lens(arguments: list[str]) -> None:
    """Look inside: `mnemon lens jacobian RUN`, `lens trace RUN`, `lens paths`, `lens programs`."""
    from ..lens.command import lens as run

    run(arguments, print_table, ERR)


def lifelong(arguments: list[str]) -> None:
    """Learn level after level: `mnemon lifelong DISTRIBUTION ENTRY [--levels N] [--updates N] [--resume]`."""
    from ..lifelong.command import lifelong as run

    run(arguments, print_table, ERR)
