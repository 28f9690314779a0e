"""Work of the processes of a pool; spawned ones import it."""

from __future__ import annotations

import numpy as np
from process_models import Floats, convolution, inputs

from byoc_mlir.runtime import Executable

RUNS = 100

_given: list[Executable] = []


def prepare(executable: Executable) -> None:
    """Stores the executable, once in each process."""
    _given.append(executable)


def work(seed: int) -> Floats:
    """Returns the result of several runs, which must be equal."""
    feeds = inputs(convolution(8), seed)
    first = _given[0].run(feeds)["y"]
    assert all(np.array_equal(_given[0].run(feeds)["y"], first) for _ in range(RUNS - 1))
    return first
