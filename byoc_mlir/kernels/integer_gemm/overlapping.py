"""Weights in words of four bytes, none of whose pairs saturates.

Processors without VNNI multiply bytes without a sign by bytes with one, and add two such products
in 16 bits. That is exact where the weights of one sign in a pair are `_MOST` together at most. So a
word may begin at any byte: words overlap where a weight has to stand beside another one, or in
parts in both of them. Of weights with a normal distribution one pair in 50 to 100 is too much.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Weights: TypeAlias = "NDArray[np.int16]"

WORD = 4
"""Bytes of a word: two pairs."""

_MOST = np.iinfo(np.int16).max // np.iinfo(np.uint8).max
"""What the weights of one sign in a pair may be together."""

LINE_WORDS = 16
"""Words of a cache line."""


@dataclass(frozen=True)
class OverlappingWords:
    """The words of runs of bytes, one run behind the other."""

    begins: NDArray[np.int32]
    """The first word of each run, and how many there are."""
    places: NDArray[np.int32]
    """For each word the byte of its run at which it begins."""
    weights: NDArray[np.int8]
    """`[words, columns, bytes of a word]`."""

    @staticmethod
    def of(runs: NDArray[np.integer]) -> OverlappingWords:
        """The words for weights `[runs, bytes, columns]`; a run has a word's bytes at least."""
        weights = runs.astype(np.int16)
        too_much = _excess(weights[:, :-1], weights[:, 1:])
        beside = _excess(too_much[:, :-1], weights[:, 2:])
        is_exact: list[list[bool]] = np.logical_not(too_much.any(-1)).tolist()
        is_rest_exact: list[list[bool]] = np.logical_not(beside.any(-1)).tolist()
        words = [_words(*one) for one in zip(is_exact, is_rest_exact, strict=True)]
        begins = np.concatenate(([0], np.cumsum([len(some) for some in words])))
        place, end, leaves_rest = np.array([one for some in words for one in some]).T
        first, has_rest = np.roll(end, 1), np.roll(leaves_rest, 1)
        first[begins[:-1]] = 0
        run = np.repeat(np.arange(len(words)), np.diff(begins))
        bytes_ = place[:, None] + np.arange(WORD)
        parts = weights[run[:, None], bytes_]
        parts[(bytes_ < first[:, None]) | (bytes_ >= end[:, None])] = 0
        (late,), (early,) = has_rest.nonzero(), leaves_rest.nonzero()
        parts[late, (first - 1 - place)[late]] = too_much[run[late], first[late] - 2]
        parts[early, (end - 1 - place)[early]] -= too_much[run[early], end[early] - 2]
        return OverlappingWords(
            begins.astype(np.int32),
            place.astype(np.int32),
            parts.astype(np.int8).transpose(0, 2, 1),
        )

    @property
    def packed(self) -> NDArray[np.int8]:
        """All of them, as code reads them: the weights begin at a cache line."""
        told = np.concatenate((self.begins, self.places))
        told = np.concatenate((told, np.zeros(-len(told) % LINE_WORDS, np.int32)))
        return np.concatenate((told.view(np.int8), self.weights.reshape(-1)))


def _words(is_exact: list[bool], is_rest_exact: list[bool]) -> list[tuple[int, int, bool]]:
    """The words of a run: the byte where each begins, the one behind its last weight, and whether
    a rest of that weight is left, which is too much beside its neighbour, for the next word.

    Args:
        is_exact: for each byte but the last whether its weight may stand beside the next one.
        is_rest_exact: the same of what is too much of the next one, beside the one after that.
    """
    length = len(is_exact) + 1
    last = length - WORD
    is_exact, is_rest_exact = [*is_exact, True, True], [True, True, *is_rest_exact, True]
    words: list[tuple[int, int, bool]] = []
    first, has_rest = 0, False
    while first < length or has_rest:
        if has_rest:
            place = first - 1 if is_rest_exact[first] else first - 2
        else:
            place = first if is_exact[first] or first == 0 else first - 1
        end = place + WORD
        if place > last:
            place, end = last, length
            if has_rest and first == last + 3 and not is_rest_exact[first]:
                end = first
        if place == first and not is_exact[first]:
            end = first + 2
        has_rest = end - 2 >= first and not is_exact[end - 2]
        words.append((place, end, has_rest))
        first = end
    return words


def _excess(one: Weights, other: Weights) -> Weights:
    """What the second of two weights is too much beside the first."""
    total = one + other  # within the limits where signs differ
    return total - np.clip(total, -_MOST, _MOST)
