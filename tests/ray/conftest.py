"""Ray on this machine, for these tests alone: no usage reports, no dashboard."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"


@pytest.fixture(scope="session")
def ray_machine() -> Iterator[None]:
    """Starts Ray with room for two workers."""
    import ray

    ray.init(
        address="local",
        include_dashboard=False,
        num_cpus=3,
        object_store_memory=100 << 20,
        log_to_driver=False,
    )
    yield
    ray.shutdown()
