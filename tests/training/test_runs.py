"""What a run can be told: validation, schedules, lessons, layers around the cell."""

import dataclasses
import json
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mnemon import Copying, make_model
from mnemon._errors import BadValue, MnemonError
from mnemon.cells import count_parameters
from mnemon.cli import main
from mnemon.lifelong import deepen, largest_difference
from mnemon.training import evaluate, make_optimizer, train_curriculum
from mnemon.training.runs import RunConfig, open_run, train_run, with_cell_options

TINY: dict[str, Any] = {"delay": 3, "length": 2}


def _quiet(message: str) -> None:
    del message


def _config(**changes) -> RunConfig:
    return RunConfig("copying", "gru", TINY, {"hidden_size": 6}, steps=30, log_every=5, **changes)


def test_validation_keeps_the_best_model_and_stops_when_patience_ends(tmp_path):
    # A learning rate far too high: the loss rises after some update.
    config = dataclasses.replace(_config(patience=2, validation_episodes=40, lr=3.0), steps=200)
    result = train_run(config, tmp_path / "run", report=_quiet)
    losses = [record["valid_loss"] for record in result.records]
    best = int(np.argmin(losses))
    assert len(losses) == best + 3
    assert result.update < 200
    kept = evaluate(result.model, config.make_task(), episodes=40, batch=10)
    assert kept["loss"] == pytest.approx(min(losses), rel=1e-5)
    _, loaded = open_run(tmp_path / "run").load(report=_quiet)
    np.testing.assert_array_equal(loaded.readout_weights, result.model.readout_weights)
    again = train_run(config, tmp_path / "run", resume=True, report=_quiet)
    assert again.update == result.update


def test_a_validated_run_resumes_exactly(tmp_path):
    config = _config(patience=4, validation_episodes=20)
    whole = train_run(config, tmp_path / "whole", report=_quiet)
    train_run(dataclasses.replace(config, steps=12), tmp_path / "parts", report=_quiet)
    rest = train_run(config, tmp_path / "parts", resume=True, report=_quiet)
    assert [r for r in rest.records if r["step"] % 5 == 0][-1] == whole.records[-1]
    np.testing.assert_array_equal(rest.model.readout_weights, whole.model.readout_weights)


def test_patience_needs_something_to_validate_on():
    with pytest.raises(BadValue, match="patience=0"):
        _config(patience=0)


def test_schedules_fall_to_nothing_and_fix_the_length(tmp_path):
    parameters = before = jnp.ones(3)
    for schedule, last in (("constant", 1.0), ("linear", 0.1), ("cosine", 0.0245)):
        optimizer = make_optimizer("sgd", 1.0, None, schedule=schedule, steps=10)
        state = optimizer.init(parameters)
        for _ in range(10):
            before = parameters
            steps, state = optimizer.update(jnp.ones(3), state, parameters)
            parameters = jnp.asarray(optax.apply_updates(before, steps))
        np.testing.assert_allclose(parameters - before, -last, rtol=2e-2)
    with pytest.raises(MnemonError, match="did you mean 'cosine'"):
        _config(lr_schedule="cosin")
    config = _config(lr_schedule="linear")
    train_run(config, tmp_path / "run", report=_quiet)
    with pytest.raises(MnemonError, match="steps 30 not 40"):
        train_run(dataclasses.replace(config, steps=40), tmp_path / "run", resume=True, report=_quiet)


def test_layers_around_the_cell():
    task = Copying(**TINY)
    sizes: dict[str, Any] = {"embedding_size": 5, "input_layer_size": 7, "output_layer_size": 4}
    model = make_model(task, "rnn", hidden_size=3, **sizes, key=jax.random.key(0))
    plain = make_model(task, "rnn", hidden_size=3, embedding_size=7, key=jax.random.key(0))
    inputs = task.batch(jax.random.key(1), 0, 2)
    seen = model.embed(inputs.inputs)
    assert seen.shape == (2, 7, 7)
    assert float(seen.min()) == 0.0
    assert model.embedding is not None
    assert model.input_layer is not None
    assert model.output_layer is not None
    x = model.embedding[inputs.inputs] @ model.input_layer.weights
    np.testing.assert_allclose(seen, jnp.maximum(x, 0.0), rtol=1e-6)
    outputs, result = model(inputs)
    hidden = jnp.maximum(result.outputs @ model.output_layer.weights, 0.0)
    np.testing.assert_allclose(outputs, hidden @ model.readout_weights, rtol=1e-4, atol=1e-6)
    extra = (10 * 5 + 5 * 7 + 7) - 10 * 7 + (3 * 4 + 4) + (4 - 3) * task.output_size
    assert count_parameters(model) == count_parameters(plain) + extra
    with pytest.raises(BadValue, match="layer size=0"):
        make_model(task, "rnn", hidden_size=3, input_layer_size=0, key=jax.random.key(0))
    half = make_model(task, "rnn", hidden_size=3, **sizes, embedding_scale=0.5, key=jax.random.key(0))
    np.testing.assert_array_equal(half.embedding, 0.5 * model.embedding)
    with pytest.raises(BadValue, match="embedding_scale=0"):
        make_model(task, "rnn", hidden_size=3, embedding_size=5, embedding_scale=0.0, key=jax.random.key(0))


