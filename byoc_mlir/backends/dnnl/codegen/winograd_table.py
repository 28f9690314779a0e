"""The words that the code of Winograd's algorithm reads, as `Winograd.words` writes them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import partial

from xdsl.dialects.builtin import f32, i64
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.backends.dnnl.codegen.llvm_builder import FunctionBuilder


class Word(IntEnum):
    """Before the two images: how the tiles are shared by threads."""

    BLOCKS = 0
    """Into how many blocks the tiles are cut; one thread handles a block, all of them the only."""
    TILES = 1
    COLUMNS = 2
    ROWS = 3
    """The tiles of an image along both axes."""
    PANELS = 4
    RESULTS = 5
    """Elements from the source's matrices to the result's."""
    BLOCK = 6
    """Elements from a thread's matrices to the next one's."""
    THREADS = 7
    """The most threads there may be."""
    SOURCE = 8
    """The first word of the source."""


class ImageWord(IntEnum):
    """A source or result."""

    HEIGHT = 0
    WIDTH = 1
    TOP = 2
    LEFT = 3
    """Its size and its padding."""
    GROUPS = 4
    """How many times 8 channels."""
    IMAGE = 5
    GROUP = 6
    LINE = 7
    PIXEL = 8
    """Elements from image to image, group to group, line to line and pixel to pixel."""
    MATRIX = 9
    TILE = 10
    """Elements from matrix to matrix and from tile to tile."""


_RESULT = Word.SOURCE + len(ImageWord)
_LIMITS = _RESULT + len(ImageWord)


@dataclass(frozen=True)
class Table:
    """Reads the words of a table."""

    function: FunctionBuilder
    address: SSAValue

    def word(self, word: Word, type_: Attribute = i64) -> SSAValue:
        """A word before the images."""
        return self.function.word(self.address, word, type_)

    def source(self, word: ImageWord) -> SSAValue:
        """A word of the source."""
        return self.function.word(self.address, Word.SOURCE + word)

    def result(self, word: ImageWord) -> SSAValue:
        """A word of the result."""
        return self.function.word(self.address, _RESULT + word)

    def limits(self) -> tuple[SSAValue, SSAValue]:
        """The least and the largest result."""
        read = partial(self.function.word, type_=f32)
        return read(self.address, _LIMITS), read(self.address, _LIMITS + 1)
