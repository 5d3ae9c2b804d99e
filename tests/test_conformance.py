"""The checks of the contract find what they are for."""

import itertools
import json
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from jax.core import Tracer
from jaxtyping import Array

from mnemon import AbstractCell
from mnemon.cli import main
from mnemon.conformance import ContractBroken, check_cell


class _Sum(NamedTuple):
    total: Array


class _Adder(AbstractCell):
    """Adds up its inputs; sound, until something is changed."""

    input_size: int = eqx.field(static=True, default=3)
    output_size: int = eqx.field(static=True, default=3)

    def init_state(self):
        return _Sum(jnp.zeros(3))

    def drive(self, x):
        return jnp.tanh(x)

    def step(self, state, drive, *, key=None):
        return _Sum(state.total + drive), state.total


class _Nameless(_Adder):
    def init_state(self):
        return (jnp.zeros(3),)

    def step(self, state, drive, *, key=None):
        return (state[0] + drive,), drive


class _Widening(_Adder):
    def step(self, state, drive, *, key=None):
        return _Sum(jnp.concatenate([state.total, drive])), drive


class _Narrow(_Adder):
    def step(self, state, drive, *, key=None):
        return state, drive[:2]


_calls = itertools.count()


class _Counting(_Adder):
    def step(self, state, drive, *, key=None):
        return _Sum(state.total + next(_calls)), state.total


class _Exploding(_Adder):
    def drive(self, x):
        return jnp.exp(x)


class _ExplodingBackwards(_Adder):
    def drive(self, x):
        return jnp.sqrt(jnp.abs(x))  # has no gradient at zero


class _WorldlyWise(_Adder):
    def step(self, state, drive, *, key=None):
        return _Sum(state.total + drive), drive if isinstance(drive, Tracer) else -drive


class _NoisyToDeath(_Adder):
    def step(self, state, drive, *, key=None):
        return _Sum(state.total + drive), drive if key is None else jnp.log(-jax.random.uniform(key, (3,)))


def test_a_sound_cell_passes():
    assert check_cell(_Adder()) == ["state", "loop", "extremes", "gradients", "alone", "training"]


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (_Nameless, "init_state gives a tuple, not a named record"),
        (_Widening, r"a step changes what the state is: total is float32\[3\], then float32\[6\]"),
        (_Narrow, r"the output of a step has shape \(2,\), wanted \(3,\)"),
        (_Counting, "of `unroll` (are|is) not th(ose|at) of a loop over the cell"),
        (_Exploding, "outputs are not finite for inputs of zero, of"),
        (_ExplodingBackwards, "gradients are not finite"),
        (_WorldlyWise, "another output alone than in a batch, or not compiled"),
        (_NoisyToDeath, "with a key, outputs are not finite"),
    ],
)
def test_what_breaks_the_contract_is_named(cell, message):
    with pytest.raises(ContractBroken, match=message):
        check_cell(cell())


def test_command(capsys):
    main(["check", "gru", "--hidden-size", "4", "--inputs", "2", "--json"])
    out, err = capsys.readouterr()
    assert json.loads(out)["passed"] == [line.partition(":")[0] for line in err.splitlines()]
    with pytest.raises(SystemExit):
        main(["check", f"{__file__}:_Narrow"])
    assert "__init__(self, input_size" in capsys.readouterr().err
