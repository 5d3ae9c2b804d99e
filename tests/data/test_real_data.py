"""The real data that are here are those of the catalogue."""

import pytest

from mnemon.data import DATASETS, check
from tests import realdata

HERE = sorted(set(DATASETS) - {"snli"})  # of SNLI only a subset of the training pairs


@pytest.mark.parametrize("name", HERE)
def test_checksums(name):
    assert {row["state"] for row in check(name, realdata.FOLDER)} == {"right"}
