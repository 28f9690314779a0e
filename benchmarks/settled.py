"""Requests away from thresholds, whose outputs do not depend on rounding.

A detector compares scores and overlaps with thresholds, and with each other: it returns a box or
not. Some of the hundred thousand scores of an image are so close to a threshold that the last
digits of a sum decide, and each engine adds in its own order. Such outputs cannot be compared, so
requests are drawn until their scores are further away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from engines.onnxruntime import Engine

from byoc_mlir.testing.reference import largest_relative_error

Inputs: TypeAlias = dict[str, np.ndarray[Any, Any]]

_NOISE = 2e-5
"""Relative noise of each element. It moves the scores of `detector` by up to 4e-5; rounding moves
them by up to 8e-6 if Winograd's algorithm computes convolutions.
"""
_DRAWS = 4
_SAME = 1e-3
"""Largest relative error of outputs with the same boxes."""


def settled(model: Path, requests: Iterable[Inputs]) -> Iterator[Inputs]:
    """Yields the requests for which ONNX Runtime's outputs stay equal under some noise."""
    engine = Engine(model, 1, "f32")
    for request in requests:
        answer = engine.run(request)
        if all(_are_same(engine.run(noisy), answer) for noisy in _with_noise(request)):
            yield request


def _with_noise(request: Inputs) -> Iterator[Inputs]:
    """Yields the request with noise added and subtracted: one of the two moves a score towards its
    threshold.
    """
    rng = np.random.default_rng(0)
    for _ in range(_DRAWS):
        drawn = {name: rng.standard_normal(array.shape) for name, array in request.items()}
        for noise in (_NOISE, -_NOISE):
            yield {
                name: (array * (1 + noise * drawn[name])).astype(array.dtype)
                for name, array in request.items()
            }


def _are_same(found: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    return all(
        largest_relative_error(found[name], array) <= _SAME for name, array in expected.items()
    )
