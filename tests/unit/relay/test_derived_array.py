"""Weights that are derived from others: computed once, as long as one user holds them."""

from __future__ import annotations

import numpy as np
import pytest

from byoc_mlir.dialects.relay.constant import Array, derived_array

SOURCE = np.arange(24, dtype=np.float32).reshape(4, 6)


class Turned:
    """Mock that transposes matrices, and counts."""

    def __init__(self) -> None:
        self.count = 0

    def of(self, source: Array, how: str = "turned") -> Array:
        def make() -> Array:
            self.count += 1
            return np.ascontiguousarray(source.T)

        return derived_array(how, [source], make)


def test_equal_sources_are_computed_once() -> None:
    turned = Turned()
    first = turned.of(SOURCE)
    np.testing.assert_array_equal(first, SOURCE.T)
    assert turned.of(SOURCE.copy()) is first
    assert turned.count == 1


def test_other_sources_and_other_computations_are_not_mixed_up() -> None:
    turned = Turned()
    held = [turned.of(SOURCE), turned.of(SOURCE + 1), turned.of(SOURCE, "otherwise")]
    assert turned.count == len(held)
    np.testing.assert_array_equal(held[1], (SOURCE + 1).T)


def test_nothing_is_kept_alive() -> None:
    turned = Turned()
    array = turned.of(SOURCE + 2)
    del array
    turned.of(SOURCE + 2)
    assert turned.count == 2


@pytest.mark.parametrize("size", [1, 1000, 1 << 18])
def test_what_is_made_begins_with_a_cache_line(size: int) -> None:
    source = np.arange(size + 1, dtype=np.float32)
    made = derived_array("rest", [source], lambda: source[1:])
    assert made.ctypes.data % 64 == 0
    np.testing.assert_array_equal(made, source[1:])
