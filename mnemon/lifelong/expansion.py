"""Networks that grow without forgetting: Net2Wider (Chen et al. 2016) for recurrent networks."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from .._errors import require
from ..cells import AbstractCell, trained
from ..model import Model
from ..tasks import Episode
from ._axes import sizes_of, walk, words_of

# Which power of the gradient the named parts of the states of Optax's optimisers are means or sums of.
_POWERS = {"mu": 1, "trace": 1, "momentum": 1, "nu": 2, "nu_max": 2, "sum_of_squares": 2}


class Widening(NamedTuple):
    """Which old unit each new unit repeats."""

    size: str  # the letter of the size that grows, see `AbstractCell.axes`
    origin: Int[np.ndarray, " wide"]  # g(j)


def widen(
    model: Model, hidden_size: int, *, size: str = "h", noise: float = 1.0, key: PRNGKeyArray
) -> tuple[Model, Widening]:
    r"""Net2Wider: a wider network with the same outputs for every sequence.

    New unit j repeats the old unit g(j): itself for the old ones, a random one for the others. What leads to a unit is
    copied; what leads away from it is divided among the \(n_{g(j)}\) copies, plus noise that adds up to zero over them:

    $$ W'_{ij} = \frac{W_{g(i) g(j)}}{n_{g(i)}} + E_{ij}, \qquad \sum_{i: g(i) = k} E_{ij} = 0 $$

    (thesis 5.4.2-5.4.3). Copies have equal values, so the noise is not felt; but their gradients differ, and the
    recurrent matrices, singular without it, become regular ([`condition_numbers`][mnemon.lifelong.condition_numbers]).

    **Arguments:**

    - `model`: the teacher; left as it is.
    - `hidden_size`: the new size.
    - `size`: which size grows: `h`, that of the output, or in a [`Stack`][mnemon.Stack] `a`, `b`, ... from below.
    - `noise`: its scale, in units of the mean magnitude of the matrix.
    - `key`: for g and the noise.

    **Returns:** the student, and what happened, for [`widen_optimizer`][mnemon.lifelong.widen_optimizer].

    **Notes.** Layer normalisation sees the copies, so its mean and variance stay the same only if every unit is
    repeated as often: then the new size must be a multiple of the old one, and g is drawn without replacement.

    >>> import jax
    >>> from mnemon import Copying, make_model
    >>> teacher = make_model(Copying(delay=5), "lstm", hidden_size=8, key=jax.random.key(0))
    >>> student, _ = widen(teacher, 13, key=jax.random.key(1))
    >>> student.cell.output_size
    13
    """
    axes, sizes = model.axes(), sizes_of(model)
    name = type(model.cell).__name__
    require(
        bool(sizes), "cell", name, "a cell that can be widened (one with `axes`)", "make_model(task, 'lstm', key=key)"
    )
    require(size in sizes and size != "x", "size", size, f"one of the sizes of {name}: {sorted(sizes)}", "size='h'")
    old = sizes[size]
    require(
        hidden_size > old, "hidden_size", hidden_size, f"more than the {old} units of now", f"hidden_size={2 * old}"
    )
    even = any(size.upper() in word for word in words_of(model).values())
    require(
        not even or hidden_size % old == 0,
        "hidden_size",
        hidden_size,
        f"a multiple of the {old} units of now, as they are normalised together",
        f"hidden_size={2 * old}",
    )
    origin_key, noise_key = jax.random.split(key)
    widening = Widening(size, _origin(origin_key, old, hidden_size, even))
    keys = (jax.random.fold_in(noise_key, n) for n in range(1 << 30))

    def visit(leaf: Any, word: str) -> Any:
        if isinstance(leaf, int):
            return hidden_size if word == size else leaf
        wide = np.asarray(_repeat(leaf, word, widening, sizes, input_power=1, output_power=0))
        words = word.split()
        if len(words) < 2 or size not in words[-2]:
            return jnp.asarray(wide)
        index, _ = _origins(leaf.shape[-2], words[-2], widening, sizes)
        scale = noise * np.mean(np.abs(leaf))
        return jnp.asarray(wide + scale * zero_sum_noise(next(keys), index, wide.shape[-1]), leaf.dtype)

    return walk(model, axes, visit), widening


def widen_optimizer(
    optimizer: optax.GradientTransformation, state: PyTree, teacher: Model, student: Model, widening: Widening
) -> PyTree:
    r"""The state of an optimiser for the student: that of a run in which the copies had shared the gradient all along.

    Without noise the gradient of what leads to a unit is divided by \(n_{g(j)}\) and that of what leads away is copied
    (the parameters do the opposite); with noise this is the mean over the copies. So running means of gradients (`mu`,
    `trace`) are mapped in this way, those of their squares (`nu`) with \(n^2\). What does not have the shape of the
    parameters, as the count of updates, is kept; other statistics start afresh. For a restart take
    `optimizer.init(...)` instead.
    """
    fresh = optimizer.init(eqx.filter(student, trained(student)))
    words, sizes = words_of(teacher), sizes_of(teacher)

    def of_leaf(path: tuple, new: Any, old: Any) -> Any:
        for n, entry in enumerate(path):
            power = _POWERS.get(getattr(entry, "name", ""))
            if power is not None:
                word = words.get(jax.tree_util.keystr(path[n + 1 :]))
                if word is None:
                    return old
                return _repeat(old, word, widening, sizes, input_power=0, output_power=power)
        return old if new.shape == old.shape else new

    # The two trees differ in static sizes, so that only their leaves can be matched.
    leaves, structure = jax.tree_util.tree_flatten_with_path(fresh)
    pairs = zip(leaves, jax.tree.leaves(state), strict=True)
    return jax.tree.unflatten(structure, [of_leaf(path, new, old) for (path, new), old in pairs])


def widen_tree(
    tree: PyTree[Array], teacher: Model, student: Model, widening: Widening, *, input_power: int, output_power: int
) -> PyTree[Array]:
    """A tree like the teacher's parameters as one like the student's: what belongs to a unit goes to all its copies.

    Numbers along the axis that leads away from a unit are divided by the given power of how many copies it has, and
    those along the axis that leads to it likewise.
    """
    words, sizes = words_of(teacher), sizes_of(teacher)

    def of_leaf(path: tuple, leaf: Array) -> Array:
        word = words.get(jax.tree_util.keystr(path))
        if word is None:
            return leaf
        return _repeat(leaf, word, widening, sizes, input_power=input_power, output_power=output_power)

    leaves = [of_leaf(path, leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)]
    return jax.tree.unflatten(jax.tree.structure(eqx.filter(student, trained(student))), leaves)


def largest_difference(teacher: Model, student: Model, episodes: Episode) -> float:
    """How far the outputs of two networks are apart at most, over whole sequences."""
    return float(np.max(np.abs(_outputs(teacher, episodes) - np.asarray(_outputs(student, episodes)))))


@eqx.filter_jit
def _outputs(model: Model, episodes: Episode) -> Array:
    return model(episodes, lengths=episodes.length)[0]


def condition_numbers(cell: AbstractCell) -> list[float]:
    """Largest over smallest singular value of each recurrent matrix of a cell."""
    return [float(np.linalg.cond(np.asarray(matrix, np.float64))) for matrix in cell.recurrent_matrices()]


def zero_sum_noise(
    key: PRNGKeyArray, index: Int[np.ndarray, " rows"], columns: int
) -> Float[np.ndarray, "rows columns"]:
    """Noise that adds up to zero, in each column, over the rows of equal `index`; zero for a row that is alone.

    For k rows (thesis, algorithm 2): the gaps between k - 1 uniform numbers in order, 0 and 1 included, minus 1/k.
    """
    noise = np.zeros((len(index), columns), np.float32)
    order = np.argsort(index, kind="stable")
    _, starts, counts = np.unique(index[order], return_index=True, return_counts=True)
    for count in np.unique(counts[counts > 1]):
        rows = np.stack([order[start : start + count] for start in starts[counts == count]])  # [groups, count]
        shape = (len(rows), int(count) - 1, columns)
        points = np.sort(jax.random.uniform(jax.random.fold_in(key, int(count)), shape, jnp.float32), axis=1)
        noise[rows] = np.diff(points, axis=1, prepend=0.0, append=1.0) - np.float32(1.0 / count)
    return noise


def _origin(key: PRNGKeyArray, old: int, new: int, even: bool) -> Int[np.ndarray, " wide"]:
    if even:
        repeats = [np.asarray(jax.random.permutation(k, old)) for k in jax.random.split(key, new // old - 1)]
    else:
        repeats = [np.asarray(jax.random.randint(key, (new - old,), 0, old))]
    return np.concatenate([np.arange(old), *repeats])


def _origins(
    length: int, blocks: str, widening: Widening, sizes: dict[str, int]
) -> tuple[Int[np.ndarray, " wide"], Int[np.ndarray, " wide"]]:
    """For each place along the widened axis: the old place it repeats, and how many places repeat that one."""
    rest = length - sum(sizes[block.lower()] for block in blocks if block != ".")
    indices, repeats, start = [], [], 0
    for block in blocks:
        size = rest if block == "." else sizes[block.lower()]
        if block.lower() == widening.size:
            indices.append(start + widening.origin)
            repeats.append(np.bincount(widening.origin, minlength=size)[widening.origin])
        else:
            indices.append(start + np.arange(size))
            repeats.append(np.ones(size, int))
        start += size
    return np.concatenate(indices), np.concatenate(repeats)


def _repeat(
    leaf: Array, word: str, widening: Widening, sizes: dict[str, int], *, input_power: int, output_power: int
) -> Array:
    """The array with units repeated along its axes, divided by powers of how often."""
    words, wide = word.split(), np.asarray(leaf)
    for axis, blocks in enumerate(words):
        index, repeats = _origins(wide.shape[axis], blocks, widening, sizes)
        power = {len(words) - 1: output_power, len(words) - 2: input_power}.get(axis, 0)
        factor = (1.0 / repeats**power).astype(wide.dtype)
        wide = np.take(wide, index, axis=axis) * np.expand_dims(factor, [n for n in range(wide.ndim) if n != axis])
    return jnp.asarray(wide)
