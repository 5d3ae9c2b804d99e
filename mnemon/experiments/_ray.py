"""The grid of an experiment on a Ray cluster."""

import os
from collections.abc import Iterator
from typing import Any

from .._errors import MnemonError
from ._runner import Waiting, do, environment, thread_flags

# A job whose worker dies is begun again, and goes on from its checkpoint, so many times.
_RETRIES = 5


def on_ray(waiting: list[Waiting], jobs: int, address: str | None) -> Iterator[str]:
    """Do the jobs, each on one processor of the cluster; yields the name of each when it is done.

    Without an address a cluster of `jobs` processors is started here, unless `RAY_ADDRESS` names one.
    """
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise MnemonError("Ray is not installed; pip install 'mnemon[ray]'") from error
    here = address is None and "RAY_ADDRESS" not in os.environ
    started = not ray.is_initialized()
    if started:
        options: dict[str, Any] = {"num_cpus": jobs, "include_dashboard": False} if here else {"address": address}
        # Workers have one thread each, as the processes of this machine have, and do not step back for other work.
        with environment({"RAY_worker_niceness": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}):
            ray.init(log_to_driver=False, runtime_env={"env_vars": thread_flags(2)}, **options)
    try:
        remote = ray.remote(num_cpus=1, max_retries=_RETRIES)(do)
        left = [remote.remote(job) for job in waiting]
        while left:
            (first, *_), left = ray.wait(left)
            try:
                yield ray.get(first)
            except ray.exceptions.RayTaskError as error:
                raise error.cause from None
    finally:
        if started:
            ray.shutdown()
