"""The conformance suites compile some hundreds of small programs and run each of them once."""

import jax
import pytest


@pytest.fixture(autouse=True)
def _compile_fast():
    """Spend no time on making programs fast that run once."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
