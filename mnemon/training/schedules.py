"""Values that change as training goes on, set in the named `Fixed` arrays of any cell."""

import dataclasses
import inspect
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from .._errors import BadValue, require, unknown
from ..cells import set_fixed

T = TypeVar("T")
Update = int | Int[Array, ""]


def constant(update: Update, value: float) -> Float[Array, ""]:
    """Always the same value."""
    del update
    return jnp.asarray(value, float)


def linear(update: Update, start: float, end: float, updates: float) -> Float[Array, ""]:
    """From start to end in so many updates, and then the end.

    >>> float(linear(25, 1.0, 0.0, 100)), float(linear(400, 1.0, 0.0, 100))
    (0.75, 0.0)
    """
    return start + (end - start) * _progress(update, updates)


def exponential(update: Update, start: float, end: float, updates: float) -> Float[Array, ""]:
    """From start to end by equal factors in so many updates, and then the end."""
    require(start > 0 and end > 0, "exponential", (start, end), "a positive start and end", "exponential(1, 0.1, 1000)")
    return start * (end / start) ** _progress(update, updates)


def inverse_sqrt(update: Update, rate: float = 1.0) -> Float[Array, ""]:
    r"""\(1 / \sqrt{1 + \rho t}\): the curriculum of D-NTM from soft to discrete addressing; its code has 0.0015.

    >>> float(inverse_sqrt(3))
    0.5
    """
    require(rate >= 0, "rate", rate, "0 or more", "rate=0.0015")
    return 1.0 / jnp.sqrt(1.0 + rate * jnp.asarray(update))


def _progress(update: Update, updates: float) -> Float[Array, ""]:
    require(updates > 0, "updates", updates, "a positive number of updates", "linear(1, 0, 1000)")
    return jnp.clip(jnp.asarray(update) / updates, 0.0, 1.0)


SCHEDULES: dict[str, Callable[..., Float[Array, ""]]] = {
    function.__name__: function for function in (constant, linear, exponential, inverse_sqrt)
}
_FORM = re.compile(r"(\w+)\s*([=~])\s*(\w+)\(([^()]*)\)")
_EXAMPLE = "soft_probability=linear(1, 0, 5000)"


@dataclasses.dataclass(frozen=True)
class Schedule:
    """The value of a named `Fixed` array at each update: a function of the number of the update, so that a run that
    is resumed goes on with the same values.

    >>> schedule = Schedule.parse("soft_probability=linear(1, 0, 100)")
    >>> float(schedule(50, jax.random.key(0)))
    0.5
    """

    name: str  # of the `Fixed` array
    function: str  # one of `SCHEDULES`
    numbers: tuple[float, ...]
    drawn: bool = False  # set a 0 or 1, drawn once an update with the function's value as probability

    def __post_init__(self):
        if self.function not in SCHEDULES:
            raise unknown("schedule", self.function, SCHEDULES)
        try:
            inspect.signature(SCHEDULES[self.function]).bind(0, *self.numbers)
        except TypeError:
            wanted = ", ".join(list(inspect.signature(SCHEDULES[self.function]).parameters)[1:])
            raise BadValue(f"{self.function}{self.numbers} cannot work: wanted {self.function}({wanted})") from None
        SCHEDULES[self.function](0, *self.numbers)

    @classmethod
    def parse(cls, text: str) -> "Schedule":
        """From `NAME=FUNCTION(NUMBERS)`, or with `~` instead of `=` for a value that is drawn."""
        match = _FORM.fullmatch(text.strip())
        try:
            name, sign, function, numbers = match.groups() if match else ("", "", "", "?")
            values = tuple(float(number) for number in numbers.split(",") if number.strip())
        except ValueError:
            wanted = "NAME=FUNCTION(NUMBERS), or NAME~FUNCTION(NUMBERS) to draw a 0 or 1"
            raise BadValue(f"schedule={text!r} cannot work: wanted {wanted}, e.g. {_EXAMPLE}") from None
        return cls(name, function, values, drawn=sign == "~")

    def __call__(self, update: Update, key: PRNGKeyArray) -> Float[Array, ""]:
        value = SCHEDULES[self.function](update, *self.numbers)
        return jax.random.bernoulli(key, value).astype(value.dtype) if self.drawn else value


def set_scheduled(tree: T, schedules: Sequence[Schedule], update: Update, key: PRNGKeyArray) -> T:
    """The same tree with what the schedules say at an update."""
    values = {
        schedule.name: schedule(update, jax.random.fold_in(key, number)) for number, schedule in enumerate(schedules)
    }
    return set_fixed(tree, **values)
