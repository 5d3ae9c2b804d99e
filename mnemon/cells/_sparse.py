"""What the cells with sparse access to a large memory share."""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from .._errors import require
from ..memory import content_weights, nearest, oneplus, read_rows
from ._contract import AbstractCell
from ._controller import Controller, Interface

State = TypeVar("State")


class AbstractSparse(AbstractCell[State, Array]):
    """An LSTM controller and its interface, and reads of the K rows nearest to a key."""

    controller: Controller
    interface: Interface  # W_p, b_p
    input_size: int = eqx.field(static=True)
    output_size: int = eqx.field(static=True)
    memory_slots: int = eqx.field(static=True)  # N
    word_size: int = eqx.field(static=True)
    top_k: int = eqx.field(static=True)  # K
    access_threshold: float = eqx.field(static=True)  # delta
    strengths: bool = eqx.field(static=True)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        heads: int,
        interface_size: int,
        memory_slots: int,
        word_size: int,
        top_k: int,
        access_threshold: float,
        strengths: bool,
        key: PRNGKeyArray,
    ):
        sizes = {"hidden_size": hidden_size, "word_size": word_size, "top_k": top_k}
        for name, size in sizes.items():
            require(size >= 1, name, size, "1 or more", f"{name}=4")
        wanted = f"at least top_k={top_k} rows to read"
        require(memory_slots >= top_k, "memory_slots", memory_slots, wanted, f"memory_slots={32 * top_k}")
        require(access_threshold >= 0, "access_threshold", access_threshold, "0 or more", "access_threshold=0.005")
        controller_key, interface_key = jax.random.split(key)
        reads = heads * word_size
        self.controller = Controller(
            input_size, reads, hidden_size, layers=1, kind="lstm", bound=None, key=controller_key
        )
        self.interface = Interface(hidden_size, interface_size, bias=True, key=interface_key)
        self.input_size, self.output_size = input_size, hidden_size + reads
        self.memory_slots, self.word_size, self.top_k = memory_slots, word_size, top_k
        self.access_threshold, self.strengths = access_threshold, strengths

    def drive(self, x: Float[Array, " input"]) -> Float[Array, " drive"]:
        return self.controller.drive(x)

    def nearest_rows(
        self,
        keys: Float[Array, "heads word"],
        scalars: Float[Array, "heads scalars"],
        memory: Float[Array, "slots word"],
    ) -> tuple[Int[Array, "heads top_k"], Float[Array, "heads top_k"], Float[Array, "heads top_k word"], Array]:
        """The K rows nearest to each key: which, their weights, their words; and the memory, to go on with.

        With `strengths` the last of each head's `scalars` sharpens its weights.
        """
        strengths = oneplus(scalars[:, -1]) if self.strengths else jnp.ones_like(scalars[:, 0])
        rows = nearest(keys, memory, self.top_k)
        words, memory = read_rows(memory, rows)
        weights = jax.vmap(content_weights)(keys[:, None], strengths[:, None], words)[:, 0]
        return rows, weights, words, memory
