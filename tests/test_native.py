"""Loops in C give what XLA's loops give."""

import subprocess

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mnemon import Plan, _native, choose_plan, make_cell, unroll
from mnemon._native import NativeLoop, Unsupported, _build, _loop, _schedule, native_is_possible
from mnemon._native._graph import BY_STEP, CARRIED, FIXED
from mnemon.cells import CELLS
from tests.conformance.test_cells import NOT_NATIVE
from tests.tiny import tiny_cell

KEY = jax.random.key(0)
BATCH, TIME, UNITS = 3, 6, 5


def _run(body, fixed, carried, stepped, *, reverse: bool = False, steps: int = TIME):
    """What `lax.scan` makes of (fixed, carried, stepped) -> (carried, stacked), and what the loop in C makes of it."""
    closed = jax.make_jaxpr(body)(fixed, carried, jax.tree.map(lambda leaf: leaf[0], stepped))
    parts = ((fixed, FIXED), (carried, CARRIED), (stepped, BY_STEP))
    loop = NativeLoop(closed, [level for tree, level in parts for _ in jax.tree.leaves(tree)])
    after, stacked, same = jax.jit(
        lambda *trees: loop.run(jax.tree.leaves(trees), steps=jnp.asarray(steps), length=TIME, reverse=reverse),
    )(fixed, carried, stepped)
    stacked = [np.broadcast_to(s, (TIME, *s.shape)) if one else s for s, one in zip(stacked, same, strict=True)]
    first = jax.tree.map(lambda leaf: leaf[:steps], stepped)
    last, made = jax.lax.scan(lambda c, x: body(fixed, c, x), carried, first, reverse=reverse)
    made = jax.tree.map(lambda leaf: np.pad(leaf, [(0, TIME - steps)] + [(0, 0)] * (leaf.ndim - 1)), made)
    return jax.tree.leaves((last, made)), [*after, *stacked]


def _assert_same(body, fixed, carried, stepped, *, atol: float = 2e-6, **options) -> None:
    expected, found = _run(body, fixed, carried, stepped, **options)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=2e-5, atol=atol)


def _arrays(*shapes):
    return [jax.random.normal(jax.random.fold_in(KEY, n), shape) for n, shape in enumerate(shapes)]


