"""Images of few channels as pixels, with their padding."""

from __future__ import annotations

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay.base import sizes_of, tensor_of
from byoc_mlir.dialects.relay.window import ConvOp
from byoc_mlir.dims import Size
from byoc_mlir.kernels.convolution import pair_of
from byoc_mlir.lowering.convolutions.channels import with_last
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder
from byoc_mlir.lowering.relay_to_linalg.kernel import Buffer, Index, Kernel, Num

_CYCLES = 2
"""Of an element: it is read and written, and channels are laid into each other."""


def padded_pixels(b: LinalgBuilder, op: ConvOp) -> SSAValue:
    """What a convolution reads, padded with zeros: `[N, spatial..., C]`."""
    _, padding, _ = op.checked_window()
    before, after = padding[: op.SPATIAL_RANK], padding[op.SPATIAL_RANK :]
    batch, channels, *spatial = sizes_of(op.data)
    sizes = [low + size + high for low, size, high in zip(before, spatial, after, strict=True)]
    k = Kernel(op, [op.data], [tensor_of(f32, with_last([batch, channels, *sizes]))])
    source = k.inputs[0].reshaped(batch, channels, *pair_of(spatial, 1))
    height, width = pair_of(sizes, 1)
    target = k.outputs[0].reshaped(batch, height, width, channels)
    top, left = pair_of(before, 0)
    with k.loops([batch, height], cost=_CYCLES * channels * width) as (image, line):
        _write_line(k, source, target, (image, k.index(line), top, left))
    return k.finish(b)[0]


def _write_line(
    k: Kernel, source: Buffer, target: Buffer, place: tuple[Index, Num, int, int]
) -> None:
    """Writes a line of an image.

    Args:
        place: the image, the line, and the lines and pixels of padding before the source.
    """
    image, line, top, left = place
    _, channels, height, width = source.sizes
    row = line - top
    is_inside = (row >= 0) & (row < height)

    def fill(start: Index, end: Size) -> None:
        with k.loop(end, start=start) as x:
            for channel in range(int(channels)):
                target[image, line, x, channel] = 0.0

    with k.when(~is_inside):
        fill(0, target.sizes[2])
    with k.when(is_inside):
        fill(0, left)
        with k.loop(width) as x:
            for channel in range(int(channels)):
                target[image, line, x + left, channel] = source[image, channel, row, x]
        fill(k.constant(left + width, line.type), target.sizes[2])
