"""oneDNN's convolution called at once, on weights that it has in a layout of its own."""

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
class Convolution:
    """The sizes of a convolution.

    Tensors have their channels last, weights are `[group, results, channels, *kernel]`. Dilations
    are ONNX's: 1 for neighbours.
    """

    data: tuple[int, ...]
    weights: tuple[int, ...]
    result: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]

    def primitive(self, *, has_bias: bool) -> ConvolutionPrimitive:
        """Returns the primitive for the threads that are set now."""
        return _primitive(self, engine().threads, has_bias)


@lru_cache(KEPT)
def _primitive(sizes: Convolution, threads: int, has_bias: bool) -> ConvolutionPrimitive:
    """
    Args:
        threads: those that are set now; primitives share out their work when they are made.
    """
    return ConvolutionPrimitive(sizes, has_bias=has_bias)


class ConvolutionPrimitive:
    """oneDNN's code for the sizes of a convolution. Any number of threads may call it at once."""

    def __init__(self, sizes: Convolution, *, has_bias: bool):
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
        """Returns weights, as `Convolution` describes them, as they are read here."""
        given = np.ascontiguousarray(weights)
        memory, layout = arranged(self._primitive, Arg.WEIGHTS, given, self._given)
        return ArrangedWeights({Arg.WEIGHTS: memory}, {Arg.WEIGHTS: layout})

    def reads(self, weights: ArrangedWeights) -> bool:
        """True if weights arranged for another size are what it would have made of them."""
        return weights.suit(self._primitive)

    def run(self, data: Array, weights: ArrangedWeights, bias: Array | None) -> Array:
        """The result for contiguous arrays of `f32`, as `Convolution` describes them."""
        result = aligned_empty(self._result, np.float32)
        arrays = {Arg.SRC: data, **weights.arrays, Arg.DST: result}
        self._primitive.execute(arrays if bias is None else {**arrays, Arg.BIAS: bias})
        return result
