"""The metrics of lifelong learning on a matrix small enough to do by hand."""

import numpy as np
import pytest

from mnemon.lifelong import (
    average_accuracy,
    backward_transfer,
    current_accuracy,
    forward_transfer,
    future_accuracy,
    levels_cleared,
    previous_accuracy,
)

# Three tasks trained of four.
R = np.array([[0.9, 0.6, 0.4, 0.3], [0.7, 0.8, 0.5, 0.2], [0.6, 0.9, 0.7, 0.1]])
UNTRAINED = np.array([0.5, 0.4, 0.3, 0.2])


def test_by_hand():
    assert average_accuracy(R) == pytest.approx((0.6 + 0.9 + 0.7) / 3)
    assert backward_transfer(R) == pytest.approx(((0.6 - 0.9) + (0.9 - 0.8)) / 2)
    assert forward_transfer(R, UNTRAINED) == pytest.approx(((0.6 - 0.4) + (0.5 - 0.3)) / 2)
    np.testing.assert_allclose(current_accuracy(R), [0.9, 0.8, 0.7])
    np.testing.assert_allclose(previous_accuracy(R), [np.nan, 0.7, 0.75])
    np.testing.assert_allclose(future_accuracy(R), [1.3 / 3, 0.35, 0.1])


def test_levels_end_at_the_first_failure():
    assert levels_cleared(R, 0.8) == 2
    assert levels_cleared(R, 0.5) == 3
    assert levels_cleared(R, 0.95) == 0
    assert levels_cleared(np.diag([0.9, 0.1, 0.9]), 0.8) == 1


def test_a_single_task():
    one = np.array([[0.9]])
    assert backward_transfer(one) == forward_transfer(one, np.array([0.5])) == 0.0
    assert np.isnan(previous_accuracy(one)[0])
    assert np.isnan(future_accuracy(one)[0])


def test_bad_input():
    with pytest.raises(ValueError, match=r"matrix.shape=\(3, 2\) cannot work"):
        average_accuracy(np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"untrained.shape=\(2,\) cannot work"):
        forward_transfer(R, np.zeros(2))
