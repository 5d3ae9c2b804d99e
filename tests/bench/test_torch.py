"""The PyTorch loops compute what our cells compute."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from mnemon import Plan, unroll
from mnemon.bench._cells import Spec
from mnemon.bench._rivals import agree
from mnemon.bench._torch import LOOPS, rivals
from mnemon.bench._torch_loop import Loop
from mnemon.cells import CELLS
from tests.tiny import INPUT, tiny_options

_VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name, entry in sorted(CELLS.items()) if entry.cell in LOOPS),
    ("lstm", {"peepholes": False}),
    ("gru", {"reset_after": True}),
    ("nru", {"relu_heads": True, "heads_see_input": True, "average_heads": False}),
    ("ntm", {"controller": "feedforward", "tanh_words": True, "bound": 0.5, "write_heads": 2}),
    ("ntm", {"read_before_write": True, "memory_init": "learned", "shift_range": 2}),
    ("dnc", {"masked_content": True, "deallocate": True, "sharpen_links": True, "interface_bias": True}),
    ("dnc", {"softplus_strengths": True, "usage_gradient": False, "bound": 0.1, "layers": 1}),
    ("tardis", {"usage": "softmax", "output": "hidden", "reset_gates": False, "last_read_penalty": 0.0}),
    ("dntm", {"controller": "feedforward", "addressing": "discrete", "hops": 2}),
    ("dntm", {"order": "write-read", "candidate": "tanh", "average_cosines": True, "lru_decay": 0.04, "hops": 2}),
    ("nutm", {"core": "dnc", "tanh_keys": True, "read_heads": 2, "programs": 3, "key_size": 4}),
    ("nutm", {"write_heads": 2, "programs": 3}),
    ("sam", {"strengths": True}),
    ("sdnc", {"strengths": True, "link_gradients": True}),
    ("fast-weights", {"form": "attention", "max_steps": 9, "inner_steps": 2, "normalise_start": True}),
    ("fast-weights", {"layer_norm": "slow", "activation": "tanh"}),
    ("gated-fast-weights", {"gate": False, "fast_bias": False, "layer_norm": "both"}),
    ("hyper-lstm", {"layer_norm": False, "delayed": True}),
]


def _stirred(name: str, options: dict[str, Any]):
    """A tiny cell with all its parameters moved, so that none of them is where it cannot be seen."""
    entry = CELLS[name]
    options = {**entry.options, **tiny_options(name), **options}
    make = eqx.filter_jit(lambda key: entry.cell(INPUT, **options, key=key))
    leaves, structure = jax.tree.flatten(make(jax.random.key(0)))
    source = np.random.default_rng(0)

    def moved(leaf):
        if not eqx.is_inexact_array(leaf) or not leaf.ndim:
            return leaf
        return jnp.asarray(np.asarray(leaf) + 0.3 * source.standard_normal(leaf.shape), leaf.dtype)

    return jax.tree.unflatten(structure, [moved(leaf) for leaf in leaves])


@pytest.mark.parametrize(("name", "options"), _VARIANTS, ids=str)
def test_a_loop_gives_the_outputs_of_the_cell(name: str, options: dict[str, Any]):
    cell, inputs = _stirred(name, options), jax.random.normal(jax.random.key(1), (2, 9, INPUT))
    outputs = eqx.filter_jit(lambda cell: unroll(cell, inputs, plan=Plan(defer=False)).outputs)(cell)
    theirs = Loop(cell, LOOPS[type(cell)])(torch.tensor(np.array(inputs)))
    np.testing.assert_allclose(theirs.detach().numpy(), outputs, rtol=1e-4, atol=2e-5)


# Those that stop gradients somewhere, or learn where they start.
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("tardis", {}),
        ("ntm", {"layers": 1}),
        ("dnc", {"usage_gradient": False, "layers": 1}),
        ("dntm", {}),
        ("nutm", {}),
        ("sam", {}),
        ("sdnc", {}),
        ("sdnc", {"link_gradients": True}),
    ],
)
def test_a_loop_has_the_gradients_of_the_cell(name: str, options: dict[str, Any]):
    cell, inputs = _stirred(name, options), jax.random.normal(jax.random.key(1), (2, 6, INPUT))
    weights = jax.random.normal(jax.random.key(3), (2, 6, cell.output_size))
    gradient = eqx.filter_jit(
        eqx.filter_grad(lambda cell: jnp.sum(weights * unroll(cell, inputs, plan=Plan(defer=False)).outputs))
    )(cell)
    wanted = {
        jax.tree_util.keystr(path, simple=True, separator="."): leaf
        for path, leaf in jax.tree_util.tree_leaves_with_path(gradient)
    }
    loop = Loop(cell, LOOPS[type(cell)])
    (loop(torch.tensor(np.array(inputs))) * torch.tensor(np.array(weights))).sum().backward()
    for path, parameter in loop.weights.named_parameters():
        found = np.zeros(wanted[path].shape) if parameter.grad is None else parameter.grad.numpy()
        scale = 1e-4 + 1e-3 * np.max(np.abs(wanted[path]), initial=0.0)
        np.testing.assert_allclose(found, wanted[path], rtol=1e-3, atol=scale, err_msg=path)


def test_a_loop_of_other_equations_does_not_agree():
    spec = Spec("fast-weights", 2, 9, INPUT, tiny_options("fast-weights"))
    (rival,) = rivals(spec).values()
    inputs = np.asarray(spec.inputs())
    assert agree(np.asarray(unroll(spec.make(), spec.inputs()).outputs), rival, inputs)
    other = dataclasses.replace(spec, options={**spec.options, "decay": 0.5})
    assert not agree(np.asarray(unroll(other.make(), spec.inputs()).outputs), rival, inputs)
