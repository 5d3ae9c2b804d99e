"""The one contract that every memory architecture keeps."""

import abc
from typing import Any, Generic, TypeVar, final

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

State = TypeVar("State")
Drive = TypeVar("Drive")
Key = PRNGKeyArray | None


def split_key(key: Key, count: int) -> list[Key]:
    """One key for each of `count` random parts of a step; none, if there is none."""
    return [None] * count if key is None else list(jax.random.split(key, count))


class AbstractCell(eqx.Module, Generic[State, Drive]):
    """One step of one recurrent network, for ONE example: no batch axis, no time axis.

    A cell splits its step in what depends on the input alone (`drive`, which [`unroll`][mnemon.unroll] computes
    for all steps in one product, or inside its loop in C) and the recurrence (`step`). Its state is a named record of
    arrays; whatever an objective or a lens may want to see (read weights, log-probabilities of discrete choices) is
    part of it.

    `key` is the only source of randomness. With a key the cell behaves as in training (it samples, drops, uses
    batch statistics); with `key=None` it is deterministic (it takes means, modes, population statistics).
    The batch axis of the surrounding `unroll` has the name `BATCH_AXIS`, for the cells that need statistics
    over the batch.
    """

    input_size: eqx.AbstractVar[int]
    output_size: eqx.AbstractVar[int]

    @abc.abstractmethod
    def init_state(self) -> State:
        """The state before the first step."""

    @abc.abstractmethod
    def drive(self, x: Float[Array, " input"]) -> Drive:
        """All that depends on the input alone."""

    @abc.abstractmethod
    def step(self, state: State, drive: Drive, *, key: Key = None) -> tuple[State, Float[Array, " output"]]:
        """The recurrence: next state and output."""

    def prepare(self) -> "AbstractCell[State, Any]":
        """The same cell with all that depends on the parameters alone already computed.

        `unroll` calls it once, before the loop. A cell whose matrices are functions of its parameters (a matrix
        exponential, sines of angles) overrides it; for all others it is the cell itself.
        """
        return self

    def recurrent_matrices(self) -> tuple[Array, ...]:
        """The square matrices that carry the state from one step to the next, for penalties and lenses.

        By default none. A complex matrix A + iB is given as the real one that does the same,
        [[A, B], [-B, A]].
        """
        return ()

    def axes(self) -> dict[str, Any]:
        """Which axes of which fields have the size of the input or of the hidden state, so that the cell can grow.

        Each field has a word for each axis, whose letters are the blocks of that axis: `x` of the size of the input,
        `h` of the hidden state, `.` (once at most) for the rest. The last axis leads to units and the one before it
        away from them, as in "x hhhh", a matrix from x to four gates. `H` is an `h` of units that are normalised
        together. A static size is a single letter. A field that is a tree has a word for all of its arrays, or a tree
        of them. By default there are none, and the cell cannot be widened.
        """
        return {}

    def as_identity(self, scale: float, gate_bias: float) -> "tuple[AbstractCell, float] | None":
        """This cell with parameters that make its output a multiple of its input, as nearly as it can, and the factor.

        Where it saturates the input is taken times `scale`, and gates are held open or closed by biases of
        +-`gate_bias`. None, as by default, if the cell has no such parameters.
        """
        return None

    def statistics(self, state: State) -> Any:
        """What this cell wants to know of the batch after a step of training; nothing by default.

        `unroll` averages it over the batch and returns it for all steps as `Unrolled.statistics`. It is
        called inside the axis `BATCH_AXIS`, so it may itself use means over the batch.
        """
        return ()

    def with_statistics(self, collected: Any) -> "AbstractCell[State, Drive]":
        """The same cell, having taken note of `Unrolled.statistics` ([time, ...]).

        This is for what a cell learns without a gradient. A trainer calls it after every update, for every
        cell; by default it is the cell itself.
        """
        return self

    @final
    def __call__(
        self, state: State, x: Float[Array, " input"], *, key: Key = None
    ) -> tuple[State, Float[Array, " output"]]:
        """One step from the raw input: `step(state, drive(x))`."""
        prepared = self.prepare()
        return prepared.step(state, prepared.drive(x), key=key)


BATCH_AXIS = "batch"