@pytest.mark.parametrize("steps", [TIME, TIME - 2])
@pytest.mark.parametrize("by_example", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_operations(reverse, by_example, steps, monkeypatch):
    """Views, reductions, products with fixed and with changing matrices, forwards and backwards, over some steps."""
    monkeypatch.setattr(_schedule, "_FITTING_BYTES", -1 if by_example else 2**40)
    weights, bias, h, m, x = _arrays((5, 7), (7,), (BATCH, 5), (BATCH, 4, 5), (TIME, BATCH, 7))

    def body(fixed, carried, x):
        (weights, bias), (h, m, count) = fixed, carried
        z = h @ weights + bias[None] + x
        turned = weights.T @ h.T  # the fixed matrix first: what comes out is transposed
        a, b = jnp.split(jnp.tanh(z), [5], axis=1)
        scores = jnp.einsum("bnw,bw->bn", m, a)
        focus = jax.nn.softmax(scores, axis=1)
        read = jnp.einsum("bn,bnw->bw", focus, m)
        best = jnp.argmax(scores, axis=1)
        chosen = jnp.where(jnp.arange(4)[None] == best[:, None], 1.0, 0.0)
        m = m * (1 - chosen[:, :, None]) + chosen[:, :, None] * a[:, None]
        gram = jnp.einsum("bnw,bkw->bnk", m, m)
        running = jnp.cumsum(focus, axis=1) + jax.lax.cumsum(focus[:, ::-1], axis=1, reverse=True)
        padded = jnp.pad(b, ((0, 0), (1, 2)))[:, :5] + jax.lax.pad(z, 0.5, ((0, 0, 0), (-1, -1, 0)))
        joined = jnp.concatenate([read, b, turned.T[:, :1]], axis=1)
        stacked = jnp.stack([read, a], axis=1)
        largest = jnp.max(gram, axis=(1, 2)) + jnp.min(gram, axis=1)[:, 0] + jnp.sum(gram, axis=(0, 1))[0]
        after = (0.5 * read + 0.1 * padded, m, count + (best > 1))
        return after, (joined, stacked, running, largest, h, gram.transpose(0, 2, 1), best, jnp.any(chosen > 0, axis=1))

    _assert_same(body, (weights, bias), (h, m, jnp.zeros((BATCH,), jnp.int32)), x, reverse=reverse, steps=steps)


PRODUCTS = ("bik,bkj->bij", "bik,bjk->bij", "bki,bkj->bij", "bkj,bki->bij", "bk,bkj->bj", "bjk,bk->bj", "bi,bj->bji")


@pytest.mark.parametrize("sizes", [{"i": 3, "j": 17, "k": 50}, {"i": 7, "j": 70, "k": 16}, {"i": 33, "j": 16, "k": 4}])
@pytest.mark.parametrize("by_example", [False, True])
def test_products_of_what_changes(sizes, by_example, monkeypatch):
    """Of long and short vectors, with pieces that do not fill the vectors of the processor, in all layouts."""
    monkeypatch.setattr(_schedule, "_FITTING_BYTES", -1 if by_example else 2**40)
    shapes = [product.split("->")[0].split(",") for product in PRODUCTS]
    factors = [_arrays(*(tuple({"b": BATCH, **sizes}[axis] for axis in one) for one in pair)) for pair in shapes]

    def body(_, carried, x):
        scaled = [[(1 + x) * array for array in pair] for pair in carried]
        made = [jnp.einsum(product, *pair) for product, pair in zip(PRODUCTS, scaled, strict=True)]
        sums = [(jnp.sum(one**2, axis=-1), jnp.sum(one, axis=1), jnp.max(one, axis=(0, -1))) for one in made]
        return [[0.5 * one for one in pair] for pair in scaled], (made, sums)

    _assert_same(body, (), factors, jnp.linspace(0.0, 1.0, TIME), atol=2e-5)


FUNCTIONS = {
    "exp": (jnp.exp, np.exp, (-80.0, 80.0)),
    "tanh": (jnp.tanh, np.tanh, (-10.0, 10.0)),
    "sigmoid": (jax.nn.sigmoid, lambda x: 1 / (1 + np.exp(-x)), (-80.0, 80.0)),
    "log": (jnp.log, np.log, (1e-6, 50.0)),
    "log1p": (jnp.log1p, np.log1p, (-0.9, 50.0)),
    "rsqrt": (jax.lax.rsqrt, lambda x: x**-0.5, (1e-6, 50.0)),
    "fifth root": (lambda x: x**0.2, lambda x: x**0.2, (1e-6, 50.0)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_as_exact_as_single_precision(name):
    function, exact, (low, high) = FUNCTIONS[name]
    x = jnp.linspace(low, high, 60_001, dtype=jnp.float32)
    xs = jnp.broadcast_to(x, (TIME, x.size))
    _, (_, found) = _run(lambda _, c, x: (c + x, function(x)), (), jnp.zeros_like(x), xs)
    wanted = exact(np.asarray(x, np.float64))
    error = np.abs(np.asarray(found[0], np.float64) - wanted) / np.maximum(np.abs(wanted), 1e-30)
    # Near a zero of the logarithm its argument's own rounding decides.
    assert np.max(np.where(np.abs(wanted) > 1e-3, error, 0.0)) < 4 * np.finfo(np.float32).eps


def test_functions_of_special_numbers():
    x = jnp.array([0.0, -0.0, jnp.inf, -jnp.inf, jnp.nan, 1e30, -1e30, 1e-30])
    xs = jnp.broadcast_to(x, (TIME, x.size))

    def body(_, c, x):
        functions = (jnp.exp, jnp.tanh, jax.nn.sigmoid, jnp.log, jnp.log1p, jnp.sign, jnp.abs, jnp.sqrt)
        return c + 1.0, (*[f(x) for f in functions], jnp.maximum(x, 1.0), jnp.minimum(x, 1.0), jnp.isfinite(x))

    _assert_same(body, (), jnp.zeros_like(x), xs)


def test_extremes_of_what_is_no_number_are_no_number():
    """Wherever among the entries it is: these are compared in groups."""
    x = jnp.where(jnp.eye(40, dtype=bool), jnp.nan, jnp.arange(1600.0).reshape(40, 40))

    def body(_, c, x):
        return c + 1.0, (jnp.max(x, axis=0), jnp.max(x, axis=1), jnp.min(x, axis=1), jax.lax.cummax(x, axis=1))

    _assert_same(body, (), jnp.zeros(3), jnp.broadcast_to(x, (TIME, *x.shape)))


def test_what_is_not_known_is_named():
    with pytest.raises(Unsupported, match="sort"):
        _run(lambda _, c, x: (jnp.sort(c) + x, c), (), jnp.ones(4), jnp.ones((TIME, 4)))


def test_what_does_not_depend_on_the_state_may_be_anything():
    """Random numbers are drawn, and arrays sorted, before the loop."""
    keys = jax.random.key_data(jax.random.split(KEY, TIME))

    def body(order, c, key_data):
        drawn = jax.random.normal(jax.random.wrap_key_data(key_data), (4,))
        return 0.5 * c + drawn * jnp.sort(order), drawn

    _assert_same(body, jnp.array([3.0, 1.0, 2.0, 0.0]), jnp.ones(4), keys)


@pytest.mark.parametrize("name", CELLS)
def test_which_cells_have_native_loops(name, monkeypatch):
    monkeypatch.setenv("MNEMON_NATIVE", "1")
    assert choose_plan(tiny_cell(name), 4, 8).native == (name not in NOT_NATIVE)


@pytest.mark.parametrize("name", ["nru", "tardis", "fast-weights"])
def test_randomness_resets_blocks_and_recomputation(name):
    cell, inputs = tiny_cell(name), jax.random.normal(KEY, (4, 8, 3))
    reset = jnp.zeros((4, 8), bool).at[1, 3].set(True)

    @eqx.filter_jit
    def gradient(plan):
        def loss(cell):
            result = unroll(cell, inputs, key=KEY, reset=reset, plan=plan, truncate=5, observe=lambda s: s.hidden)
            return jnp.sum(result.outputs**2) + jnp.sum(result.observed), result.outputs

        return eqx.filter_value_and_grad(loss, has_aux=True)(cell)

    expected = gradient(Plan())
    for plan in (Plan(native=True, remat=True), Plan(native=True, block=2, share=True)):
        for one, other in zip(jax.tree.leaves(expected), jax.tree.leaves(gradient(plan)), strict=True):
            if eqx.is_inexact_array(one):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"remat": True}, {"segment": 3}])
