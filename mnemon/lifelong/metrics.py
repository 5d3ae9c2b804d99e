"""How well tasks are learned one after the other, from the accuracy matrix R.

R[i, j] is the accuracy on task j after training on task i, for all tasks of the benchmark: entries left of the diagonal
tell what is left of earlier tasks, those right of it what is known of later ones.
"""

import numpy as np
from jaxtyping import Float

from .._errors import require

Matrix = Float[np.ndarray, "trained evaluated"]


def average_accuracy(matrix: Matrix) -> float:
    """ACC: mean accuracy on the trained tasks after the last of them.

    >>> average_accuracy(np.array([[0.9, 0.1], [0.7, 0.8]]))
    0.75
    """
    matrix = _checked(matrix)
    return float(np.mean(matrix[-1, : len(matrix)]))


def backward_transfer(matrix: Matrix) -> float:
    """BWT: what later training did to each task but the last; forgetting is negative. 0 for a single task.

    The mean is over T - 1 tasks, as in the paper of GEM (its code divides by T).

    >>> round(backward_transfer(np.array([[0.9, 0.1], [0.7, 0.8]])), 6)
    -0.2
    """
    matrix = _checked(matrix)
    tasks = len(matrix)
    changes = matrix[-1, :tasks] - np.diagonal(matrix)
    return float(np.mean(changes[:-1])) if tasks > 1 else 0.0


def forward_transfer(matrix: Matrix, untrained: Float[np.ndarray, " tasks"]) -> float:
    """FWT: the lead over an untrained network that each task but the first starts with. 0 for a single task.

    `untrained` is the accuracy of the initial network on each task.

    >>> round(forward_transfer(np.array([[0.9, 0.6], [0.7, 0.8]]), np.array([0.5, 0.5])), 6)
    0.1
    """
    matrix = _checked(matrix)
    tasks = len(matrix)
    require(
        len(untrained) == matrix.shape[1],
        "untrained.shape",
        np.shape(untrained),
        f"one accuracy for each of {matrix.shape[1]} tasks",
        f"np.full({matrix.shape[1]}, 0.5)",
    )
    before = np.diagonal(matrix, 1)[: tasks - 1]
    return float(np.mean(before - np.asarray(untrained)[1:tasks])) if tasks > 1 else 0.0


def current_accuracy(matrix: Matrix) -> Float[np.ndarray, " trained"]:
    """Current task accuracy (thesis 5.3.4): on each task right after training on it."""
    return np.diagonal(_checked(matrix)).copy()


def previous_accuracy(matrix: Matrix) -> Float[np.ndarray, " trained"]:
    """Per-task previous accuracy: after each task the mean over the tasks before it, NaN for the first.

    The last entry is the thesis's previous task accuracy, that of the final network.

    >>> previous_accuracy(np.array([[0.9, 0.1], [0.7, 0.8]]))
    array([nan, 0.7])
    """
    return np.array([_mean(row[:task]) for task, row in enumerate(_checked(matrix))])


def future_accuracy(matrix: Matrix) -> Float[np.ndarray, " trained"]:
    """Per-task future accuracy: after each task the mean over all tasks after it, NaN if there is none.

    The last entry is the thesis's future task accuracy, that of the final network.

    >>> future_accuracy(np.array([[0.9, 0.1, 0.3], [0.7, 0.8, 0.4]]))
    array([0.2, 0.4])
    """
    return np.array([_mean(row[task + 1 :]) for task, row in enumerate(_checked(matrix))])


def levels_cleared(matrix: Matrix, threshold: float) -> int:
    """How many tasks in a row, from the first, were learned to the threshold."""
    passed = current_accuracy(matrix) >= threshold
    return int(np.argmin(np.append(passed, False)))


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values)) if values.size else float("nan")


def _checked(matrix: Matrix) -> Matrix:
    shape = np.shape(matrix)
    require(
        len(shape) == 2 and 1 <= shape[0] <= shape[1],
        "matrix.shape",
        shape,
        "a row for each trained task and a column for each task of the benchmark",
        "np.zeros((5, 20))",
    )
    return matrix
