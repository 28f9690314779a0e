"""3x3 convolutions by Winograd's algorithm F(4x4, 3x3), as oneDNN's matrix products.

Tiles of 6x6 pixels that overlap by two become 36 matrices of tiles by channels; each is multiplied
by a matrix of channels by channels made of the weights; the results become tiles of 4x4 pixels.
That is 36 multiplications for each pair of channels where the direct algorithm has 144. The
transforms before and after are in `codegen/winograd_kernels.py`.

Lavin, Gray: Fast Algorithms for Convolutional Neural Networks, https://arxiv.org/abs/1509.09308
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.backends.dnnl import layouts
from byoc_mlir.backends.dnnl.calls import ENGINE, Attributes, MemoryDescriptor, PrimitiveCall
from byoc_mlir.backends.dnnl.descriptions import LayoutOf, Operand, Primitive
from byoc_mlir.backends.dnnl.dialect import BinaryAttr, ConvolutionOp, EltwiseAttr, SumAttr
from byoc_mlir.backends.dnnl.enums import Arg
from byoc_mlir.dialects.relay import ConstantOp, Weight
from byoc_mlir.dialects.relay.base import ints, shape_of

ALGORITHM = "f4x3"
"""What `dnnl.convolution` calls it."""

LANES = 8
"""The channels that a transform handles at once."""

TILE, STEP = 6, 4
"""The pixels that a tile reads along each axis, and those that it computes."""

POINTS = TILE * TILE

_BLOCK_BYTES = 6 << 20
"""What the matrices of one block of tiles may take, so that they stay in the last cache."""

_PLANE_GAP = 16
"""Elements between matrices, so that the 36 rows of a tile fall into different sets of a cache."""

_TRANSFORM_RATE = 7e6
"""Bytes that the transforms write and read per millisecond, on one thread."""

_WEIGHTS_RATE = 2.5e7
"""Bytes of weights per millisecond: measured alone, the products find some of them in a cache, but
in a model the other weights come in between."""

_LARGE_MATRIX_BYTES = 512 << 10
"""Weights of that size are stored with the columns one after another: oneDNN's product then takes
up to a third less time. With smaller ones it takes up to a third more."""

_WEIGHT_TRANSFORM = np.array(
    [
        [1 / 4, 0, 0],
        [-1 / 6, -1 / 6, -1 / 6],
        [-1 / 6, 1 / 6, -1 / 6],
        [1 / 24, 1 / 12, 1 / 6],
        [1 / 24, -1 / 12, 1 / 6],
        [0, 0, 1],
    ]
)


@dataclass(frozen=True)
class PostOps:
    """What happens to a result on its way to memory: a sum, then limits."""

    residual: SSAValue | None = None
    lower: float = -math.inf
    upper: float = math.inf


@dataclass(frozen=True)
class Matrices:
    """36 matrices of tiles by channels, one block of tiles at a time."""

    tiles: int
    channels: int

    @property
    def plane(self) -> int:
        """Elements between matrices."""
        return self.tiles * self.channels + _PLANE_GAP

    @property
    def byte_size(self) -> int:
        """The memory of all."""
        return POINTS * self.plane * 4

    @property
    def descriptor(self) -> MemoryDescriptor:
        """What oneDNN sees."""
        dims = (POINTS, self.tiles, self.channels)
        return MemoryDescriptor(dims, "abc", (self.plane, self.channels, 1))


@dataclass(frozen=True)
class Winograd:
    """A convolution by this algorithm, in certain layouts."""

    op: ConvolutionOp
    source_layout: str
    result_layout: str
    post_ops: PostOps

    @property
    def grid(self) -> tuple[int, int, int]:
        """The images, and the tiles of each along both axes."""
        batch, _, height, width = shape_of(self.op.output)
        return batch, -(-height // STEP), -(-width // STEP)

    @property
    def tiles(self) -> int:
        """All tiles of all images."""
        return math.prod(self.grid)

    @property
    def block_tiles(self) -> int:
        """The tiles that are handled together."""
        outputs, inputs = shape_of(self.op.weights)[:2]
        most = max(1, _BLOCK_BYTES // (POINTS * 4 * (inputs + outputs)))
        return -(-self.tiles // -(-self.tiles // most))

    @property
    def blocks(self) -> int:
        """How many times that is."""
        return -(-self.tiles // self.block_tiles)

    @property
    def transformed(self) -> tuple[Matrices, Matrices]:
        """The matrices of the source and of the result, for one block of tiles."""
        outputs, inputs = shape_of(self.op.weights)[:2]
        return Matrices(self.block_tiles, inputs), Matrices(self.block_tiles, outputs)

    @property
    def weights_descriptor(self) -> MemoryDescriptor:
        """What oneDNN sees of the weights."""
        outputs, inputs = shape_of(self.op.weights)[:2]
        is_large = inputs * outputs * 4 >= _LARGE_MATRIX_BYTES
        return MemoryDescriptor((POINTS, inputs, outputs), "acb" if is_large else "abc")

    @property
    def product(self) -> Primitive:
        """The products of one block."""
        source, result = (one.descriptor for one in self.transformed)
        weights = self.weights_descriptor
        arguments = (ENGINE, source, weights, None, result, Attributes())
        operands = (
            Operand(Arg.SRC, self.op.arguments[0], source),
            Operand(Arg.WEIGHTS, self.op.weights, weights),
            Operand(Arg.DST, self.op.output, result),
        )
        return Primitive(PrimitiveCall("dnnl_matmul_primitive_desc_create", arguments), operands)

    @property
    def milliseconds_beside(self) -> float:
        """About what it takes beside the products."""
        matrices = sum(one.byte_size for one in self.transformed) * self.blocks
        return matrices / _TRANSFORM_RATE + self.weights_descriptor.byte_size / _WEIGHTS_RATE

    def weights(self) -> Weight:
        """The weights as 36 matrices of inputs by outputs."""
        constant = self.op.weights.owner
        assert isinstance(constant, ConstantOp)
        descriptor = self.weights_descriptor
        inner = (1, 0) if descriptor.layout == "abc" else (0, 1)
        windows = constant.weight.data.astype(np.float64).transpose(2, 3, *inner)
        points = np.empty((TILE, TILE, *windows.shape[2:]), np.float32)
        for line, row in zip(points, _WEIGHT_TRANSFORM, strict=True):  # all at once takes 60 MB
            line[:] = np.tensordot(_WEIGHT_TRANSFORM, np.tensordot(row, windows, 1), 1)
        matrices = points.reshape(POINTS, *windows.shape[2:])
        return Weight.of(f"{constant.weight.name}.{ALGORITHM}", matrices)

    def words(self, arguments: int) -> list[int]:
        """What the generated code reads: see `codegen/winograd_kernels.py`.

        Args:
            arguments: how many the product takes.
        """
        _, rows, columns = self.grid
        source, result = self.transformed
        limits = (self.post_ops.lower, self.post_ops.upper)
        return [
            *(arguments, self.blocks, source.tiles, self.tiles, columns, rows),
            *_image(self.op.arguments[0], self.source_layout, self.op.begins, source),
            *_image(self.op.output, self.result_layout, (0, 0), result),
            *(struct.unpack("<I", struct.pack("<f", limit))[0] for limit in limits),
        ]


def _image(
    value: SSAValue, layout: str, begins: Sequence[int], matrices: Matrices
) -> tuple[int, ...]:
    _, channels, height, width = shape_of(value)
    pixel = LANES if layouts.blocks(layout) else channels
    group = LANES * height * width if layouts.blocks(layout) else LANES
    strides = (channels * height * width, group, width * pixel, pixel)
    return (height, width, *begins, channels // LANES, *strides, matrices.plane, channels)


def candidate(op: ConvolutionOp, layout: LayoutOf) -> Winograd | None:
    """The convolution by this algorithm; `None` where that is not written."""
    source, result = op.arguments[0], op.output
    window = shape_of(op.weights)
    outputs, inputs = window[:2]
    known = (layouts.channels_last(4), layouts.blocked_channels(4, LANES))
    fits = (
        window[2:] == (3, 3)
        and {*ints(op.strides), *ints(op.dilation), op.groups.value.data} == {1}
        and isinstance(op.weights.owner, ConstantOp)
        and inputs % LANES == outputs % LANES == 0
        and layout(source) in known
        and layout(result) in known
    )
    post_ops = _post_ops(op, layout) if fits else None
    if post_ops is None:
        return None
    return Winograd(op, layout(source), layout(result), post_ops)


def _post_ops(op: ConvolutionOp, layout: LayoutOf) -> PostOps | None:
    chain = list(op.post_ops)
    residual = None
    if chain and _is_sum(op, chain[0], layout):
        residual = op.post_op_operands[0]
        chain = chain[1:]
    limits = _limits(chain)
    return None if limits is None else PostOps(residual, *limits)


def _is_sum(op: ConvolutionOp, post_op: Attribute, layout: LayoutOf) -> bool:
    if isinstance(post_op, SumAttr):
        return True
    if not isinstance(post_op, BinaryAttr) or post_op.algorithm.data != "add":
        return False
    operand = op.post_op_operands[0]
    return shape_of(operand) == shape_of(op.output) and layout(operand) == layout(op.output)


def _limits(chain: Sequence[Attribute]) -> tuple[float, float] | None:
    if not chain:
        return -math.inf, math.inf
    if len(chain) > 1 or not isinstance(chain[0], EltwiseAttr):
        return None
    alpha, beta = chain[0].alpha.value.data, chain[0].beta.value.data
    if chain[0].algorithm.data == "relu" and alpha == 0:
        return 0.0, math.inf
    if chain[0].algorithm.data in ("clip", "clip_v2"):
        return alpha, beta
    return None
