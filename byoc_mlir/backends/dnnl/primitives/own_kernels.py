"""Convolutions of a region, in the form of the kernels of `byoc_mlir.kernels`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import bf16, f32
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.library import layouts
from byoc_mlir.backends.dnnl.library.algorithms import OWN_CONVOLUTIONS
from byoc_mlir.backends.dnnl.primitives.descriptions import LayoutOf
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import ints, shape_of, tensor_type
from byoc_mlir.errors import CompilationError
from byoc_mlir.kernels.convolution import (
    Convolution,
    ConvolutionKernel,
    Image,
    are_few_channels,
)
from byoc_mlir.kernels.convolutions import convolution_kernels
from byoc_mlir.kernels.epilogue import Epilogue
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.runtime.system.cpu import Cpu


def candidates(op: dnnl.ConvolutionOp, layout: LayoutOf) -> Iterator[ConvolutionKernel]:
    """Yields the kernels that compute an op with its operands and results in the given layouts."""
    convolution = _convolution(op, layout)
    if convolution is not None:
        yield from convolution_kernels(convolution, VectorUnit.of(Cpu.host().features))


def planned(op: dnnl.ConvolutionOp, layout: LayoutOf) -> ConvolutionKernel | None:
    """Returns the kernel that an op names as its algorithm, or `None` for oneDNN's algorithms.

    Raises:
        CompilationError: the kernel does not support such a convolution.
    """
    name = op.algorithm.data
    if name not in OWN_CONVOLUTIONS:
        return None
    found = {one.name: one for one in candidates(op, layout)}
    if name not in found:
        raise CompilationError(
            f"{op.name}: algorithm is '{name}', which is not written for it in these layouts;"
            f" accepted are {', '.join(('direct', 'winograd', *found))}"
        )
    return found[name]


def sharing_code(op: dnnl.ConvolutionOp) -> int:
    """Returns the number of convolutions in a region that share this kernel's code.

    Depthwise convolutions with the same windows share code; other convolutions share none.
    """
    region = op.parent_block()
    if op.groups.value.data == 1 or region is None:
        return 1
    convolutions = (one for one in region.ops if isinstance(one, dnnl.ConvolutionOp))
    code, apart = _code_of(op), (one for one in convolutions if one.groups.value.data > 1)
    return sum(_code_of(one) == code for one in apart)


def _code_of(op: dnnl.ConvolutionOp) -> object:
    """Returns a key of all parameters that a depthwise kernel's code depends on; the channels are
    not among them.
    """
    window, type_ = shape_of(op.weights)[2:], tensor_type(op.output).element_type
    return window, op.strides, op.dilation, op.post_ops, type_


def residual_of(op: dnnl.ConvolutionOp) -> SSAValue | None:
    """Returns the value that a kernel adds to the result of its op, if any."""
    return op.post_op_operands[0] if op.post_op_operands else None


def _convolution(op: dnnl.ConvolutionOp, layout: LayoutOf) -> Convolution | None:
    source, result, weights = op.arguments[0], op.output, shape_of(op.weights)
    element, numbers = tensor_type(source).element_type, (op.weights, result, *op.post_op_operands)
    if (
        len(weights) != 4
        or _is_of_few_channels(op)
        or not isinstance(op.weights.owner, ConstantOp)
        or (op.groups.value.data > 1) != (element == bf16)
        or any(tensor_type(value).element_type != element for value in numbers)
        or (op.bias is not None and tensor_type(op.bias).element_type != f32)
    ):
        return None
    read, written, epilogue = _image(source, layout), _image(result, layout), _epilogue(op, layout)
    if read is None or written is None or epilogue is None:
        return None
    (window, strides, dilation, begins, ends) = (
        (values[0], values[1])
        for values in (weights[2:], ints(op.strides), ints(op.dilation), op.begins, op.ends)
    )
    windows = (window, strides, dilation, begins, ends)
    return Convolution(read, written, *windows, epilogue, op.groups.value.data, element)


def _is_of_few_channels(op: dnnl.ConvolutionOp) -> bool:
    """True if a convolution reads images with few channels, such as RGB.

    oneDNN reads such images as NCHW.
    """
    return are_few_channels(shape_of(op.arguments[0])[1], op.groups.value.data)


def _image(value: SSAValue, layout: LayoutOf) -> Image | None:
    """Returns the tensor as an image, or `None` if its layout has no blocks of channels."""
    batch, channels, height, width = shape_of(value)
    known = layout(value)
    blocks = layouts.blocks(known)
    shape = (batch, channels, height, width)
    if known == layouts.channels_last(4):
        return Image(shape, channels)
    if len(blocks) == 1 and known == layouts.blocked_channels(4, blocks[0][1]):
        return Image(shape, blocks[0][1])
    return None


def _epilogue(op: dnnl.ConvolutionOp, layout: LayoutOf) -> Epilogue | None:
    """Returns the epilogue for the post-ops of a convolution, or `None` if kernels do not support
    them.
    """
    chain = list(op.post_ops)
    residual = bool(chain) and _is_sum(op, chain[0], layout)
    limits = _limits(chain[1:] if residual else chain)
    return None if limits is None else Epilogue(op.bias is not None, residual, *limits)


def _is_sum(op: dnnl.ConvolutionOp, post_op: Attribute, layout: LayoutOf) -> bool:
    if isinstance(post_op, dnnl.SumAttr):
        return post_op.factor.value.data == 1
    if not isinstance(post_op, dnnl.BinaryAttr) or post_op.algorithm.data != "add":
        return False
    operand = op.post_op_operands[0]
    return shape_of(operand) == shape_of(op.output) and layout(operand) == layout(op.output)


def _limits(chain: Sequence[Attribute]) -> tuple[float, float] | None:
    if not chain:
        return -math.inf, math.inf
    if len(chain) > 1 or not isinstance(chain[0], dnnl.EltwiseAttr):
        return None
    alpha, beta = chain[0].alpha.value.data, chain[0].beta.value.data
    if chain[0].algorithm.data == "relu" and alpha == 0:
        return 0.0, math.inf
    if chain[0].algorithm.data in ("clip", "clip_v2"):
        return alpha, beta
    return None
