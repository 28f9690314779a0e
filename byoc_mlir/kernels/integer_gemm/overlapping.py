"""Weights in overlapping 4-byte groups, which `pmaddubsw` multiplies without saturation.

Processors without VNNI multiply unsigned by signed bytes, and add two such products in 16 bits. The
sum is exact if the absolute weights of one sign in a pair add up to at most `_MOST`. To separate
weights that are too large together, a group may begin at any byte, so that groups overlap. A weight
may also be split into two parts, one in each of two groups. With normally distributed weights, one
pair in 50 to 100 is too large.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import DTypeLike, NDArray

from byoc_mlir.tensors import aligned_empty

Weights: TypeAlias = "NDArray[np.integer]"
"""Weights `[runs, bytes, columns]`, within the limits of `i8`."""
Flags: TypeAlias = "NDArray[np.bool_]"

WORD = 4
"""Bytes of a group: two pairs."""

_MOST = np.iinfo(np.int16).max // np.iinfo(np.uint8).max
"""Maximum sum of the weights of one sign in a pair."""

LINE_WORDS = 16
"""Words of a cache line."""

_BLOCK = 1 << 18
"""Weights that are processed together: they stay in L2, and are many enough for NumPy's calls."""


@dataclass(frozen=True)
class OverlappingWords:
    """Overlapping groups of all runs of bytes, in the order of the runs."""

    begins: NDArray[np.int32]
    """Index of each run's first group, then the number of all groups."""
    places: NDArray[np.int32]
    """Byte of its run at which each group begins."""
    weights: NDArray[np.int8]
    """Weights `[words, columns, bytes of a word]`."""
    packed: NDArray[np.int8]
    """Memory of the other three arrays, as the code reads it; the weights begin at a cache line."""

    @staticmethod
    def of(panels: Iterable[Weights]) -> OverlappingWords:
        """Returns the groups for the weights of consecutive panels of equal width.

        A run must have at least the bytes of one group. Weights may be large, so panels are
        processed in blocks. All blocks are processed twice: to compute the size of the memory, and
        to fill it.
        """
        blocks = list(_blocks(panels))
        cuts = [Cut.of(block) for block in blocks]
        counts = [0, *(count for cut in cuts for count in cut.counts)]
        words, columns = sum(counts), blocks[0][0].shape[2]
        told = -(-(len(counts) + words) // LINE_WORDS) * LINE_WORDS
        packed = aligned_empty((told + words * columns,), np.int32)
        begins, places, ends = np.split(packed[:told], (len(counts), len(counts) + words))
        begins[:], ends[:] = list(accumulate(counts)), 0
        weights = packed[told:].view(np.int8).reshape(words, columns, WORD)
        first = 0
        for block, cut in zip(blocks, cuts, strict=True):
            some = slice(first, first + cut.words)
            places[some] = cut.places
            cut.fill(block, weights[some])
            first += cut.words
        return OverlappingWords(begins, places, weights, packed.view(np.int8))


@dataclass(frozen=True)
class Cut:
    """Positions of the overlapping groups of some panels, run by run."""

    counts: list[int]
    """Number of groups of each run."""
    places: NDArray[np.int32]
    """Byte of its run at which each group begins."""
    before: NDArray[np.int32]
    """State, as in `_steps`, before each group."""
    behind: NDArray[np.int32]
    """State after each group."""

    @staticmethod
    def of(panels: Sequence[Weights]) -> Cut:
        """Computes the groups of panels of equal width."""
        lines = _lines(panels, np.int16)
        total = lines[..., :-1] + lines[..., 1:]
        beside = _excess(total)[..., :-1] + lines[..., 2:]
        places, behind = _steps(_is_exact(total), _is_exact(beside))
        paths = [_path(memoryview(one)) for one in behind]
        counts = [len(path) for path in paths]
        states = np.concatenate(paths)
        words = np.repeat(np.arange(len(counts)), counts), states
        return Cut(counts, places[words], states, behind[words])

    @property
    def words(self) -> int:
        """Returns the number of groups."""
        return len(self.places)

    def fill(self, panels: Sequence[Weights], words: NDArray[np.int8]) -> None:
        """Fills `words`, `[words, columns, bytes of a word]`, with the groups of the panels."""
        lines = _lines(panels, np.int8)
        run = np.repeat(np.arange(len(self.counts)), self.counts)
        states = lines.shape[2] + 1
        (was_left, first), (is_left, end) = (
            divmod(state, states) for state in (self.before, self.behind)
        )
        words[...] = sliding_window_view(lines, WORD, axis=2)[run, :, self.places]
        # bytes that belong to the groups before and after are zeros
        bytes_ = self.places[:, None] + np.arange(WORD, dtype=np.int32)
        is_kept = (bytes_ >= first[:, None]) & (bytes_ < end[:, None])
        words.view(np.int32)[..., 0] &= (-is_kept.astype(np.int8)).view(np.int32)

        def excess(some: NDArray[np.intp], next_: NDArray[np.int32]) -> NDArray[np.int8]:
            """Returns the excess of the weight before byte `next_`, for some groups."""
            pairs = np.add(*(lines[run[some], :, next_ - back] for back in (2, 1)), dtype=np.int16)
            return _excess(pairs).astype(np.int8)

        # the excess of a weight beside its neighbour is in the next group
        (late,), (early,) = was_left.nonzero(), is_left.nonzero()
        words[late, :, (first - 1 - self.places)[late]] = excess(late, first[late])
        words[early, :, (end - 1 - self.places)[early]] -= excess(early, end[early])


def _steps(is_exact: Flags, is_rest_exact: Flags) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Computes the state transitions of each run.

    A state is the number of the next byte, perhaps with a remaining excess of the previous byte.
    For each state, the function returns the byte at which the next group begins, and the next
    state; both arrays are `[runs, states]`.

    Args:
        is_exact: for each byte but the last, True if its weight may be in one pair with the next
            weight.
        is_rest_exact: the same for the excess of the next weight, in one pair with the weight after
            it.
    """
    length = is_exact.shape[1] + 1
    first = np.arange(length + 1, dtype=np.int32)
    stays = np.pad(is_exact, ((0, 0), (0, 2)), constant_values=True)
    stays[:, 0] = True  # there is no byte before it
    rest_stays = np.pad(is_rest_exact, ((0, 0), (2, 1)), constant_values=True)
    place = np.stack((first - ~stays, first - 2 + rest_stays), 1)
    # for groups that begin at the bytes from -2 on
    end = np.minimum(np.arange(2, length + WORD + 1, dtype=np.int32), length)
    behind_word = end + np.int32(length + 1) * ~is_exact[:, end - 2]
    one_back, two_back = behind_word[:, 1:-1], behind_word[:, :-2]
    alone = np.where(stays, behind_word[:, 2:], one_back)
    behind = np.stack((alone, np.where(rest_stays, one_back, two_back)), 1)
    behind[:, :, -2:] = length
    behind[:, 1, -2] -= ~is_rest_exact[:, -1]
    behind[~is_exact[:, 0], 0, 0] = 2 + (length + 1)
    runs = len(place)
    return np.minimum(place, length - WORD).reshape(runs, -1), behind.reshape(runs, -1)


def _path(behind: memoryview[int]) -> NDArray[np.int32]:
    """Returns the states of a run's groups, from its first byte to its end."""
    end = len(behind) // 2 - 1
    states, state = list[int](), 0
    while state != end:
        states.append(state)
        state = behind[state]
    return np.array(states, np.int32)


def _blocks(panels: Iterable[Weights]) -> Iterator[list[Weights]]:
    """Yields consecutive panels in blocks of at most `_BLOCK` weights, or one larger panel."""
    block, size = list[Weights](), 0
    for panel in panels:
        if block and size + panel.size > _BLOCK:
            yield block
            block, size = [], 0
        block.append(panel)
        size += panel.size
    yield block


def _lines(panels: Sequence[Weights], dtype: DTypeLike) -> NDArray[np.integer]:
    """Transposes the weights to `[runs, columns, bytes]`, for NumPy ops on adjacent bytes."""
    lines = [panel.transpose(0, 2, 1) for panel in panels]
    return np.concatenate(lines, dtype=dtype, casting="unsafe")


def _is_exact(total: NDArray[np.int16]) -> Flags:
    """Returns, for each byte, True if the sums of two weights are small enough in all columns."""
    return (total.min(1) >= -_MOST) & (total.max(1) <= _MOST)


def _excess(total: NDArray[np.int16]) -> NDArray[np.int16]:
    """Returns the part of the second weight by which a sum of two weights is too large."""
    return total - np.clip(total, -_MOST, _MOST)
