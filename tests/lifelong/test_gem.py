"""GEM, A-GEM and EWC keep what they promise."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from mnemon import Copying, evaluate, fit, make_model, make_optimizer
from mnemon.lifelong import EWC, GEM, Anchor, AverageGEM, EpisodicMemory, Recent, project, project_average, remembered
from mnemon.training import Supervised

EASY, HARD = Copying(delay=2, symbols=3, length=2), Copying(delay=5, symbols=3, length=3)


def _model(seed: int = 0):
    return make_model(EASY, "gru", hidden_size=6, key=jax.random.key(seed))


def _flat(tree) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def _vectors(seed: int, tasks: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=size).astype(np.float32), rng.normal(size=(tasks, size)).astype(np.float32)


# The projection


def test_a_gradient_that_harms_nobody_is_left_alone():
    gradient = jnp.array([1.0, 2.0, 0.5])
    previous = jnp.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    kept, violated = project(gradient, previous)
    assert not violated
    assert np.array_equal(kept, gradient)


@pytest.mark.parametrize("seed", range(3))
def test_projection_is_the_nearest_gradient_that_harms_nobody(seed: int):
    """The primal problem (thesis 5.1), solved by SciPy in the space of gradients."""
    gradient, previous = _vectors(seed, 5, 8)
    projected, violated = project(jnp.asarray(gradient), jnp.asarray(previous), margin=0.0, ridge=1e-6)
    gradient, previous = gradient.astype(np.float64), previous.astype(np.float64)
    best = minimize(
        lambda z: 0.5 * np.sum((z - gradient) ** 2),
        gradient,
        jac=lambda z: z - gradient,
        constraints={"type": "ineq", "fun": lambda z: previous @ z, "jac": lambda z: previous},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert violated
    np.testing.assert_allclose(projected, best.x, atol=2e-4)


def test_margin_rules():
    """One task: v* = -g.g_1 / g_1.g_1 = 0.5 in both; added gives 0.5 + 0.3, a bound of 0.3 does not matter."""
    gradient, previous = jnp.array([-1.0, 1.0]), jnp.array([[2.0, 0.0]])
    added, _ = project(gradient, previous, margin=0.3, ridge=1e-9)
    bound, _ = project(gradient, previous, margin=0.3, margin_rule="bound", ridge=1e-9)
    strong, _ = project(gradient, previous, margin=2.0, margin_rule="bound", ridge=1e-9)
    np.testing.assert_allclose(added, [-1 + 0.8 * 2, 1.0], rtol=1e-5)
    np.testing.assert_allclose(bound, [0.0, 1.0], atol=1e-5)
    np.testing.assert_allclose(strong, [-1 + 2.0 * 2, 1.0], rtol=1e-5)


@pytest.mark.parametrize("size", [1e-10, 1e-3, 1.0, 1e5])
def test_dependent_and_zero_gradients_of_any_size(size: float):
    gradient, previous = _vectors(0, 4, 30)
    rows = np.concatenate([previous, previous, -0.5 * gradient[None], np.zeros((1, 30)), -previous[:1]])
    projected, violated = project(jnp.asarray(gradient), jnp.asarray(size * rows, jnp.float32), margin=0.0)
    assert violated
    projected = np.asarray(projected)
    assert np.all(np.isfinite(projected))
    cosines = rows[:9] @ projected / np.maximum(np.linalg.norm(rows[:9], axis=1), 1e-12)
    assert np.all(cosines > -5e-3 * np.linalg.norm(gradient))


def test_an_absolute_ridge_turns_the_projection_off_for_small_gradients():
    gradient, previous = jnp.array([-1.0, 1.0]), jnp.array([[1e-4, 0.0]])
    off, _ = project(gradient, previous, margin=0.0, ridge=1e-3, relative_ridge=False)
    on, _ = project(gradient, previous, margin=0.0, ridge=1e-3)
    np.testing.assert_allclose(off, [-1.0, 1.0], atol=1e-4)
    np.testing.assert_allclose(on, [0.0, 1.0], atol=2e-3)


def test_trees_are_projected_as_one_vector():
    gradient, previous = _vectors(1, 3, 10)
    tree = {"a": jnp.asarray(gradient[:6]).reshape(2, 3), "b": jnp.asarray(gradient[6:])}
    rows = {"a": jnp.asarray(previous[:, :6]).reshape(3, 2, 3), "b": jnp.asarray(previous[:, 6:])}
    whole, _ = project(jnp.asarray(gradient), jnp.asarray(previous))
    np.testing.assert_allclose(_flat(project(tree, rows)[0]), whole, rtol=1e-4, atol=1e-5)


def test_average_projection():
    gradient, reference = jnp.array([3.0, -1.0]), jnp.array([-1.0, -1.0])
    projected, violated = project_average(gradient, reference)
    assert violated
    np.testing.assert_allclose(projected @ reference, 0.0, atol=1e-6)
    for harmless in (jnp.array([1.0, 0.0]), jnp.zeros(2)):
        kept, violated = project_average(gradient, harmless)
        assert not violated
        assert np.array_equal(kept, gradient)


# The memory


def _numbered(first: int, count: int, time: int = 3):
    """Episodes whose inputs are their number."""
    numbers = jnp.arange(first, first + count)
    inputs = jnp.broadcast_to(numbers[:, None], (count, time))
    return EASY.batch(jax.random.key(0), 0, count)._replace(
        inputs=inputs, targets=inputs, mask=jnp.ones((count, time), bool), length=jnp.full((count,), time)
    )


def _recent(slots: int, batches: list[tuple[int, int]], time: int = 3) -> Recent:
    empty = jax.tree.map(jnp.zeros_like, _numbered(0, slots, time))
    recent = Recent(empty, jnp.asarray(0))
    for first, count in batches:
        recent = recent.write(_numbered(first, count, time))
    return recent


@pytest.mark.parametrize("batches", [[(0, 4), (4, 4), (8, 3)], [(0, 11)], [(0, 1), (1, 9), (10, 1)]])
def test_the_ring_keeps_the_last_examples(batches):
    assert _recent(5, batches).newest_first().inputs[:, 0].tolist() == [10, 9, 8, 7, 6]


def test_few_examples_repeat():
    assert _recent(5, [(3, 2)]).newest_first().inputs[:, 0].tolist() == [4, 3, 4, 3, 4]


def test_tasks_of_different_lengths_are_padded_with_steps_that_do_not_count():
    memory = EpisodicMemory(slots=2).with_task(_recent(2, [(1, 2)], time=3)).with_task(_recent(2, [(5, 2)], time=6))
    assert memory.tasks == 2
    together = memory.union()
    assert together.inputs.shape == (4, 6)
    assert together.inputs[0].tolist() == [2, 2, 2, 0, 0, 0]
    assert together.mask.sum(-1).tolist() == [3, 3, 6, 6]
    assert together.length.tolist() == [3, 3, 6, 6]


def test_tasks_of_about_one_length_make_one_batch():
    memory = EpisodicMemory(slots=1)
    for time in (3, 21, 18, 4, 24):
        memory = memory.with_task(_recent(1, [(time, 1)], time=time))
    batches = memory.batches()
    assert [batch.length[:, 0].tolist() for batch in batches] == [[24, 21], [18], [4, 3]]
    assert [batch.inputs.shape for batch in batches] == [(2, 1, 24), (1, 1, 18), (2, 1, 4)]
    assert [batch.length[:, 0].tolist() for batch in memory.batches(2)] == [[24, 21], [18, 4], [3]]


def test_the_levels_of_the_benchmark_make_few_batches_with_little_padding():
    memory = EpisodicMemory(slots=1)
    for level in range(1, 20):
        memory = memory.with_task(_recent(1, [(0, 1)], time=5 + 6 * level))
    batches = eqx.filter_eval_shape(EpisodicMemory.batches, memory)
    steps = sum(batch.mask.size for batch in batches)
    assert len(batches) <= 9
    assert steps < 1.1 * sum(5 + 6 * level for level in range(1, 20))


def test_a_shared_buffer_gives_each_task_its_share_of_the_newest():
    memory = EpisodicMemory(capacity=6).with_task(_recent(6, [(0, 6)]))
    memory = memory.with_task(_recent(3, [(10, 3)]))
    assert [task.inputs[:, 0].tolist() for task in memory.episodes] == [[5, 4, 3], [12, 11, 10]]
    following = memory.for_next_task().episodes
    assert [task.inputs[:, 0].tolist() for task in following] == [[5, 4], [12, 11]]


def test_a_buffer_smaller_than_its_tasks_is_refused():
    memory = EpisodicMemory(capacity=1).with_task(_recent(1, [(0, 1)]))
    with pytest.raises(ValueError, match="capacity=1 cannot work: wanted at least one example for each of 2 tasks"):
        memory.for_next_task()
    with pytest.raises(ValueError, match="slots=0"):
        EpisodicMemory(slots=0)


# In the trainer


def _two_tasks() -> EpisodicMemory:
    memory = EpisodicMemory(slots=4)
    for n, task in enumerate((EASY, HARD)):
        memory = memory.with_task(Recent.empty(task, 4).write(task.batch(jax.random.key(n), 0, 4)))
    return memory


def test_one_pass_gives_the_gradient_of_each_task():
    """Padding and vmap change nothing: the same as a loop over tasks with episodes of their own length."""
    model, memory, inner = _model(), _two_tasks(), Supervised()
    gradient = eqx.filter_jit(lambda task, stored: inner.gradient(model, task, stored, None, key=None)[2])
    padded_together = jax.tree.map(lambda leaf: leaf.reshape(2, 4, *leaf.shape[1:]), memory.union())
    together = jax.jit(jax.vmap(lambda stored: gradient(HARD, stored)))(padded_together)
    for n, task in enumerate((EASY, HARD)):
        alone = gradient(task, memory.episodes[n])
        np.testing.assert_allclose(_flat(alone), _flat(jax.tree.map(lambda g, n=n: g[n], together)), atol=1e-6)


def test_gradient_of_gem_harms_no_task():
    model, memory = _model(), _two_tasks()
    task = Copying(delay=3, symbols=3, length=4)
    episodes = task.batch(jax.random.key(5), 0, 8)
    flipped = episodes._replace(targets=(episodes.targets + 1) % 4)  # what the earlier tasks do not want
    objective = GEM(memory=memory, margin=0.0)
    carry = objective.init_carry(model, task, 8)
    _, outcome, gradient = eqx.filter_jit(objective.gradient)(model, task, flipped, carry, key=None)
    plain_gradient = eqx.filter_jit(lambda stored: Supervised().gradient(model, task, stored, None, key=None)[2])
    plain = plain_gradient(flipped)
    previous = [_flat(plain_gradient(stored)) for stored in memory.episodes]
    assert min(row @ _flat(plain) for row in previous) < 0
    assert outcome.metrics["projected"] == 1
    assert all(row @ _flat(gradient) > -1e-3 * np.linalg.norm(row) * np.linalg.norm(_flat(plain)) for row in previous)


def test_without_earlier_tasks_gem_is_plain_training():
    plain = fit(_model(), EASY, updates=5, log_every=5)
    gem = fit(_model(), EASY, updates=5, log_every=5, objective=GEM())
    trained = [_flat(eqx.filter(result.model, eqx.is_array)) for result in (gem, plain)]
    np.testing.assert_allclose(*trained, rtol=1e-5)
    assert gem.records[0]["projected"] == 0


@pytest.mark.parametrize("method", [GEM, AverageGEM])
def test_less_is_forgotten(method):
    first = fit(_model(), EASY, updates=400, log_every=400, objective=method(), optimizer=make_optimizer(lr=1e-2))
    before = evaluate(first.model, EASY, episodes=200)["loss"]
    options = {"updates": 200, "log_every": 200, "optimizer": make_optimizer(lr=1e-2)}
    plain = fit(first.model, HARD, **options)
    kept = fit(first.model, HARD, objective=method(memory=remembered(first.carry)), **options)
    forgotten = evaluate(plain.model, EASY, episodes=200)["loss"] - before
    assert evaluate(kept.model, EASY, episodes=200)["loss"] - before < 0.6 * forgotten
    assert remembered(kept.carry).tasks == 2


def test_gem_resumes_exactly(tmp_path):
    objective = GEM(memory=_two_tasks())
    whole = fit(_model(), HARD, updates=20, log_every=10, objective=objective)
    fit(_model(), HARD, updates=10, log_every=10, objective=objective, folder=tmp_path)
    resumed = fit(_model(), HARD, updates=20, log_every=10, objective=objective, folder=tmp_path)
    assert resumed.records == whole.records
    for a, b in zip(jax.tree.leaves(whole.carry), jax.tree.leaves(resumed.carry), strict=True):
        assert np.array_equal(a, b)


# EWC


def test_fisher_information_is_the_mean_square_of_single_gradients():
    model, episodes = _model(), EASY.batch(jax.random.key(0), 0, 3)
    anchor = Anchor.at(model, EASY, episodes)
    squares = [
        _flat(
            Supervised().gradient(model, EASY, jax.tree.map(lambda x, n=n: x[n : n + 1], episodes), None, key=None)[2]
        )
        ** 2
        for n in range(3)
    ]
    np.testing.assert_allclose(_flat(anchor.importance), np.mean(squares, 0), rtol=1e-4, atol=1e-9)


def test_ewc_pulls_towards_each_anchor_by_importance():
    model, episodes = _model(), EASY.batch(jax.random.key(0), 0, 3)
    moved = eqx.tree_at(lambda m: m.readout_bias, model, model.readout_bias + 0.5)
    anchor = Anchor.at(model, EASY, episodes)
    objective = EWC((anchor, anchor), strength=7.0)
    loss, _, gradient = objective.gradient(moved, EASY, episodes, None, key=None)
    plain_loss, _, plain = Supervised().gradient(moved, EASY, episodes, None, key=None)
    importance = anchor.importance.readout_bias
    np.testing.assert_allclose(loss - plain_loss, 7.0 * 0.25 * importance.sum(), rtol=1e-4)
    np.testing.assert_allclose(gradient.readout_bias - plain.readout_bias, 2 * 7.0 * importance * 0.5, rtol=1e-3)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: GEM(margin=-1.0), "margin=-1.0"),
        (lambda: GEM(ridge=0.0), "ridge=0.0"),
        (lambda: AverageGEM(batch=0), "batch=0"),
        (lambda: EWC(strength=-1.0), "strength=-1.0"),
    ],
)
def test_bad_options(make, match):
    with pytest.raises(ValueError, match=match):
        make()
