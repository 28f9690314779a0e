"""Batch norms by the built-in kernel, fused with the concatenation of their inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import BFloat16Type, Float32Type, f32
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.library import layouts
from byoc_mlir.dialects.relay.base import shape_of, tensor_type
from byoc_mlir.dialects.relay.constant import known_array
from byoc_mlir.errors import CompilationError
from byoc_mlir.kernels.normalization import JoinedTensor, NormalizedJoin, fitting_lanes
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.runtime.system.cpu import Cpu


def factors_of(op: dnnl.BatchNormalizationOp) -> NDArray[np.float32] | None:
    """Returns a batch norm's scales and shifts, `[2, C]`.

    Returns `None` if they are not constant or not finite.
    """
    arrays = [known_array(value) for value in (op.mean, op.variance, op.scale, op.shift)]
    known = [array.astype(np.float64) for array in arrays if array is not None]
    if len(known) < len(arrays):
        return None
    mean, variance, scale, shift = known
    with np.errstate(all="ignore"):
        factors = scale / np.sqrt(variance + op.epsilon.value.data)
        found = np.stack([factors, shift - mean * factors]).astype(np.float32)
    return found if np.isfinite(found).all() else None


def join_of(op: dnnl.NormalizedConcatOp) -> NormalizedJoin:
    """Returns the kernel of a normalised concatenation.

    Raises:
        CompilationError: no kernel supports the op's layouts.
    """
    found = normalized_join(op.sources, op.output, relu=bool(op.relu.value.data))
    if found is None:
        types = ", ".join(str(value.type) for value in (*op.sources, op.output))
        raise CompilationError(
            f"{op.name}: no code for {types}; accepted are NHWC, for one image also blocks"
            " of channels, in multiples of 4 channels"
        )
    return found


def normalized_join(
    sources: Sequence[SSAValue], result: SSAValue, *, relu: bool
) -> NormalizedJoin | None:
    """Returns the kernel that concatenates tensors and normalises them, or `None`."""
    element = tensor_type(result).element_type
    parts, written = [_part(value) for value in sources], _part(result)
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or written is None:
        return None
    if not isinstance(element, Float32Type | BFloat16Type):
        return None
    is_last = written.blocks == 1
    if not is_last and any(part.block != written.block for part in known):
        return None
    unit = VectorUnit.of(Cpu.host().features)
    lanes = fitting_lanes([part.block for part in known], unit.lanes * f32.size // element.size)
    if lanes is None:
        return None
    batch, _, *sizes = shape_of(result)
    pixels = batch * math.prod(sizes)
    return NormalizedJoin(tuple(known), pixels, written.block, element, relu, lanes)


def _part(value: SSAValue) -> JoinedTensor | None:
    """Returns the placement of a tensor's channels in memory.

    Returns `None` unless they are innermost or, in a single image, in whole blocks.
    """
    shape, layout = shape_of(value), dnnl.layout_of(value)
    batch, channels, *_ = shape
    if layout == layouts.channels_last(len(shape)):
        return JoinedTensor(channels, channels)
    blocks = layouts.blocks(layout)
    if batch != 1 or len(blocks) != 1 or layouts.padded(shape, layout) != shape:
        return None
    block = blocks[0][1]
    return (
        JoinedTensor(channels, block)
        if layout == layouts.blocked_channels(len(shape), block)
        else None
    )
