"""A network whose outputs decide its later inputs, as one more cell."""

from typing import Any, NamedTuple, Protocol

import equinox as eqx
from jaxtyping import Array, Float, Int

from .cells import AbstractCell
from .cells._contract import Key
from .model import Model


class Rule(Protocol):
    """How outputs come back. The world is whatever the rule keeps from step to step."""

    def feed(self, world: Any, given: Float[Array, " channels"]) -> Float[Array, " seen"] | Int[Array, ""]:
        """What the network sees: a vector, or a symbol."""
        ...

    def react(self, world: Any, output: Float[Array, " outputs"], given: Float[Array, " channels"], key: Key) -> Any:
        """The world after the network's output."""
        ...


class FedBackState(NamedTuple):
    """State of `FedBack`."""

    inner: Any  # the state of the model's cell
    world: Any  # what the rule keeps


class FedBack(AbstractCell):
    """A whole model as a cell: embed, cell and readout in each step, and a rule that turns outputs into inputs.

    So `unroll` stays the only time loop, and generating text, answering digit by digit and walking on a graph are the
    same thing.
    """

    model: Model
    rule: Any  # a `Rule`: a task, or a way to sample
    world: Any  # a world of one example, for `init_state`
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)

    def __init__(self, model: Model, rule: Any, world: Any, input_size: int | None = None):
        self.model, self.rule, self.world = model, rule, world
        self.input_size = model.cell.input_size if input_size is None else input_size
        self.output_size = model.readout_bias.shape[0]

    def init_state(self) -> FedBackState:
        return FedBackState(self.model.cell.init_state(), self.world)

    def prepare(self) -> "FedBack":
        return eqx.tree_at(lambda cell: cell.model.cell, self, self.model.cell.prepare())

    def drive(self, x: Float[Array, " channels"]) -> Float[Array, " channels"]:
        return x  # what the network sees depends on the state

    def step(
        self, state: FedBackState, drive: Float[Array, " channels"], *, key: Key = None
    ) -> tuple[FedBackState, Float[Array, " outputs"]]:
        model = self.model
        seen = model.embed(self.rule.feed(state.world, drive)[None])[0]
        inner, hidden = model.cell.step(state.inner, model.cell.drive(seen), key=key)
        output = model.read_out(hidden)
        return FedBackState(inner, self.rule.react(state.world, output, drive, key)), output

    def statistics(self, state: FedBackState) -> Any:
        return self.model.cell.statistics(state.inner)
