"""Evaluation of random bits; see `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from byoc_mlir.dialects.relay import random as relay
from byoc_mlir.dialects.relay.base import RelayOp, shape_of
from byoc_mlir.tensors import Array


def threefry(key: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """Returns both words of Threefry-2x32 for counters `(x, y)`, all of `uint32`."""
    words = (key[0], key[1], key[0] ^ key[1] ^ np.uint32(relay.PARITY))
    x, y = x + words[0], y + words[1]
    for turn in range(relay.ROUNDS):
        rotation = relay.ROTATIONS[turn % len(relay.ROTATIONS)]
        x = x + y
        y = (y << np.uint32(rotation) | y >> np.uint32(32 - rotation)) ^ x
        if turn % 4 == 3:
            number = turn // 4 + 1
            x, y = x + words[number % 3], y + words[(number + 1) % 3] + np.uint32(number)
    return x, y


def _random_bits(op: relay.RandomBitsOp, key: Array) -> Array:
    positions = np.arange(shape_of(op.output)[0], dtype=np.uint32)
    return threefry(key, positions, np.full_like(positions, op.stream.value.data))[0]


def _random_key(op: relay.RandomKeyOp) -> Array:
    return np.random.default_rng().integers(2**32, size=2, dtype=np.uint32)


FUNCTIONS: dict[type[RelayOp], Callable[..., Array | Sequence[Array]]] = {
    relay.RandomBitsOp: _random_bits,
    relay.RandomKeyOp: _random_key,
}
