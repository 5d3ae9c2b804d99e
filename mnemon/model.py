"""Embed -> cell -> readout."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ._errors import require
from .cells import AbstractCell, make_cell
from .cells._init import glorot_normal
from .tasks import AbstractTask, Episode
from .unroll import Unrolled, unroll


class Model(eqx.Module):
    """A network for a task: symbols become one-hot or embedded vectors, the cell runs, a linear map reads it out.

    >>> import jax
    >>> from mnemon.tasks import Copying
    >>> task = Copying(delay=5)
    >>> model = make_model(task, "lstm", key=jax.random.key(0))
    >>> episodes = task.batch(jax.random.key(1), 0, 4)
    >>> outputs, _ = model(episodes)
    >>> outputs.shape
    (4, 25, 9)
    """

    embedding: Float[Array, "symbols embedded"] | None
    cell: AbstractCell
    readout_weights: Float[Array, "cell_output output"]
    readout_bias: Float[Array, " output"]
    symbols: int | None = eqx.field(static=True)  # how many, if inputs are symbols

    def __init__(
        self,
        cell: AbstractCell,
        output_size: int,
        *,
        symbols: int | None = None,
        embedding_size: int | None = None,
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `cell`: any cell.
        - `output_size`: size of the readout.
        - `symbols`: how many symbols there are, if inputs are symbols.
        - `embedding_size`: size of trained embeddings of symbols; by default they are one-hot.
        - `key`: for the initial parameters.
        """
        embedding_key, readout_key = jax.random.split(key)
        self.embedding = None
        if embedding_size is not None:
            require(symbols is not None, "embedding_size", embedding_size, "inputs that are symbols", "symbols=50")
            self.embedding = jax.random.normal(embedding_key, (symbols or 0, embedding_size))
        self.cell = cell
        self.readout_weights = glorot_normal(readout_key, cell.output_size, output_size)
        self.readout_bias = jnp.zeros((output_size,))
        self.symbols = symbols

    def embed(
        self, inputs: Int[Array, "*batch time"] | Float[Array, "*batch time channels"]
    ) -> Float[Array, "*batch time embedded"]:
        """The vectors that the cell sees."""
        if self.symbols is None:
            return inputs
        if self.embedding is None:
            return jax.nn.one_hot(inputs, self.symbols)
        return self.embedding[inputs]

    def axes(self) -> dict[str, Any]:
        """Which axes can grow, see [`AbstractCell.axes`][mnemon.AbstractCell]."""
        return {"cell": self.cell.axes(), "readout_weights": "h ."}

    def __call__(self, episodes: Episode, **options: Any) -> tuple[Float[Array, "batch time output"], Unrolled]:
        """Outputs for a batch of episodes, and what [`unroll`][mnemon.unroll] returned; it takes the `options`."""
        result = unroll(self.cell, self.embed(episodes.inputs), reset=episodes.reset, **options)
        return result.outputs @ self.readout_weights + self.readout_bias[None, None], result


def make_model(
    task: AbstractTask, cell: str, *, embedding_size: int | None = None, key: PRNGKeyArray, **options: Any
) -> Model:
    """A model for a task from the name of a cell and its options."""
    cell_key, model_key = jax.random.split(key)
    vectors = task.vectors
    if vectors is not None:
        require(
            embedding_size in (None, vectors.shape[1]),
            "embedding_size",
            embedding_size,
            f"{vectors.shape[1]}, the size of the task's vectors, or none",
            f"embedding_size={vectors.shape[1]}",
        )
        embedding_size = vectors.shape[1]
    input_size = task.input_size if embedding_size is None else embedding_size
    model = Model(
        make_cell(cell, input_size, key=cell_key, horizon=task.horizon, **options),
        task.output_size,
        symbols=task.input_size if task.symbolic else None,
        embedding_size=embedding_size,
        key=model_key,
    )
    return model if vectors is None else eqx.tree_at(lambda m: m.embedding, model, vectors)