def test_a_network_with_layers_can_be_deepened():
    task = Copying(**TINY)
    model = make_model(task, "lstm", hidden_size=4, output_layer_size=5, key=jax.random.key(0))
    layer = make_model(task, "lstm", hidden_size=4, embedding_size=4, key=jax.random.key(2)).cell
    deeper = deepen(model, layer)
    assert largest_difference(model, deeper, task.batch(jax.random.key(1), 0, 3)) < 1e-2


def test_lessons_from_the_command_line(capsys, tmp_path):
    run = str(tmp_path / "run")
    words = ["train", "traversal", "rnn", "--hidden-size", "3", "--lessons", "2", "--validation-episodes", "4"]
    words += ["--log-every", "2", "--batch", "2", "--out", run, "--json"]
    main([*words, "--steps", "2"])
    main([*words, "--steps", "4", "--resume"])
    *records, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["lesson"] for record in records if "lesson" in record] == [1, 1]
    assert "valid_sequences" in records[-1]
    assert last["step"] == 4
    main(["evaluate", run, "--episodes", "4", "--graph", "london", "--json"])
    assert json.loads(capsys.readouterr().out)["step"] == 4
    with pytest.raises(SystemExit):
        main(["train", "copying", "rnn", "--lessons", "2"])
    assert "lessons=2 cannot work" in capsys.readouterr().err


def test_a_memory_can_grow_with_the_lessons(tmp_path):
    """The state of training goes along: with the same slots throughout, it is the run without the option."""
    options = {"hidden_size": 4, "memory_slots": 5, "word_size": 3, "read_heads": 1}
    config = RunConfig("traversal", "dnc", {}, options, steps=4, batch=2, lessons=2, log_every=2, validation_episodes=2)
    assert dataclasses.replace(config, lesson_options=["2:memory_slots=9", "3:memory_slots=7"]).cell_options_in(3) == {
        "memory_slots": 7
    }

    def taught(*lesson_options: str, name: str) -> tuple[Any, list]:
        seen: list[int] = []

        def in_lesson(model, lesson):
            model = with_cell_options(model, changed, changed.cell_options_in(lesson))
            seen.append(model.cell.init_state().memory.shape[0])
            return model

        changed = dataclasses.replace(config, lesson_options=lesson_options)
        lessons = dataclasses.replace(changed.make_lessons(), pass_mark=0.0)  # each is passed at once
        common: dict[str, Any] = {"updates": 4, "batch": 2, "in_lesson": in_lesson, "folder": tmp_path / name}
        result = train_curriculum(changed.make_model(), lessons, report=_quiet, **common)
        return result, seen

    plain, slots = taught(name="plain")
    assert slots == [5, 5]
    whole = train_curriculum(
        config.make_model(), dataclasses.replace(config.make_lessons(), pass_mark=0.0), updates=4, batch=2
    )
    assert eqx.tree_equal(jax.tree.leaves(plain.model), jax.tree.leaves(whole.model))
    grown, slots = taught("2:memory_slots=9", name="grown")
    assert slots == [5, 9]
    assert grown.model.cell.init_state().memory.shape == (9, 3)
    assert not eqx.tree_equal(jax.tree.leaves(grown.model), jax.tree.leaves(whole.model))
    with pytest.raises(BadValue, match=r"lesson_options='9:slots' cannot work: wanted LESSON:NAME=NUMBER"):
        dataclasses.replace(config, lesson_options=["9:slots"])
    wrong = dataclasses.replace(config, lesson_options=["2:hidden_size=9"])
    with pytest.raises(BadValue, match="would have other shapes"):
        train_run(wrong, tmp_path / "wrong", report=_quiet)
    assert not (tmp_path / "wrong").exists()
    with pytest.raises(MnemonError, match="did you mean 'memory_slots'"):
        dataclasses.replace(config, lesson_options=["2:memory_slot=9"])
    with pytest.raises(BadValue, match="of a run with lessons"):
        _config(lesson_options=["2:hidden_size=9"])


def test_a_trained_network_can_have_a_larger_memory(capsys, tmp_path):
    options = {"hidden_size": 4, "word_size": 3, "read_heads": 2}
    config = RunConfig("copying", "dnc", TINY, {**options, "memory_slots": 5}, steps=3, batch=2)
    larger = dataclasses.replace(config, cell_options={**options, "memory_slots": 9})
    # Initial parameters do not depend on the slots, so the networks differ in nothing else.
    assert eqx.tree_equal(with_cell_options(config.make_model(), config, {"memory_slots": 9}), larger.make_model())
    trained = train_run(config, tmp_path / "run", report=_quiet).model
    swapped = with_cell_options(trained, config, {"memory_slots": 9})
    assert swapped.cell.init_state().memory.shape == (9, 3)
    assert eqx.tree_equal(jax.tree.leaves(swapped), jax.tree.leaves(trained))
    assert with_cell_options(trained, config, {}) is trained
    with pytest.raises(BadValue, match=r"hidden_size=5.*cell.controller.* would have other shapes"):
        with_cell_options(trained, config, {"hidden_size": 5})

    def scores(*words: str) -> dict[str, Any]:
        main(["evaluate", str(tmp_path / "run"), "--episodes", "10", "--json", *words])
        return json.loads(capsys.readouterr().out)

    found = scores("--memory-slots", "9")
    assert found["cell_options"]["memory_slots"] == 9
    assert found["loss"] == pytest.approx(evaluate(swapped, config.make_task(), episodes=10)["loss"], rel=1e-5)
    assert found["loss"] != scores()["loss"]
