"""Cache blocking for element-wise nests whose input and result are contiguous along different
loops.

A cache line of the source holds several elements of a block, and stays in L1 until all of them are
used. Without blocks, a nest reads many cache lines before it returns to the first one. If the cache
does not hold all of these, the nest loads each line once for each of its elements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import LINE_BYTES
from byoc_mlir.lowering.linalg_to_loops.nest import Access, Nest, section, split_loop
from byoc_mlir.lowering.to_llvm.types import byte_width

ALONG, ACROSS = "blocked", "blocked_across"
"""Schedules of a block: the innermost loop is along the contiguous writes, or across them."""

_SIDES = (16, 8, 4)
"""Elements along each side of a block, unless the cache holds fewer lines."""

_LONG = 8
"""Minimum side for which blocks that divide a size are faster than longer blocks with a
remainder."""

_SETS, _WAYS = 64, 8
"""Sets and ways of an L1 of 32 KB."""


@dataclass(frozen=True)
class Ordered:
    """Nest with the order of its loops."""

    nest: Nest
    loops: tuple[int, ...]


def blocked(nest: Nest, schedule: str) -> Sequence[Ordered]:
    """Returns the blocked nest, then the remainders if sizes are no multiples of the block's
    sides.

    The result is empty for other schedules than blocked ones.
    """
    lines = _lines(nest) if schedule in (ALONG, ACROSS) else None
    if lines is None:
        return ()
    first, second = sorted(lines)
    sides = _side(nest, first), _side(nest, second)
    inside, *rests = _cut_off(nest, ((first, sides[0]), (second, sides[1])))
    cut = split_loop(split_loop(inside, second, sides[1]), first, sides[0])
    inner = {first: first + 1, second: second + 2}
    outer = (loop for loop in cut.parallel if loop not in inner.values())
    order = lines if schedule == ALONG else lines[::-1]
    whole = Ordered(cut, (*outer, *(inner[loop] for loop in order)))
    return (whole, *(Ordered(rest, rest.parallel) for rest in rests))


def _cut_off(nest: Nest, sides: Sequence[tuple[int, int]]) -> list[Nest]:
    """Splits a nest into the part whose sizes are multiples of the sides, and the remainders."""
    rests: list[Nest] = []
    for loop, side in sides:
        rest = nest.sizes[loop] % side
        if rest != 0:
            multiple = nest.sizes[loop] - rest
            rests.append(section(nest, loop, multiple, rest))
            nest = section(nest, loop, 0, multiple)
    return [nest, *rests]


def block_schedules(nest: Nest) -> Sequence[str]:
    """Returns the blocked schedules for a nest; empty if no two of its loops can be blocked."""
    return () if _lines(nest) is None else (ALONG, ACROSS)


def loses_lines(nest: Nest) -> bool:
    """True if a nest without blocks reads more cache lines than L1 holds before it returns to a
    line.

    Adjacent lines are prefetched, and do not count.
    """
    lines = _lines(nest)
    if lines is None:
        return False
    read, written = lines
    source = next(one for n, one in enumerate(nest.inputs) if _line(nest, n) == read)
    distance = _distance(source, written)
    between = hint(math.prod(nest.sizes[loop] for loop in nest.parallel if loop > read))
    everything = hint(nest.iterations) * byte_width(source.element_type)
    is_small = 2 * everything <= _SETS * _WAYS * LINE_BYTES
    return not is_small and distance >= LINE_BYTES and between > _held_lines(distance)


def _distance(access: Access, loop: int) -> int:
    """Returns the distance in bytes between the elements of successive iterations."""
    return abs(hint(access.coefficients[loop])) * byte_width(access.element_type)


def _held_lines(distance: int) -> int:
    """Returns the number of cache lines, `distance` bytes apart, that L1 holds at once."""
    apart = _SETS * LINE_BYTES // math.gcd(distance, _SETS * LINE_BYTES)
    return _WAYS * min(_SETS, apart)


def _lines(nest: Nest) -> tuple[int, int] | None:
    """Returns the loops along which the input and the result are contiguous, if the loops can be
    blocked.
    """
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
    """Returns the loop along which operand `number` is contiguous."""
    coefficients = nest.accesses[number].coefficients
    return next((loop for loop in nest.parallel if coefficients[loop] == 1), None)


def _side(nest: Nest, loop: int) -> int:
    """Returns the side of a block along a loop; 0 if the loop is too short for one."""
    size = nest.sizes[loop]
    distances = {_distance(access, loop) for access in nest.accesses} - {0}
    held = min(map(_held_lines, distances))
    sides = [side for side in _SIDES if side <= held]
    divides = next((side for side in sides if isinstance(size, int) and size % side == 0), 0)
    if divides >= _LONG:
        return divides
    return next((side for side in sides if hint(size) >= 2 * side), divides)
