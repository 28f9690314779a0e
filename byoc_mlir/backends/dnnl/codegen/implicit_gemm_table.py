"""The words that the code of an implicit product reads, as `ImplicitGemm.words` writes them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, auto

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.codegen.llvm_builder import FunctionBuilder


class Word(IntEnum):
    """Sizes and distances; those in memory in elements."""

    LINES = 0
    """All lines of all images of the result."""
    ROWS = auto()
    """Those of one image."""
    STRIPS = auto()
    """Into how many strips of pixels a line is cut, each for one kernel."""
    LONG_STRIPS = auto()
    """How many have the most pixels; the others one less."""
    BLOCKS = auto()
    """Into how many blocks the lines are cut."""
    PANELS = auto()
    OUTPUTS = auto()
    """Channels of the result, 8 at a time."""
    PANEL = auto()
    """The weights of a panel."""
    KERNEL_HEIGHT = auto()
    KERNEL_WIDTH = auto()
    INPUTS = auto()
    """What is summed: the window, and channels of the source, 8 at a time."""
    KERNEL_LINE = auto()
    KERNEL_PIXEL = auto()
    INPUT = auto()
    """What these step in the source."""
    STRIDE_Y = auto()
    STRIDE_X = auto()
    DILATION_Y = auto()
    DILATION_X = auto()
    TOP = auto()
    LEFT = auto()
    HEIGHT = auto()
    WIDTH = auto()
    """The window, in pixels of the source; its padding and its size."""
    SOURCE_IMAGE = auto()
    SOURCE_LINE = auto()
    SOURCE_PIXEL = auto()
    """From the window of a result to that in the next image, the next line, and to the next."""
    SOURCE_START = auto()
    """From the first pixel to the first window."""
    RESULT_IMAGE = auto()
    RESULT_LINE = auto()
    RESULT_PIXEL = auto()
    RESULT_GROUP = auto()
    """From image to image, line to line, pixel to pixel and from 8 channels to the next."""
    LOWER = auto()
    UPPER = auto()
    """The least and the largest result."""


@dataclass(frozen=True)
class Table:
    """Reads the words of a table."""

    function: FunctionBuilder
    address: SSAValue

    def __getitem__(self, word: Word) -> SSAValue:
        return self.function.word(self.address, word)

    def limit(self, word: Word) -> SSAValue:
        """A word that is a number of `f32`."""
        return self.function.word(self.address, word, f32)