@pytest.mark.parametrize("name", ["lstm", "nru", "tardis"])
def test_steps_after_the_last_sequence_are_as_if_they_had_been_run(name, options):
    cell, inputs = tiny_cell(name), jax.random.normal(KEY, (BATCH, TIME, 3))

    @eqx.filter_jit
    def gradient(lengths, plan):
        def loss(arguments):
            cell, inputs = arguments
            result = unroll(cell, inputs, lengths=lengths, plan=plan)
            return jnp.sum((1.0 + result.outputs) ** 2), result[:2]

        return eqx.filter_value_and_grad(loss, has_aux=True)((cell, inputs))

    for lengths in ((4, 0, 2), (6, 3, 5), (0, 0, 0)):
        expected, found = (gradient(jnp.array(lengths), Plan(native=n, **options)) for n in (False, True))
        for one, other in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
            if eqx.is_inexact_array(one):
                np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_gradients_of_inputs_that_nobody_asks_for_are_not_made(monkeypatch):
    cell, inputs = make_cell("lstm", 3, hidden_size=UNITS, key=KEY), jax.random.normal(KEY, (BATCH, TIME, 3))
    products = []  # in the backward loop
    emit = _loop.emit

    def counted(loop):
        if loop.reverse:
            products.append(sum(op.name == "dot_general" for op in loop.ops))
        return emit(loop)

    monkeypatch.setattr(_loop, "emit", counted)

    def loss(cell, inputs, plan):
        return jnp.sum(unroll(cell, inputs, plan=plan).outputs ** 2)

    def gradients(plan):
        of_cell = eqx.filter_grad(lambda c: loss(c, inputs, plan))(cell)
        of_both = eqx.filter_grad(lambda both: loss(both[0], both[1], plan))((cell, inputs))
        return jax.tree.leaves((of_cell, of_both))

    for one, other in zip(gradients(Plan(native=False)), gradients(Plan(native=True)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert products == [1, 2]  # that of the states, then that of the inputs as well


def test_other_precisions_are_left_to_xla():
    cell = make_cell("lstm", 3, hidden_size=UNITS, key=KEY)
    inputs = jax.random.normal(KEY, (BATCH, TIME, 3))
    plain, native = (unroll(cell, inputs, plan=Plan(native=n), precision="bfloat16").outputs for n in (False, True))
    np.testing.assert_array_equal(plain, native)


def _forget() -> None:
    """Forget whether there is a compiler, and the programs that were made with or without it."""
    _build.available.cache_clear()
    jax.clear_caches()


def test_without_a_compiler_xla_runs_the_loop(monkeypatch):
    def fails(source: str):
        raise subprocess.CalledProcessError(1, "cc")

    monkeypatch.setattr(_build, "_library", fails)
    _forget()
    try:
        monkeypatch.setenv("MNEMON_NATIVE", "1")
        cell = make_cell("lstm", 3, hidden_size=UNITS, key=KEY)
        assert not _native.available()
        assert not choose_plan(cell, BATCH, TIME).native
        inputs = jax.random.normal(KEY, (BATCH, TIME, 3))
        plain, native = (unroll(cell, inputs, plan=Plan(native=n)).outputs for n in (False, True))
        np.testing.assert_array_equal(plain, native)
    finally:
        _forget()


def test_the_user_can_turn_it_off(monkeypatch):
    cell = make_cell("lstm", 3, hidden_size=UNITS, key=KEY)
    monkeypatch.setenv("MNEMON_NATIVE", "0")
    assert not choose_plan(cell, BATCH, TIME).native
    monkeypatch.setenv("MNEMON_NATIVE", "1")
    assert choose_plan(cell, BATCH, TIME).native
    assert not choose_plan(cell, BATCH, 2).native  # over before it is compiled
    assert native_is_possible(lambda w, c, x: (c @ w + x, c), jnp.eye(3), jnp.ones((2, 3)), jnp.ones((2, 3)))
