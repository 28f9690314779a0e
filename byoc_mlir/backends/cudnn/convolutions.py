"""Fused convolutions, in the form in which cuDNN plans and runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from xdsl.dialects.builtin import Float16Type, Float32Type, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from byoc_mlir.abi import COMPUTED_IN
from byoc_mlir.backends.cudnn.constants import DataType
from byoc_mlir.backends.region import source_of
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.relay import Weight
from byoc_mlir.dialects.relay.base import shape_of, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.elementwise import AddOp
from byoc_mlir.dialects.relay.nn import BiasAddOp, ReluOp
from byoc_mlir.dialects.relay.window import ConvOp, ConvTransposeOp

_TYPES: dict[type[Attribute], DataType] = {Float32Type: DataType.F32, Float16Type: DataType.F16}

_TF32 = StringAttr("tf32")

_LEAST_RANK = 2
"""Fewest spatial dimensions of cuDNN's convolutions."""


class Role(IntEnum):
    """Numbers of a plan's tensors, by which a run gives their addresses."""

    DATA = 1
    WEIGHT = 2
    BIAS = 3
    RESIDUAL = 4
    RESULT = 5


@dataclass(frozen=True)
class FusedConvolution:
    """`relu(convolution(data, weight) + residual + bias)`, all parts after the convolution
    optional.

    This order is that of cuDNN's precompiled engines, which require a bias if anything follows the
    convolution.
    """

    type_: DataType
    data: tuple[int, ...]
    weight: tuple[int, ...]
    result: tuple[int, ...]
    strides: tuple[int, ...]
    before: tuple[int, ...]
    """Padding at the beginning of each spatial dimension."""
    after: tuple[int, ...]
    dilations: tuple[int, ...]
    is_transposed: bool = False
    """True for the gradient of a convolution with respect to its data."""
    has_bias: bool = False
    has_residual: bool = False
    has_relu: bool = False
    may_round: bool = False
    """True if operands of `f32` may be rounded to `tf32`, 10 bits of mantissa."""

    @property
    def bias(self) -> tuple[int, ...]:
        """Returns the shape of the bias."""
        return (1, self.result[1], *(1,) * (len(self.result) - 2))


@dataclass(frozen=True)
class ConvolutionCall:
    """A fused convolution, and its operands: values of the region, and constants."""

    convolution: FusedConvolution
    operands: dict[Role, SSAValue | Weight]


def anchor_of(op: Operation) -> ConvOp | ConvTransposeOp:
    """Returns the convolution of a composite, or the op itself."""
    ops = op.ops() if isinstance(op, CompositeOp) else (op,)
    return next(one for one in ops if isinstance(one, ConvOp | ConvTransposeOp))


def described(
    anchor: ConvOp | ConvTransposeOp,
    *,
    has_bias: bool = False,
    has_residual: bool = False,
    has_relu: bool = False,
) -> FusedConvolution:
    """Returns the description of a convolution and the parts that follow it.

    It gets a bias of zeros if other parts follow it.
    """
    strides, padding, dilation = anchor.checked_window()
    rank = len(strides)
    missing = max(_LEAST_RANK - rank, 0)
    data, weight, result = (
        _raised(shape_of(value), missing) for value in (anchor.data, anchor.weight, anchor.output)
    )
    return FusedConvolution(
        _TYPES[type(tensor_type(anchor.data).element_type)],
        *(data, weight, result),
        (1,) * missing + strides,
        (0,) * missing + padding[:rank],
        (0,) * missing + padding[rank:],
        (1,) * missing + dilation,
        isinstance(anchor, ConvTransposeOp),
        has_bias or has_residual or has_relu,
        has_residual,
        has_relu,
        anchor.attributes.get(COMPUTED_IN) == _TF32,
    )


def call_of(op: Operation) -> ConvolutionCall:
    """Returns the call for a convolution that the rules accept, or for a composite."""
    anchor = anchor_of(op)
    operands = {Role.DATA: anchor.data, Role.WEIGHT: anchor.weight}
    ops = tuple(op.ops()) if isinstance(op, CompositeOp) else ()
    inner: set[SSAValue] = {result for one in ops for result in one.results}
    for one in ops:
        if isinstance(one, BiasAddOp):
            operands[Role.BIAS] = one.bias
        elif isinstance(one, AddOp):
            (operands[Role.RESIDUAL],) = (value for value in one.operands if value not in inner)
    convolution = described(
        anchor,
        has_bias=Role.BIAS in operands,
        has_residual=Role.RESIDUAL in operands,
        has_relu=any(isinstance(one, ReluOp) for one in ops),
    )
    sources = {role: source_of(value, op) for role, value in operands.items()}
    if convolution.has_bias:
        sources.setdefault(Role.BIAS, _zeros(anchor))
    sources[Role.RESULT] = op.results[0]
    return ConvolutionCall(convolution, sources)


def is_supported_type(element: Attribute) -> bool:
    """True if cuDNN computes tensors of this element type here."""
    return type(element) in _TYPES


def _raised(shape: Sequence[int], missing: int) -> tuple[int, ...]:
    """Returns a shape with more spatial dimensions, of one element."""
    return (*shape[:2], *(1,) * missing, *shape[2:])


def _zeros(anchor: ConvOp | ConvTransposeOp) -> Weight:
    result = tensor_type(anchor.output)
    zeros = np.zeros(shape_of(anchor.output)[1], numpy_dtype(result.element_type))
    return Weight.of("no_bias", zeros)
