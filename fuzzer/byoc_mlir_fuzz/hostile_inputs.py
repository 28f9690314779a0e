"""Hostile inputs of a run: values at the ends of their type, other types, shapes and names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, TypeAlias

import numpy as np

from byoc_mlir.tensors import Array

_Feeds: TypeAlias = dict[str, Any]
_FLOATS = (np.nan, np.inf, -np.inf, -0.0, 1e-40, 3e38, 65504.0)
_DTYPES = ("bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64", "O", "U3")
_NO_ARRAYS = (None, "x", b"x", 1.5, [], [[1], [1, 2]], {}, object(), np.ones, 1 << 70)


def hostile_inputs(rng: Random, inputs: Mapping[str, Array]) -> _Feeds:
    """Returns inputs after one or two changes."""
    changed: _Feeds = dict(inputs)
    for _ in range(rng.choice([1, 1, 2])):
        name = rng.choice(sorted(inputs))
        rng.choice(_CHANGES)(rng, changed, name, inputs[name])
    return changed


def _ends(rng: Random, feeds: _Feeds, name: str, array: Array) -> None:
    """Puts values at the ends of the type, and bytes that are no truth value, into the array."""
    kind = array.dtype
    if kind.kind == "b":
        numbers = [rng.choice([0, 1, 2, 127, 128, 255]) for _ in range(array.size)]
        feeds[name] = np.array(numbers, np.uint8).view(bool).reshape(array.shape)
        return
    ends: Sequence[Any] = _FLOATS
    if kind.kind in "iu":
        least, most = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
        ends = (least, least + 1, most - 1, most, most // 2, 0, 1, 2, 3)
    with np.errstate(all="ignore"):
        chosen = np.array([rng.choice(ends) for _ in range(array.size)])
        feeds[name] = chosen.astype(kind).reshape(array.shape)


def _dtype(rng: Random, feeds: _Feeds, name: str, array: Array) -> None:
    kind = rng.choice([*_DTYPES, array.dtype.newbyteorder()])
    if array.dtype.isbuiltin == 2:  # NumPy writes no texts of others' types, as bfloat16
        array = array.astype(np.float32)
    with np.errstate(all="ignore"):
        feeds[name] = array.astype(kind)


def _shape(rng: Random, feeds: _Feeds, name: str, array: Array) -> None:
    flat = array.ravel()
    others = (array[None], flat, array.T, flat[:0], np.concatenate([flat, flat]))
    feeds[name] = rng.choice([*others, np.broadcast_to(array, (3, *array.shape))])


def _layout(rng: Random, feeds: _Feeds, name: str, array: Array) -> None:
    """Puts the elements at other places: backwards, all at one place, unaligned or read-only."""
    kind = rng.randrange(4)
    if kind == 0:
        feeds[name] = np.flip(np.array(np.flip(array)))
    elif kind == 1:
        feeds[name] = np.broadcast_to(array.ravel()[:1].sum(dtype=array.dtype), array.shape)
    elif kind == 2:
        data = np.frombuffer(b"\0" + array.tobytes(), np.uint8)[1:]
        feeds[name] = data.view(array.dtype).reshape(array.shape)
    else:
        feeds[name] = np.asfortranarray(array)
        feeds[name].flags.writeable = False


def _name(rng: Random, feeds: _Feeds, name: str, array: Array) -> None:
    if rng.random() < 0.7:
        feeds.pop(name, None)
    if rng.random() < 0.7:
        feeds[rng.choice(["", "x" * 1000, "\x00", f"{name} ", "é"])] = array


def _no_array(rng: Random, feeds: _Feeds, name: str, array: Array) -> None:
    feeds[name] = rng.choice([*_NO_ARRAYS, array.tolist(), array.tobytes()])


_CHANGES: Sequence[Callable[[Random, _Feeds, str, Array], None]] = (
    *(_ends, _ends, _ends, _dtype, _shape, _layout, _name, _no_array),
)
