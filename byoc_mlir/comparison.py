"""How far an array is from what it should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

_WIDE = np.dtype(np.float64)


@dataclass(frozen=True)
class Difference:
    """How far an array is from what it should be; not-a-numbers and infinities in the same places
    do not differ, those in other places do infinitely.
    """

    largest: float = 0.0
    mean: float = 0.0
    at: tuple[int, ...] = ()
    """Where the largest one is."""
    found: float = 0.0
    """What is there."""
    wanted: float = 0.0
    """What should be there."""
    scale: float = 0.0
    """The largest finite magnitude that there should be."""
    problem: str = ""
    """Why the elements cannot be compared, if so."""

    @property
    def relative(self) -> float:
        """The largest difference relative to the largest magnitude."""
        return self.largest / max(self.scale, 1e-30) if self.largest else 0.0


def difference(got: Array, want: Array) -> Difference:
    """The difference of two arrays of numbers or booleans, computed in double precision."""
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
    """Whether each element is no further off than is accepted; as `difference` has it.

    Args:
        accepted: for each element or for all; an infinity accepts what is not finite, too.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        return distance(got, want) <= accepted


def largest_relative_error(got: Array, want: Array) -> float:
    """Largest absolute difference over the largest absolute value of `want`.

    Infinite where the shapes differ or one side has a NaN or an infinity that the other lacks.
    """
    return difference(got, want).relative


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether the type is a floating-point one, those of few bits included."""
    return dtype.kind == "f" or dtype.name.startswith(("bfloat", "float"))


def distance(got: Array, want: Array) -> Array:
    """How far each element is off; as `difference` has it."""
    found, wanted = np.asarray(got, _WIDE), np.asarray(want, _WIDE)
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    finite = np.isfinite(found) & np.isfinite(wanted)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(found - wanted)
    return np.where(same, 0.0, np.where(finite, apart, np.inf))
