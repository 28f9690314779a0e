"""oneDNN's convolution as a direct call, with cached weights in oneDNN's layout."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from byoc_mlir.onednn.constants import CONVOLUTION_DIRECT, FORWARD_INFERENCE, Arg
from byoc_mlir.onednn.descriptors import Descriptor, PrimitiveAttributes
from byoc_mlir.onednn.engine import engine
from byoc_mlir.onednn.primitives import (
    KEPT,
    ArrangedWeights,
    Primitive,
    PrimitiveDescriptor,
    arranged,
)
from byoc_mlir.tensors import Array, aligned_empty


@dataclass(frozen=True)
class ConvolutionSizes:
    """Sizes of a convolution.

    Tensors are NHWC; weights are `[group, results, channels, *kernel]`. Dilations are ONNX's: 1 for
    adjacent taps.
    """

    data: tuple[int, ...]
    weights: tuple[int, ...]
    result: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]

    def primitive(self, *, has_bias: bool) -> ConvolutionPrimitive:
        """Returns the primitive for the current number of threads."""
        return _primitive(self, engine().threads, has_bias)


@lru_cache(KEPT)
def _primitive(sizes: ConvolutionSizes, threads: int, has_bias: bool) -> ConvolutionPrimitive:
    """Creates and caches a primitive.

    Args:
        threads: current number of threads; a primitive partitions its work when it is created.
    """
    return ConvolutionPrimitive(sizes, has_bias=has_bias)


class ConvolutionPrimitive:
    """Primitive for the sizes of a convolution; any number of threads may call it at once."""

    def __init__(self, sizes: ConvolutionSizes, *, has_bias: bool):
        self._result = sizes.result
        group, results, *_ = sizes.weights
        data = Descriptor.channels_last(sizes.data)
        given, chosen = Descriptor.dense(sizes.weights), Descriptor.of_any_layout(sizes.weights)
        bias = Descriptor.dense((group * results,))
        result = Descriptor.channels_last(sizes.result)
        dilations = tuple(dilation - 1 for dilation in sizes.dilations)
        self._primitive = Primitive(
            PrimitiveDescriptor(
                "dnnl_convolution_forward_primitive_desc_create",
                *(engine(), FORWARD_INFERENCE, CONVOLUTION_DIRECT),
                *(data, chosen, bias if has_bias else None, result),
                *(sizes.strides, dilations, sizes.begins, sizes.ends),
                PrimitiveAttributes(),
            )
        )
        self._given = given

    def arrange(self, weights: Array) -> ArrangedWeights:
        """Returns weights, shaped as in `ConvolutionSizes`, in the primitive's layout."""
        given = np.ascontiguousarray(weights)
        memory, layout = arranged(self._primitive, Arg.WEIGHTS, given, self._given)
        return ArrangedWeights({Arg.WEIGHTS: memory}, {Arg.WEIGHTS: layout})

    def reads(self, weights: ArrangedWeights) -> bool:
        """True if weights that were arranged for another size are in the primitive's layout."""
        return weights.suit(self._primitive)

    def run(self, data: Array, weights: ArrangedWeights, bias: Array | None) -> Array:
        """Computes the result for contiguous arrays of `f32`, shaped as in `ConvolutionSizes`."""
        result = aligned_empty(self._result, np.float32)
        arrays = {Arg.SRC: data, **weights.arrays, Arg.DST: result}
        self._primitive.execute(arrays if bias is None else {**arrays, Arg.BIAS: bias})
        return result
