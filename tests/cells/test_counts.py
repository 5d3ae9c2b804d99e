"""Numbers of parameters, with the linear readout, of the cells that the thesis compares."""

import equinox as eqx
import jax
import pytest

from mnemon.cells import count_parameters, make_cell

COPY, PIXELS = (10, 9), (1, 10)  # inputs and outputs of the copying tasks and of sequential MNIST


@pytest.mark.parametrize(
    ("name", "task", "options", "count"),
    [
        ("rnn-orth", COPY, {}, 23_604),
        ("rnn-id", COPY, {}, 23_604),
        ("lstm", COPY, {}, 23_529),
        ("lstm-chrono", COPY, {}, 23_529),
        ("ln-lstm", COPY, {}, 23_333),
        ("bn-lstm", COPY, {}, 23_400),
        ("gru", COPY, {}, 23_625),
        ("janet", COPY, {}, 23_542),
        ("sru", COPY, {}, 23_010),
        ("nru", COPY, {}, 23_569),
        ("rnn-orth", PIXELS, {"hidden_size": 400}, 165_610),
        ("rnn-id", PIXELS, {"hidden_size": 400}, 165_610),
        ("lstm", PIXELS, {"hidden_size": 200}, 164_210),
        ("gru", PIXELS, {"hidden_size": 232}, 165_194),
        ("janet", PIXELS, {"hidden_size": 283}, 164_150),
        ("sru", PIXELS, {"hidden_size": 150, "statistics_size": 155, "recurrent_size": 50}, 164_770),
        ("nru", PIXELS, {"hidden_size": 212, "memory_size": 256}, 165_554),
        ("spectral-rnn", COPY, {}, 23_461),
        ("urnn", COPY, {}, 22_569),
        ("urnn", COPY, {"hidden_size": 128}, 6_153),
        ("urnn", PIXELS, {"hidden_size": 512}, 16_394),
        ("full-urnn", COPY, {}, 21_641),
        ("eurnn", PIXELS, {"hidden_size": 1024}, 17_418),
        ("eurnn", PIXELS, {"hidden_size": 1024, "complex_valued": True}, 24_586),
        ("eurnn", PIXELS, {"hidden_size": 1024, "capacity": 2}, 13_321),
        ("goru", COPY, {"hidden_size": 64}, 11_081),
        ("goru", COPY, {"hidden_size": 128}, 38_601),
        ("goru", PIXELS, {"hidden_size": 256}, 136_202),
    ],
)
def test_counts(name, task, options, count):
    inputs, outputs = task
    cell = eqx.filter_eval_shape(lambda key: make_cell(name, inputs, key=key, **options), jax.random.key(0))
    assert count_parameters(cell) + (cell.output_size + 1) * outputs == count
