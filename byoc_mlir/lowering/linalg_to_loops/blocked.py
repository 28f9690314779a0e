"""Element-wise nests that read along another loop than they write, cut into square blocks.

A line of the source has several elements of a block and stays in the first cache until all of them
are used; one loop after the other would read each line as often as it has elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from byoc_mlir.lowering.linalg_to_loops.nest import Nest, split_loop

ALONG, ACROSS = "blocked", "blocked_across"
"""Schedules: the loop along which is written is the innermost one of a block, or the other one."""

_SIDES = (16, 8, 4)
"""Elements along each side of a block, as far as sizes are multiples."""


@dataclass(frozen=True)
class Blocked:
    """A nest whose loops are cut, and the order in which they run."""

    nest: Nest
    loops: tuple[int, ...]


def blocked(nest: Nest, schedule: str) -> Blocked | None:
    """The nest in blocks; `None` where the schedule is another one."""
    lines = _lines(nest) if schedule in (ALONG, ACROSS) else None
    if lines is None:
        return None
    read, written = lines
    first, second = sorted(lines)
    cut = split_loop(nest, second, _side(nest, second))
    cut = split_loop(cut, first, _side(nest, first))
    inner = {first: first + 1, second: second + 2}
    outer = (loop for loop in cut.parallel if loop not in inner.values())
    order = (read, written) if schedule == ALONG else (written, read)
    return Blocked(cut, (*outer, *(inner[loop] for loop in order)))


def block_schedules(nest: Nest) -> Sequence[str]:
    """The schedules that cut a nest; none where there are no two such loops."""
    return () if _lines(nest) is None else (ALONG, ACROSS)


def _lines(nest: Nest) -> tuple[int, int] | None:
    """The loops along which an input and the result lie side by side, if these can be cut."""
    if nest.reductions or nest.uses_position:
        return None
    written = _line(nest, len(nest.inputs))
    if written is None:
        return None
    crossed = (n for n, access in enumerate(nest.inputs) if access.coefficients[written] != 0)
    lines = (_line(nest, number) for number in crossed)
    read = next((line for line in lines if line is not None and line != written), None)
    if read is None or not (_side(nest, read) and _side(nest, written)):
        return None
    return read, written


def _line(nest: Nest, number: int) -> int | None:
    """The loop along which an operand's elements lie side by side."""
    coefficients = nest.accesses[number].coefficients
    return next((loop for loop in nest.parallel if coefficients[loop] == 1), None)


def _side(nest: Nest, loop: int) -> int:
    size = nest.sizes[loop]
    return next((side for side in _SIDES if isinstance(size, int) and size % side == 0), 0)
