"""Estimated latencies of primitives, from the speed of the built-in kernels on this machine.

Implementations of one kind are about as fast relative to the built-in kernels on all processors:
both do MACs in vectors of the same length. `docs/dev-notes/costs.md` lists the shares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from byoc_mlir.backends.dnnl.library.calls import Attributes, Eltwise, element_bytes
from byoc_mlir.backends.dnnl.primitives.descriptions import DescribedPrimitive
from byoc_mlir.kernels.activations import FORMULAS
from byoc_mlir.kernels.costs import (
    ASSUMED,
    ActivationCalibration,
    ConvolutionCalibration,
    calibration,
)
from byoc_mlir.onednn.constants import ELTWISE, Arg, DataType

_REFERENCE_RATE = 1e4
"""Approximate MACs or bytes per millisecond of reference code."""

_SHARES = (
    ("simple", 0.05),
    ("x64:gemm", 0.25),
    ("brdgmm_dw", 0.5),
    ("jit_dw", 0.6),
    ("jit_uni_dw", 0.6),
    ("gemm:", 0.95),
    ("jit:avx512", 0.8),
    ("brgconv:avx512", 0.8),
    ("", 1.0),
)
"""Speed of an implementation with weights, by the start of its name: the fraction of the rate
`products`. It is the speed in a network, which calls it once; in a loop it may be higher."""

_DEPTHWISE_OF_BYTES_SHARE = 0.3
"""Speed of depthwise convolutions of 8-bit integers, as a fraction of a convolution's in `f32`: no
products of neighbours are added, so all bytes become 32-bit integers first."""

_FEW_ROWS_SHARE = 0.5
"""Speed of inner products at reading their weights for few rows, as a fraction of a matmul's."""

_MATRIX_UNIT = 4
"""Speed of AMX, as a multiple of vectors with the same types."""

_MOVING = (
    ("concat", 5.0),
    ("binary", 6.0),
    ("eltwise", 6.0),
    ("reorder", 3.0),
    ("pooling", 3.0),
    ("batch_normalization", 2.0),
)
"""Speed of primitives without weights, by the start of their kind: multiples of the rate
`transformed_bytes`; 1 for other kinds."""

_SIMPLE, _SIMPLE_SHARE = ("simple", "ncsp"), 0.1
"""Beginnings of the names of loops without generated code, and their speed as a fraction of that.
Concatenations copy whole rows without it."""

_POST_OP_SHARES = {"gelu_erf": 1.2}
"""Speed of an activation as a post-op, as a fraction of the built-in loop's speed."""

_POST_OP_SHARE = 0.55
"""Speed of other activations as post-ops."""

_SOFTMAX_SHARE = 0.6
"""Speed of a softmax, which computes exponentials, as a fraction of the built-in loop of swish."""

_ACTIVATIONS = {ELTWISE[name]: name for name in FORMULAS}

_LANES = (("avx512", 16), ("avx2", 8), ("avx", 8), ("sse41", 4))
"""Elements of `f32` in a vector, by a part of an implementation's name."""


def estimated_milliseconds(
    described: DescribedPrimitive, implementation: str, threads: int, lanes: int
) -> float:
    """Estimates the latency of a primitive.

    Args:
        described: the primitive.
        implementation: name of the library's code for it.
        threads: number of OpenMP threads.
        lanes: elements of `f32` in the longest vectors of this processor.
    """
    if implementation.startswith("ref"):
        return work_of(described) / (_REFERENCE_RATE * threads)
    if has_weights(described):
        milliseconds = _multiplying(described, implementation, lanes)
    else:
        milliseconds = _moving(described, implementation)
    return ASSUMED.primitive_call + (milliseconds + _activating(described)) / threads


def _multiplying(described: DescribedPrimitive, implementation: str, lanes: int) -> float:
    """Estimates the time of a primitive's MACs, or of reading weights for few rows."""
    products = calibration(ConvolutionCalibration).products
    share = next(share for start, share in _SHARES if implementation.startswith(start))
    width = next((many for name, many in _LANES if name in implementation), lanes)
    weights = next(one for one in described.operands if one.argument == Arg.WEIGHTS)
    size = element_bytes(weights.descriptor.data_type)
    matrix_unit = _MATRIX_UNIT if "amx" in implementation else 1
    speed = share * min(width, lanes) / lanes
    if size == 1 and _is_depthwise(weights.descriptor.dims):
        speed *= _DEPTHWISE_OF_BYTES_SHARE
    else:
        speed *= element_bytes(DataType.F32) / size * matrix_unit
    computing = work_of(described) / (speed * products)
    if "inner_product" not in described.call.kind and described.call.kind != "matmul":
        return computing
    few_rows = _FEW_ROWS_SHARE if "inner_product" in described.call.kind else 1.0
    reading = size * math.prod(weights.descriptor.dims) / (ASSUMED.cached_bytes * products)
    return max(computing, reading / few_rows)


def _is_depthwise(weights: Sequence[int]) -> bool:
    """True if weights [groups, outputs, inputs, height, width] have one input a group."""
    return len(weights) == 5 and weights[2] == 1


def _moving(described: DescribedPrimitive, implementation: str) -> float:
    """Estimates the time of a primitive that moves bytes, or computes exponentials."""
    kind = described.call.kind
    if kind.startswith("softmax"):
        elements = math.prod(described.operands[-1].descriptor.dims)
        return elements / (_SOFTMAX_SHARE * calibration(ActivationCalibration).swish)
    share = next((share for start, share in _MOVING if kind.startswith(start)), 1.0)
    if implementation.startswith(_SIMPLE) and not kind.startswith("concat"):
        share *= _SIMPLE_SHARE
    return work_of(described) / (share * calibration(ConvolutionCalibration).transformed_bytes)


def _activating(described: DescribedPrimitive) -> float:
    """Estimates the time of the activations among the post-ops."""
    attributes = (one for one in described.call.arguments if isinstance(one, Attributes))
    post_ops = (post_op for one in attributes for post_op in one.post_ops)
    algorithms = (one.algorithm for one in post_ops if isinstance(one, Eltwise))
    names = [_ACTIVATIONS[one] for one in algorithms if one in _ACTIVATIONS]
    if not names:
        return 0.0
    elements = math.prod(described.operands[-1].descriptor.dims)
    known = calibration(ActivationCalibration).numbers()
    return sum(
        elements / (_POST_OP_SHARES.get(name, _POST_OP_SHARE) * known[name]) for name in names
    )


def has_weights(described: DescribedPrimitive) -> bool:
    """True if a primitive reads weights."""
    return any(operand.argument == Arg.WEIGHTS for operand in described.operands)


def work_of(described: DescribedPrimitive) -> float:
    """Returns the MACs of a primitive with weights, or the bytes that another primitive moves."""
    result = described.operands[-1].descriptor.dims
    weights = {one.argument: math.prod(one.descriptor.dims) for one in described.operands}
    if Arg.WEIGHTS_1 in weights:  # a recurrent layer: each step multiplies by all of both
        steps, batch, _ = result
        return float(steps * batch * (weights[Arg.WEIGHTS] + weights[Arg.WEIGHTS_1]))
    if Arg.WEIGHTS in weights:
        first = described.operands[0].descriptor.dims
        dims = first if described.call.kind.startswith("deconvolution") else result
        return math.prod(dims) / dims[1 if len(dims) > 2 else -1] * weights[Arg.WEIGHTS]
    return float(sum(operand.descriptor.byte_size for operand in described.operands))
