"""Embed -> cell -> readout."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from ._errors import require
from ._mixed import Precision, with_precision
from .cells import AbstractCell, make_cell
from .cells._init import glorot_normal
from .tasks import AbstractTask, Episode
from .unroll import Unrolled, unroll


class Rectified(eqx.Module):
    """A layer of rectified linear units: $\\max(x W + b, 0)$."""

    weights: Float[Array, "inputs outputs"]
    bias: Float[Array, " outputs"]

    def __init__(self, inputs: int, outputs: int, *, key: PRNGKeyArray):
        require(outputs >= 1, "layer size", outputs, "at least one unit", "input_layer_size=100")
        self.weights = math.sqrt(2.0) * glorot_normal(key, inputs, outputs)
        self.bias = jnp.zeros((outputs,))

    def __call__(self, x: Float[Array, "*batch inputs"]) -> Float[Array, "*batch outputs"]:
        return jax.nn.relu(x @ self.weights + jnp.expand_dims(self.bias, tuple(range(x.ndim - 1))))


class Model(eqx.Module):
    """A network for a task: symbols become one-hot or embedded vectors, the cell runs, a linear map reads it out.

    A layer of rectified linear units may stand before the cell, and another between the cell and the linear map.

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
    input_layer: Rectified | None
    output_layer: Rectified | None
    symbols: int | None = eqx.field(static=True)  # how many, if inputs are symbols
    precision: Precision = eqx.field(static=True)  # of matrix products

    def __init__(
        self,
        cell: AbstractCell,
        output_size: int,
        *,
        symbols: int | None = None,
        embedding_size: int | None = None,
        embedding_scale: float = 1.0,
        input_layer: Rectified | None = None,
        output_layer_size: int | None = None,
        precision: Precision = "float32",
        key: PRNGKeyArray,
    ):
        """**Arguments:**

        - `cell`: any cell.
        - `output_size`: size of the readout.
        - `symbols`: how many symbols there are, if inputs are symbols.
        - `embedding_size`: size of trained embeddings of symbols; by default they are one-hot.
        - `embedding_scale`: standard deviation of their entries at first.
        - `input_layer`: what stands before the cell, if anything.
        - `output_layer_size`: units of a layer between the cell and the linear map; none by default.
        - `precision`: of matrix products; with bfloat16 all else stays in float32 (mixed precision).
        - `key`: for the initial parameters.
        """
        embedding_key, readout_key = jax.random.split(key)
        self.embedding = None
        if embedding_size is not None:
            require(symbols is not None, "embedding_size", embedding_size, "inputs that are symbols", "symbols=50")
            require(embedding_scale > 0, "embedding_scale", embedding_scale, "a positive number", "embedding_scale=0.5")
            self.embedding = embedding_scale * jax.random.normal(embedding_key, (symbols or 0, embedding_size))
        self.cell = cell
        self.input_layer, self.output_layer, readout_inputs = input_layer, None, cell.output_size
        if output_layer_size is not None:
            layer_key = jax.random.fold_in(readout_key, 1)
            self.output_layer = Rectified(cell.output_size, output_layer_size, key=layer_key)
            readout_inputs = output_layer_size
        self.readout_weights = glorot_normal(readout_key, readout_inputs, output_size)
        self.readout_bias = jnp.zeros((output_size,))
        self.symbols, self.precision = symbols, precision

    def embed(
        self, inputs: Int[Array, "*batch time"] | Float[Array, "*batch time channels"]
    ) -> Float[Array, "*batch time embedded"]:
        """The vectors that the cell sees."""
        layer = (lambda x: x) if self.input_layer is None else self.input_layer
        if self.symbols is None:
            return layer(inputs)
        if self.embedding is None:
            return layer(jax.nn.one_hot(inputs, self.symbols))
        # Of few symbols each goes through the layer once, not wherever it occurs.
        return layer(self.embedding)[inputs] if self.symbols < inputs.size else layer(self.embedding[inputs])

    def read_out(self, y: Float[Array, "*batch cell_output"]) -> Float[Array, "*batch output"]:
        """The outputs for what the cell put out."""
        hidden = y if self.output_layer is None else self.output_layer(y)
        return hidden @ self.readout_weights + jnp.expand_dims(self.readout_bias, tuple(range(y.ndim - 1)))

    def axes(self) -> dict[str, Any]:
        """Which axes can grow, see [`AbstractCell.axes`][mnemon.AbstractCell]."""
        if self.output_layer is None:
            return {"cell": self.cell.axes(), "readout_weights": "h ."}
        return {"cell": self.cell.axes(), "output_layer": {"weights": "h ."}}

    def __call__(
        self, episodes: Episode, *, last: int | None = None, **options: Any
    ) -> tuple[Float[Array, "batch time output"], Unrolled]:
        """Outputs for a batch of episodes, and what [`unroll`][mnemon.unroll] returned; it takes the `options`.

        With `last`, only so many steps at the end are read out; the outputs before are zero.
        """
        inputs = with_precision(self.embed, self.precision)(episodes.inputs)
        result = unroll(self.cell, inputs, reset=episodes.reset, precision=self.precision, **options)
        skipped = 0 if last is None else max(inputs.shape[1] - last, 0)
        outputs = with_precision(self.read_out, self.precision)(result.outputs[:, skipped:])
        return jnp.pad(outputs, ((0, 0), (skipped, 0), (0, 0))), result


def make_model(
    task: AbstractTask,
    cell: str,
    *,
    embedding_size: int | None = None,
    embedding_scale: float = 1.0,
    input_layer_size: int | None = None,
    output_layer_size: int | None = None,
    precision: Precision = "float32",
    key: PRNGKeyArray,
    **options: Any,
) -> Model:
    """A model for a task from the name of a cell and its options, with layers of rectified linear units if wanted."""
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
    input_size, input_layer = task.input_size if embedding_size is None else embedding_size, None
    if input_layer_size is not None:
        input_layer = Rectified(input_size, input_layer_size, key=jax.random.fold_in(model_key, 1))
        input_size = input_layer_size
    model = Model(
        make_cell(cell, input_size, key=cell_key, horizon=task.horizon, **options),
        task.output_size,
        symbols=task.input_size if task.symbolic else None,
        embedding_size=embedding_size,
        embedding_scale=embedding_scale,
        input_layer=input_layer,
        output_layer_size=output_layer_size,
        precision=precision,
        key=model_key,
    )
    return model if vectors is None else eqx.tree_at(lambda m: m.embedding, model, vectors)
