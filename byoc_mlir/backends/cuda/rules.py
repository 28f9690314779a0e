"""Ops for which the backend generates kernels."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    IntegerType,
)
from xdsl.ir import Attribute, Operation

from byoc_mlir.backends.base import Rule
from byoc_mlir.dialects.relay.base import tensor_type
from byoc_mlir.dialects.relay.elementwise import PowerOp
from byoc_mlir.lowering.relay_to_linalg.elementwise import needs_power_function

_OPS = (
    *("abs", "add", "subtract", "multiply", "divide", "maximum", "minimum", "negative", "sign"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "where", "clip"),
    *("logical_and", "logical_or", "logical_xor", "logical_not", "isnan", "isinf", "cast"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "left_shift", "right_shift"),
    *("ceil", "floor", "round", "sqrt", "rsqrt", "exp", "log", "log1p", "erf", "tanh", "sigmoid"),
    *("sin", "cos", "sinh", "cosh"),
    *("nn.relu", "nn.leaky_relu", "nn.prelu", "nn.bias_add"),
    *("nn.batch_norm", "nn.layer_norm", "nn.softmax", "nn.log_softmax", "nn.lrn"),
    *("sum", "prod", "max", "min", "mean", "argmax", "argmin", "cumsum", "cumprod"),
    *("broadcast_to", "concatenate", "expand_dims", "reshape", "split", "squeeze"),
    *("strided_slice", "transpose", "nn.pad", "take", "gather", "gather_nd"),
    *(f"nn.{kind}_pool{rank}d" for kind in ("max", "avg") for rank in (1, 2, 3)),
    *(f"nn.global_{kind}_pool{rank}d" for kind in ("max", "avg") for rank in (1, 2, 3)),
    *(f"nn.max_pool{rank}d_with_argmax" for rank in (1, 2, 3)),
    *("nn.dense", "nn.matmul", "nn.conv1d", "nn.conv2d", "nn.conv3d"),
    *(f"nn.conv{rank}d_transpose" for rank in (1, 2, 3)),
    *("image.resize", "image.grid_sample", "vision.roi_align", "topk"),
)

_FLOATS = (BFloat16Type, Float16Type, Float32Type)
_FEWEST_BITS = 8


def refused(op: Operation) -> str | None:
    """Accepts ops whose operands and results are of types that kernels compute."""
    for value in (*op.operands, *op.results):
        if not _is_computed(tensor_type(value).element_type):
            return (
                f"kernels compute bool, integers of 8 to 64 bits, f16, bf16 and f32,"
                f" found {value.type}"
            )
    return None


def power_refused(op: Operation) -> str | None:
    """Accepts powers for which there is a formula."""
    if isinstance(op, PowerOp) and needs_power_function(op):
        return "a float power is computed for the constant exponents -2, -1, -0.5, 0.5, 2, 3 and 4"
    return refused(op)


def _is_computed(element: Attribute) -> bool:
    if isinstance(element, IntegerType):
        return element.width.data == 1 or element.width.data >= _FEWEST_BITS
    return isinstance(element, _FLOATS)


RULES: Mapping[str, Rule] = {**dict.fromkeys(_OPS, refused), "power": power_refused}
