"""Conversion of images from a few planes of `f32` to NHWC pixels of `bf16`, on all threads.

Each value is rounded to nearest, ties to even. Each plane contributes a vector of 16 pixels; a
shuffle interleaves the vectors. Requires a processor with `bf16` instructions: on other processors,
LLVM would call a function that is not linked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects import llvm
from xdsl.dialects.builtin import VectorType, bf16, i16, i64
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.convolution import KernelCode, Slot
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.vectors import Vectors, joined, shuffled

NAME = "interleave"
"""Name of the kernel in IR and reports."""

MOST_CHANNELS = 4
"""Maximum number of channels: an RGBA image has 4; tensors inside a network have more."""

_BLOCK = 16
"""Pixels that are interleaved at once; processors with shorter vectors use several."""


def interleave_code(images: int, channels: int, pixels: int) -> KernelCode | None:
    """Returns the kernel from `[images, channels, pixels]` to `[images, pixels, channels]`.

    It converts `f32` to `bf16`. Returns `None` unless there are 2 to 4 channels and at least 16
    pixels.
    """
    if not 2 <= channels <= MOST_CHANNELS or pixels < _BLOCK:
        return None
    blocks = -(-pixels // _BLOCK)
    return KernelCode(partial(_define, channels=channels), (images * blocks, blocks, pixels))


def _define(module: ModuleBuilder, *, channels: int) -> str:
    """Defines `void (slots)`; returns its symbol.

    The parameters are the number of blocks of all images, and the numbers of blocks and pixels of
    one image.
    """
    name = f"byoc_interleave_{channels}"
    if module.has(name):
        return name
    blocks = _define_blocks(module, f"{name}_blocks", channels)
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    (slots,) = function.parameters
    count = function.word(function.pointer(slots, Slot.PARAMETERS), 0)
    function.parallel_for(blocks, slots, count)
    function.finish()
    return name


def _define_blocks(module: ModuleBuilder, name: str, channels: int) -> str:
    """Defines `void (slots, begin, end)`, which converts a range of blocks; returns its symbol."""
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    slots, begin, end = function.parameters
    told = function.pointer(slots, Slot.PARAMETERS)
    source, result = (function.pointer(slots, slot) for slot in (Slot.SOURCE, Slot.RESULT))
    blocks, pixels = (function.word(told, word) for word in (1, 2))
    code = _Blocks(function, channels, source, result, blocks, pixels)
    function.for_range(begin, end, code.write)
    function.finish()
    return name


@dataclass(frozen=True)
class _Blocks:
    """Writer of the code of one block."""

    function: FunctionBuilder
    channels: int
    source: SSAValue
    result: SSAValue
    blocks: SSAValue
    pixels: SSAValue

    def write(self, number: SSAValue) -> None:
        """Generates the conversion of one block; an image's last block ends at its last pixel."""
        function = self.function
        image, block = function.divmod(number, self.blocks)
        final = function.subtract(self.pixels, _BLOCK)
        pixel = function.least(function.multiply(block, _BLOCK), final)
        start = function.multiply(function.multiply(image, self.pixels), self.channels)
        planes = [
            function.add(function.add(start, function.multiply(self.pixels, channel)), pixel)
            for channel in range(self.channels)
        ]
        numbers = self._interleaved([self._rounded(place) for place in planes])
        to = function.add(start, function.multiply(pixel, self.channels))
        function.store(numbers, function.gep(self.result, to, bf16), 2)

    def _rounded(self, place: SSAValue) -> SSAValue:
        """Returns the bits of a vector of rounded values.

        Integers keep LLVM from moving the shuffles before the rounding, as it does for floats.
        """
        function = self.function
        numbers = Vectors(function, _BLOCK).load(function.gep(self.source, place))
        rounded = function.insert(llvm.FPTruncOp(numbers, VectorType(bf16, [_BLOCK])))
        return function.insert(llvm.BitcastOp(rounded, VectorType(i16, [_BLOCK])))

    def _interleaved(self, planes: Sequence[SSAValue]) -> SSAValue:
        filled = 1 << (len(planes) - 1).bit_length()
        unused = [planes[-1]] * (filled - len(planes))
        whole = joined(self.function, [*planes, *unused])
        order = [plane * _BLOCK + at for at in range(_BLOCK) for plane in range(len(planes))]
        return shuffled(self.function, whole, whole, order)
