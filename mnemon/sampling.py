"""Text from a trained language model."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from ._errors import BadValue, require
from .cells._contract import Key
from .feedback import FedBack, FedBackState
from .model import Model
from .tasks import CharLM
from .unroll import unroll

_FREE = -1.0  # an input that says: go on with your own symbol


class Written(NamedTuple):
    """What the network has written."""

    symbol: Int[Array, ""]


class _Writing(eqx.Module):
    """The prompt is given; then each symbol is drawn from the network's output and read back."""

    temperature: float

    def feed(self, world: Written, given: Float[Array, " one"]) -> Int[Array, ""]:
        return jnp.where(given[0] == _FREE, world.symbol, given[0].astype(jnp.int32))

    def react(self, world: Written, output: Float[Array, " symbols"], given: Float[Array, " one"], key: Key) -> Written:
        if key is None:
            return Written(jnp.argmax(output).astype(jnp.int32))
        return Written(jax.random.categorical(key, output / self.temperature).astype(jnp.int32))


def sample_text(
    model: Model, task: CharLM, *, length: int = 500, prompt: str = "\n", temperature: float = 1.0, seed: int = 0
) -> str:
    """Text that a trained model writes after a prompt.

    **Arguments:**

    - `model`, `task`: a model trained on the task.
    - `length`: how many characters.
    - `prompt`: the text to go on from.
    - `temperature`: below 1 for likelier, above 1 for rarer characters; 0 for the likeliest always.
    - `seed`: of the draws.
    """
    require(length >= 1, "length", length, "at least one character", "length=500")
    require(len(prompt) >= 1, "prompt", prompt, "at least one character to start from", "prompt='The '")
    require(temperature >= 0.0, "temperature", temperature, "0 or more", "temperature=0.8")
    given = jnp.concatenate([task.encode(prompt).astype(jnp.float32), jnp.full((length - 1,), _FREE)])
    world = Written(jnp.asarray(0, jnp.int32))
    rule = _Writing(temperature or 1.0)
    cell = FedBack(model, rule, world, input_size=1)
    state = FedBackState(model.cell.init_state(), world)
    result = eqx.filter_jit(unroll)(
        cell,
        given[None, :, None],
        state=jax.tree.map(lambda leaf: leaf[None], state),
        key=jax.random.key(seed) if temperature else None,
        observe=lambda state: state.world.symbol,
    )
    return task.decode(result.observed[0, len(prompt) - 1 :])


def require_language_model(task: object) -> CharLM:
    """The task of a run, if it is language modelling."""
    if isinstance(task, CharLM):
        return task
    raise BadValue(f"only a language model can write text, not one trained on {type(task).__name__}; train char-lm")
