"""Traces and their file."""

import dataclasses

import jax
import numpy as np
import pytest
from safetensors.numpy import save_file

from mnemon import Copying, make_model
from mnemon._errors import MnemonError
from mnemon.lens import Trace, load_trace, save_trace, trace, trace_run


def _trace() -> Trace:
    task = Copying(delay=3, length=2, symbols=4)
    model = make_model(task, "lstm", hidden_size=5, key=jax.random.key(0))
    traced = trace(model, task, jax.random.key(1))
    return dataclasses.replace(traced, about={"cell": "lstm", "shown": task.show(traced.episode)})


def test_a_trace_holds_the_episode_and_each_part_of_the_state():
    traced = _trace()
    assert traced.inputs.shape == (7,)
    assert {name: values.shape for name, values in traced.state.items()} == {"hidden": (7, 5), "cell": (7, 5)}


def test_a_saved_trace_is_the_trace(tmp_path):
    traced = _trace()
    loaded = load_trace(save_trace(traced, tmp_path / "deep" / "trace.safetensors"))
    assert loaded.about == traced.about
    assert list(loaded.state) == list(traced.state)
    for name in ("inputs", "targets", "mask", "outputs"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(traced, name))
    np.testing.assert_array_equal(loaded.state["cell"], traced.state["cell"])
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["trace.safetensors"]


def test_what_is_no_sound_trace_is_refused(tmp_path):
    path = save_trace(_trace(), tmp_path / "trace.safetensors")
    with pytest.raises(MnemonError, match=r"none.safetensors does not exist; make a trace with `mnemon lens trace"):
        load_trace(tmp_path / "none.safetensors")
    whole = path.read_bytes()
    for damaged in (whole[:-20], whole[:40], b"", b"\xff" * 100):
        path.write_bytes(damaged)
        with pytest.raises(MnemonError, match="is damaged"):
            load_trace(path)
    save_file({"weights": np.zeros(3)}, path)
    with pytest.raises(MnemonError, match="is not a trace of this version"):
        load_trace(path)
    traced = _trace()
    save_trace(dataclasses.replace(traced, mask=traced.mask[:3]), path)
    with pytest.raises(MnemonError, match=r"its arrays have \[3, 7\] steps"):
        load_trace(path)


def test_a_run_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(MnemonError, match="is not a run"):
        trace_run(tmp_path / "nothing")
