"""Quantised convolutions of a region, in the form of the kernels in `kernels/integer_gemm`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from xdsl.dialects.builtin import FloatAttr, i8
from xdsl.ir import Attribute, Block, Operation, SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.library import layouts
from byoc_mlir.backends.dnnl.primitives.descriptions import LayoutOf
from byoc_mlir.dialects.relay import ConstantOp, Weight
from byoc_mlir.dialects.relay.base import ints, shape_of, tensor_type
from byoc_mlir.dialects.relay.constant import derived_array
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.errors import CompilationError
from byoc_mlir.kernels.convolution import Convolution, Image, pair_of, planes
from byoc_mlir.kernels.convolutions import convolution_kernels
from byoc_mlir.kernels.epilogue import Epilogue
from byoc_mlir.kernels.integer_gemm.convolution import IntegerConvolution
from byoc_mlir.kernels.integer_gemm.depthwise import DepthwiseOfBytes
from byoc_mlir.kernels.integer_gemm.epilogue import ByteResidual, IntegerEpilogue
from byoc_mlir.kernels.integer_gemm.through_floats import ThroughFloats
from byoc_mlir.kernels.integer_gemm.unit import IntegerUnit
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.kernels.winograd.winograd import Winograd
from byoc_mlir.runtime.system.cpu import Cpu
from byoc_mlir.tensors import Array

Kernel: TypeAlias = "IntegerConvolution | DepthwiseOfBytes | ThroughFloats"
Forms: TypeAlias = tuple[IntegerConvolution, ...]


def integer_kernels(op: dnnl.QuantizedConvolutionOp, layout: LayoutOf) -> Iterator[Kernel]:
    """Yields the kernels for a convolution if source, result and residual are NHWC."""
    source = op.arguments[0]
    images, channels, *sizes = shape_of(source)
    wanted = layouts.channels_last(len(sizes) + 2)
    if any(layout(value) != wanted for value in (source, op.output, *op.post_op_operands)):
        return
    groups, (outputs, _, *window) = op.groups.value.data, shape_of(op.weights)
    lines, pixels = pair_of(sizes, 1)
    windows = (
        *(pair_of(window, 1), pair_of(ints(op.strides), 1), pair_of(ints(op.dilation), 1)),
        *(pair_of(op.begins, 0), pair_of(op.ends, 0)),
    )
    signed, zero_point = _is_signed(source), int(_known(op.source_zero_point)[0])
    epilogue, features = _epilogue(op), Cpu.host().features
    unit, image = IntegerUnit.of(features), (images, lines, pixels, channels)
    if groups == channels > 1:
        pairs = replace(unit, has_vnni=False)
        depthwise = DepthwiseOfBytes(pairs, image, signed, zero_point, *windows, epilogue)
        if outputs == channels and channels % depthwise.block == 0:
            yield depthwise
        return
    unit = unit.for_outputs(outputs // groups)
    product = IntegerConvolution(
        unit, image, signed, zero_point, outputs, *windows, epilogue, groups
    )
    yield min(_forms(product, op.weights), key=lambda one: one.milliseconds(1))
    if groups > 1:
        return
    result = (images, outputs, *pair_of(shape_of(op.output)[2:], 1))
    floats = Convolution(
        Image((images, channels, lines, pixels), channels),
        Image(result, outputs),
        *windows,
        Epilogue(),
    )
    for kernel in convolution_kernels(floats, VectorUnit.of(features)):
        if isinstance(kernel, Winograd) and not kernel.is_heavy:
            yield ThroughFloats(kernel, signed, zero_point, epilogue)


_FORMS: WeakKeyDictionary[Operation | Block, dict[IntegerConvolution, Forms]] = WeakKeyDictionary()
"""Forms of convolutions by the constant of their weights, so that the weights are read once: the
layout planning has several rounds, each of which requests all kernels.
"""


def _forms(product: IntegerConvolution, weights: SSAValue) -> Forms:
    known = _FORMS.setdefault(weights.owner, {})
    if product not in known:
        known[product] = product.forms(planes(_known(weights)))
    return known[product]


def planned_integer_kernel(op: dnnl.QuantizedConvolutionOp, layout: LayoutOf) -> Kernel:
    """Returns the kernel that a convolution names as its algorithm.

    Raises:
        CompilationError: the kernel does not support such a convolution.
    """
    found = {one.name: one for one in integer_kernels(op, layout)}
    name = op.algorithm.data
    if name not in found:
        raise CompilationError(
            f"{op.name}: algorithm is '{name}', found {op.arguments[0].type} to {op.output.type};"
            f" accepted are {', '.join(found) or 'none: the layout must be NHWC'}"
        )
    return found[name]


def packed(op: dnnl.QuantizedConvolutionOp, kernel: Kernel) -> Weight:
    """Packs weights, scales and bias for a kernel, once for all users of these constants."""
    given = [planes(_known(op.weights)), _known(op.scales), _known(op.bias)]
    array = derived_array((kernel.name, kernel.packing), given, lambda: kernel.pack(*given))
    return Weight.of(f"packed_weights.{kernel.name}", array)


def _epilogue(op: dnnl.QuantizedConvolutionOp) -> IntegerEpilogue:
    """Returns the epilogue that the post-ops require, as `conversion.quantized` builds them."""
    chain, residual = list(op.post_ops), None
    if op.post_op_operands:
        limits, added, linear, *chain = chain
        assert isinstance(limits, dnnl.EltwiseAttr)
        assert isinstance(added, dnnl.BinaryAttr | dnnl.SumAttr)
        assert isinstance(linear, dnnl.EltwiseAttr)
        numbers = (one.value.data for one in (*_parameters(limits), *_parameters(linear)))
        residual = ByteResidual(_is_signed(op.post_op_operands[0]), *numbers)
    zero_point = int(_known(op.zero_point)[0])
    lower, upper = _limits(op, chain, zero_point)
    return IntegerEpilogue("bytes", True, zero_point, lower, upper, residual)


def _limits(
    op: dnnl.QuantizedConvolutionOp, chain: Sequence[Attribute], zero_point: int
) -> tuple[int, int]:
    range_ = np.iinfo(numpy_dtype(op.element))
    if not chain:
        return range_.min, range_.max
    (limits,) = chain
    assert isinstance(limits, dnnl.EltwiseAttr)
    if limits.algorithm.data == "relu":
        return max(zero_point, range_.min), range_.max
    low, high = (one.value.data + zero_point for one in _parameters(limits))
    return max(math.ceil(low), range_.min), min(math.floor(high), range_.max)


def _parameters(attribute: dnnl.EltwiseAttr) -> tuple[FloatAttr, FloatAttr]:
    return attribute.alpha, attribute.beta


def _is_signed(value: SSAValue) -> bool:
    return tensor_type(value).element_type == i8


def _known(value: SSAValue) -> Array:
    assert isinstance(value.owner, ConstantOp)
    return value.owner.array
