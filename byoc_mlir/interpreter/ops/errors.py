"""Error of ops that the interpreter tier does not compute, and checks that raise it."""

from __future__ import annotations


class NotInterpretedError(NotImplementedError):
    """Unsupported case of an op, or a wrong model: the compiled program has to run it."""


def axis_of(axis: int, rank: int) -> int:
    """Returns an axis counted from the front.

    Raises:
        NotInterpretedError: there is no such axis.
    """
    if not -rank <= axis < rank:
        raise NotInterpretedError(f"axis {axis} of a tensor of rank {rank}")
    return axis % rank
