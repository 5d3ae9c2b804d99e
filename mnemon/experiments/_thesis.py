"""The ten networks of chapter 4 of the thesis, and how it trains them."""

from typing import Any

from ..training.runs import RunConfig
from ._contract import Arm, Training

CELLS = ("rnn-orth", "rnn-id", "lstm", "lstm-chrono", "gru", "janet", "sru", "eurnn", "goru", "nru")
# Their transitions do not expand norms, so the thesis does not clip their gradients.
_UNCLIPPED = ("eurnn", "goru")


def clip(cell: str) -> float | None:
    """The largest norm of the gradient."""
    return None if cell in _UNCLIPPED else 1.0


def recall_arms(
    task: str,
    delays: dict[int, int],
    cells: tuple[str, ...],
    published: dict[str, str],
    shares: dict[str, float] | None = None,
    **changes: Any,
) -> tuple[Arm, ...]:
    """Networks of about 23.5k parameters on copying or denoising, for the updates given for each delay.

    A run ends when the task counts as solved. Cells that are named in `shares` get that part of the updates. A name
    `CELL-amsgrad` stands for the cell with that optimiser and the `changes`, as in some of the authors' own
    configurations.
    """
    arms = []
    for delay, steps in delays.items():
        for name in cells:
            cell = name.removesuffix("-amsgrad")
            settings: dict[str, Any] = {"clip": clip(cell)}
            if name != cell:
                settings = {"optimizer": "amsgrad", "clip": 1.0, **changes}
            settings |= {"log_every": min(100, steps // 4), "stop_when_solved": True}
            updates = round(steps * (shares or {}).get(name, 1.0))
            config = RunConfig(task, cell, {"delay": delay}, steps=updates, **settings)
            group = f"{task}-{delay}"
            arms.append(Arm(f"{group}-{name}", Training(config), published[name], group=group))
    return tuple(arms)


def nru(hidden_size: int, memory_size: int, heads: int = 4, relu_heads: bool = False) -> dict[str, Any]:
    """The options of an NRU."""
    return {"hidden_size": hidden_size, "memory_size": memory_size, "heads": heads, "relu_heads": relu_heads}


def sru(hidden_size: int, statistics_size: int, recurrent_size: int) -> dict[str, Any]:
    """The options of an SRU."""
    return {"hidden_size": hidden_size, "statistics_size": statistics_size, "recurrent_size": recurrent_size}


def sized(**sizes: int | dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Options by cell from hidden sizes, or options; `_` stands for the `-` of a name."""
    return {
        name.replace("_", "-"): {"hidden_size": size} if isinstance(size, int) else size for name, size in sizes.items()
    }
