"""The error of ops that are not to answer, and checks that raise it."""

from __future__ import annotations


class NotInterpretedError(NotImplementedError):
    """An op does not do this, or the model is wrong: the compiled program is to answer."""


def axis_of(axis: int, rank: int) -> int:
    """Returns an axis counted from the first one.

    Raises:
        NotInterpretedError: there is no such axis.
    """
    if not -rank <= axis < rank:
        raise NotInterpretedError(f"axis {axis} of a tensor of rank {rank}")
    return axis % rank
