"""Estimated latency of a region: on its backend, and on the host, from the calibration of its
kernels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import TensorType, f32, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from byoc_mlir.backends import Backend, CodegenContext
from byoc_mlir.dialects.relay.base import relay_name, shape_of, sizes_of, tensor_type
from byoc_mlir.dialects.relay.elementwise import BroadcastOp, UnaryOp
from byoc_mlir.dialects.relay.nn import BiasAddOp
from byoc_mlir.dialects.relay.qnn import BYTES, RequantizeOp
from byoc_mlir.dialects.relay.qnn_window import QuantizedConvOp
from byoc_mlir.dialects.relay.recurrent import GruOp, LstmOp
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dialects.relay.window import ConvOp
from byoc_mlir.kernels.costs import (
    ASSUMED,
    ActivationCalibration,
    ConvolutionCalibration,
    calibration,
)
from byoc_mlir.lowering.convolutions.description import convolutions
from byoc_mlir.lowering.to_llvm.types import byte_width
from byoc_mlir.runtime.report import RegionTimes
from byoc_mlir.runtime.system.cpu import target_cpu
from byoc_mlir.transforms.blocks import is_constant, is_constant_value, is_terminator
from byoc_mlir.transforms.inline_partitions import dissolve_composites
from byoc_mlir.transforms.work import multiplications

if TYPE_CHECKING:
    from byoc_mlir.lowering.integer_products.chain import IntegerMatmul

_FUNCTIONS = (
    *("cos", "cosh", "erf", "exp", "log", "log1p", "power"),
    *("sigmoid", "sin", "sinh", "softmax", "tan", "tanh"),
)
"""Suffixes of the names of ops that compute a function of each element."""

_FUNCTIONS_OF_STATE: Mapping[type[Operation], int] = {LstmOp: 5, GruOp: 3}
"""Sigmoids and tangents that a step of a recurrent layer computes for each element of its state."""

_NUMBER_BYTES = 4

_NOTHING = ("reshape", "squeeze", "expand_dims", "batch_flatten")
"""Suffixes of the names of ops that move no element."""


def estimated_times(region: FuncOp, backend: Backend, context: CodegenContext) -> RegionTimes:
    """Estimates the latency of an outlined region on its backend and on the host."""
    backend_milliseconds = _asked(region, backend, context)
    return RegionTimes(backend.name, "estimated", backend_milliseconds, host_milliseconds(region))


def _asked(region: FuncOp, backend: Backend, context: CodegenContext) -> float | None:
    try:
        return backend.estimated_milliseconds(region, context)
    except Exception:  # the backend's code generation reports its errors
        return None


def host_milliseconds(region: FuncOp) -> float | None:
    """Estimates the latency of a region on the host on one thread; `None` if an op has no estimate.

    Matmuls and convolutions take the time of their kernels; element-wise functions have a
    calibrated rate. The time of all other ops is proportional to the bytes that they move, or 0 if
    they are fused into the preceding op.
    """
    block = region.clone().body.block
    dissolve_composites(block)
    by_kernels = _by_kernels(block)
    others = [
        op for op in block.ops if not (op in by_kernels or is_constant(op) or is_terminator(op))
    ]
    if not all(map(_is_known, others)):
        return None
    return sum(by_kernels.values()) + sum(map(_of_op, others))


def _by_kernels(block: Block) -> dict[Operation, float]:
    """Returns the milliseconds of ops that kernels compute; ops fused into a kernel take 0."""
    found: dict[Operation, float] = {}
    for op in convolutions(tuple(block.ops)):
        found[op] = _convolution_milliseconds(op)
    if any(op.name.startswith("relay.qnn.") for op in block.ops):
        found |= _by_integer_kernels(block)
    return found


def _convolution_milliseconds(op: ConvOp | QuantizedConvOp) -> float:
    from byoc_mlir.lowering.convolutions import choose_convolution_algorithms

    return choose_convolution_algorithms.estimated_milliseconds(op, 1)


def _by_integer_kernels(block: Block) -> dict[Operation, float]:
    from byoc_mlir.lowering.integer_products.chain import product_of

    found: dict[Operation, float] = {}
    for op in block.ops:
        product = product_of(op)
        if product is not None:
            found |= _by_integers(product)
        elif isinstance(op, QuantizedConvOp) and op.SPATIAL_RANK < 3 and _is_described(op):
            found[op] = _convolution_milliseconds(op)
    return found


def _by_integers(product: IntegerMatmul) -> dict[Operation, float]:
    """Returns the milliseconds of an int8 GEMM, and of the ops fused into it."""
    from byoc_mlir.kernels.integer_gemm.unit import IntegerUnit
    from byoc_mlir.lowering.integer_products.chain import chain_of
    from byoc_mlir.lowering.integer_products.emit import gemms_of

    chain = chain_of(product)
    gemms = gemms_of(product, chain, IntegerUnit.of(target_cpu().features))
    fastest = min(gemm.milliseconds(hint(gemm.rows)) for gemm in gemms)
    return {**dict.fromkeys(chain.ops, 0.0), product.op: fastest}


def _is_described(op: QuantizedConvOp) -> bool:
    """True if the weights are constants and the number of channels is known, so that a kernel's
    cost is known.
    """
    return is_constant_value(op.weight) and isinstance(sizes_of(op.data)[1], int)


def _is_known(op: Operation) -> bool:
    """True if the latency of an op without a kernel can be estimated; matmuls must be `f32`."""
    values = op.operands if multiplications(op) else op.results
    accepted = (f32,) if multiplications(op) else (f32, *BYTES, i32)
    return all(
        isinstance(value.type, TensorType) and value.type.element_type in accepted
        for value in values
    )


def _of_op(op: Operation) -> float:
    if isinstance(op, LstmOp | GruOp):
        return _of_layer(op)
    known, products = calibration(ConvolutionCalibration), multiplications(op)
    if products:
        weights = bytes_of(value for value in op.operands if is_constant_value(value))
        return products / known.products + weights / known.weight_bytes
    milliseconds = 0.0
    if relay_name(op).endswith(_FUNCTIONS):
        milliseconds += _elements(op.results) / calibration(ActivationCalibration).swish
    if not (relay_name(op).endswith(_NOTHING) or _is_fused(op)):
        milliseconds += bytes_of((*op.operands, *op.results)) / known.transformed_bytes
    return milliseconds


def _of_layer(op: LstmOp | GruOp) -> float:
    """Estimates the milliseconds of a recurrent layer.

    Each time step multiplies the state by weights that stay in a cache, for one tile of batch
    entries at a time. The matmul of the input is a separate op.
    """
    from byoc_mlir.lowering.relay_to_linalg.recurrent_product import TILE_ROWS

    steps, directions, batch, _ = map(hint, sizes_of(op.data))
    weights, size = math.prod(shape_of(op.weight)[1:]), shape_of(op.weight)[1]
    known = calibration(ConvolutionCalibration)
    tiles = -(-batch // TILE_ROWS)
    reading = tiles * _NUMBER_BYTES * weights / (ASSUMED.cached_bytes * known.products)
    product = max(batch * weights / known.products, reading)
    functions = (
        _FUNCTIONS_OF_STATE[type(op)] * batch * size / calibration(ActivationCalibration).swish
    )
    return steps * directions * (product + functions)


def _is_fused(op: Operation) -> bool:
    """True if the op is fused into the producer of an operand."""
    return isinstance(op, UnaryOp | BroadcastOp | BiasAddOp | RequantizeOp) and any(
        isinstance(value.owner, Operation) and not is_constant(value.owner) for value in op.operands
    )


def _elements(values: Iterable[SSAValue]) -> int:
    return sum(math.prod(shape_of(value)) for value in values)


def bytes_of(values: Iterable[SSAValue]) -> int:
    """Returns the bytes of tensors."""
    return sum(
        math.prod(shape_of(value)) * byte_width(tensor_type(value).element_type) for value in values
    )
