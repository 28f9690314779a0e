"""Differences between an array and the expected one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

_WIDE = np.dtype(np.float64)


@dataclass(frozen=True)
class Difference:
    """Difference between an array and the expected one.

    NaN and infinities at the same indices do not differ; those at other indices differ infinitely.
    """

    largest: float = 0.0
    mean: float = 0.0
    at: tuple[int, ...] = ()
    """Index of the largest difference."""
    found: float = 0.0
    """Element found at that index."""
    wanted: float = 0.0
    """Expected element at that index."""
    scale: float = 0.0
    """Largest finite magnitude of the expected array."""
    problem: str = ""
    """Reason why the elements cannot be compared, or ""."""

    @property
    def relative(self) -> float:
        """Returns the largest difference relative to the largest magnitude."""
        return self.largest / max(self.scale, 1e-30) if self.largest else 0.0


def difference(got: Array, want: Array) -> Difference:
    """Computes the difference of two arrays of numbers or booleans, in double precision."""
    if got.shape != want.shape:
        problem = f"its shape is {list(got.shape)}, not {list(want.shape)}"
        return Difference(largest=float("inf"), mean=float("inf"), problem=problem)
    if want.size == 0:
        return Difference()
    found, wanted = np.asarray(got, _WIDE), np.asarray(want, _WIDE)
    apart = distance(found, wanted)
    at = np.unravel_index(int(np.argmax(apart)), apart.shape)
    return Difference(
        float(apart[at]),
        float(apart.mean()),
        tuple(map(int, at)),
        float(found[at]),
        float(wanted[at]),
        float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)),
    )


def is_close(got: Array, want: Array, accepted: Array | float) -> npt.NDArray[np.bool_]:
    """Returns for each element if its distance is accepted; see `difference`.

    Args:
        accepted: for each element or for all; an infinity also accepts NaN and infinities.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        return distance(got, want) <= accepted


def largest_relative_error(got: Array, want: Array) -> float:
    """Returns the largest absolute difference over the largest absolute value of `want`.

    It is infinite if the shapes differ, or if one side has a NaN or an infinity that the other
    lacks.
    """
    return difference(got, want).relative


def is_float(dtype: np.dtype[Any]) -> bool:
    """True if the type is a floating-point one, including types of few bits."""
    return dtype.kind == "f" or dtype.name.startswith(("bfloat", "float"))


def distance(got: Array, want: Array) -> Array:
    """Returns the distance of each element; see `difference`."""
    found, wanted = np.asarray(got, _WIDE), np.asarray(want, _WIDE)
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    finite = np.isfinite(found) & np.isfinite(wanted)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(found - wanted)
    return np.where(same, 0.0, np.where(finite, apart, np.inf))
