"""Weights in words of four bytes, none of whose pairs saturates.

Processors without VNNI multiply bytes without a sign by bytes with one, and add two such products
in 16 bits. That is exact where the weights of one sign in a pair are `_MOST` together at most. So a
word may begin at any byte: words overlap where a weight has to stand beside another one, or in
parts in both of them. Of weights with a normal distribution one pair in 50 to 100 is too much.
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
"""`[runs, bytes, columns]`, within the limits of `i8`."""
Flags: TypeAlias = "NDArray[np.bool_]"

WORD = 4
"""Bytes of a word: two pairs."""

_MOST = np.iinfo(np.int16).max // np.iinfo(np.uint8).max
"""What the weights of one sign in a pair may be together."""

LINE_WORDS = 16
"""Words of a cache line."""

_BLOCK = 1 << 18
"""Weights that are looked at together: they stay in a second cache, and are worth the calls."""


@dataclass(frozen=True)
class OverlappingWords:
    """The words of runs of bytes, one run behind the other."""

    begins: NDArray[np.int32]
    """The first word of each run, and how many there are."""
    places: NDArray[np.int32]
    """For each word the byte of its run at which it begins."""
    weights: NDArray[np.int8]
    """`[words, columns, bytes of a word]`."""
    packed: NDArray[np.int8]
    """The memory of all three, as code reads it: the weights begin at a cache line."""

    @staticmethod
    def of(panels: Iterable[Weights]) -> OverlappingWords:
        """The words for weights in panels of as many columns, one panel behind the other; a run
        has a word's bytes at least.

        Weights may be large, so some panels are looked at after others, and all of them twice:
        before the memory of their words is there, and to fill it.
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
    """Where the words of some panels are, run by run."""

    counts: list[int]
    """How many words each run has."""
    places: NDArray[np.int32]
    """For each word the byte of its run at which it begins."""
    before: NDArray[np.int32]
    """The state, see `_steps`, in which a word finds the weights."""
    behind: NDArray[np.int32]
    """The state in which it leaves them."""

    @staticmethod
    def of(panels: Sequence[Weights]) -> Cut:
        """That of panels of as many columns."""
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
        """How many there are."""
        return len(self.places)

    def fill(self, panels: Sequence[Weights], words: NDArray[np.int8]) -> None:
        """Writes the words of the panels, `[words, columns, bytes of a word]`."""
        lines = _lines(panels, np.int8)
        run = np.repeat(np.arange(len(self.counts)), self.counts)
        states = lines.shape[2] + 1
        (was_left, first), (is_left, end) = (
            divmod(state, states) for state in (self.before, self.behind)
        )
        words[...] = sliding_window_view(lines, WORD, axis=2)[run, :, self.places]
        # bytes that belong to the words before and behind are zeros
        bytes_ = self.places[:, None] + np.arange(WORD, dtype=np.int32)
        is_kept = (bytes_ >= first[:, None]) & (bytes_ < end[:, None])
        words.view(np.int32)[..., 0] &= (-is_kept.astype(np.int8)).view(np.int32)

        def excess(some: NDArray[np.intp], next_: NDArray[np.int32]) -> NDArray[np.int8]:
            """What the last weight before the next one is too much, in some words."""
            pairs = np.add(*(lines[run[some], :, next_ - back] for back in (2, 1)), dtype=np.int16)
            return _excess(pairs).astype(np.int8)

        # of a weight that is too much beside its neighbour, the rest is in the next word
        (late,), (early,) = was_left.nonzero(), is_left.nonzero()
        words[late, :, (first - 1 - self.places)[late]] = excess(late, first[late])
        words[early, :, (end - 1 - self.places)[early]] -= excess(early, end[early])


def _steps(is_exact: Flags, is_rest_exact: Flags) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """From each state of each run to the next one: where a word begins that finds the weights in
    it, and in which state it leaves them; `[runs, states]`.

    The states are the byte that comes next, and then the same where a rest of the byte before it
    is left, which was too much beside its neighbour.

    Args:
        is_exact: for each byte but the last whether its weight may stand beside the next one.
        is_rest_exact: the same of what is too much of the next one, beside the one after that.
    """
    length = is_exact.shape[1] + 1
    first = np.arange(length + 1, dtype=np.int32)
    stays = np.pad(is_exact, ((0, 0), (0, 2)), constant_values=True)
    stays[:, 0] = True  # there is no byte before it
    rest_stays = np.pad(is_rest_exact, ((0, 0), (2, 1)), constant_values=True)
    place = np.stack((first - ~stays, first - 2 + rest_stays), 1)
    # of the words that begin at the bytes from -2 on
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
    """The states that the words of a run find, from its first byte to its end."""
    end = len(behind) // 2 - 1
    states, state = list[int](), 0
    while state != end:
        states.append(state)
        state = behind[state]
    return np.array(states, np.int32)


def _blocks(panels: Iterable[Weights]) -> Iterator[list[Weights]]:
    """Panels one behind the other, of `_BLOCK` weights together where they are small."""
    block, size = list[Weights](), 0
    for panel in panels:
        if block and size + panel.size > _BLOCK:
            yield block
            block, size = [], 0
        block.append(panel)
        size += panel.size
    yield block


def _lines(panels: Sequence[Weights], dtype: DTypeLike) -> NDArray[np.integer]:
    """The weights as `[runs, columns, bytes]`: what is done to neighbours is done to vectors."""
    lines = [panel.transpose(0, 2, 1) for panel in panels]
    return np.concatenate(lines, dtype=dtype, casting="unsafe")


def _is_exact(total: NDArray[np.int16]) -> Flags:
    """Whether sums of two weights are not too much in any column."""
    return (total.min(1) >= -_MOST) & (total.max(1) <= _MOST)


def _excess(total: NDArray[np.int16]) -> NDArray[np.int16]:
    """What of sums of two weights is too much, which is part of the second one."""
    return total - np.clip(total, -_MOST, _MOST)
