"""NaN-safe replacements for functions that oneDNN computes wrongly on NaN and infinities.

oneDNN's code for some functions turns NaN into a finite value, or an infinity into NaN; this varies
with the implementation. This code is fast, and runs if all inputs of a run are finite. In other
runs, it is replaced by the primitive without the function, and a built-in loop for the function.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr, f64, i1
from xdsl.ir import Attribute, Operation, SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.codegen.own_code import Generated, call_of_kernel
from byoc_mlir.backends.dnnl.codegen.special_values import (
    WINDOW_AXES,
    add_max_of_windows,
    add_spread_nan,
)
from byoc_mlir.backends.dnnl.library import layouts
from byoc_mlir.backends.dnnl.library.calls import element_bytes
from byoc_mlir.backends.dnnl.primitives.descriptions import Operand, Types, data_type_of
from byoc_mlir.dialects.relay.base import ints, shape_of, tensor_type
from byoc_mlir.kernels.activations import Formula, ScalarCode, activation_code
from byoc_mlir.kernels.convolution import Slot
from byoc_mlir.kernels.f32_functions import tanh
from byoc_mlir.onednn.constants import Arg, DataType

_FLOATS = (DataType.F32, DataType.BF16)


@dataclass(frozen=True)
class NanSafe:
    """NaN-safe form of an op: a primitive, followed by built-in code."""

    bare: Operation
    """The op without the function that `code` computes; it is not inserted in a block."""
    code: Generated
    operands: tuple[Operand, ...]
    """Operands of `code`."""


def nan_safe(op: Operation) -> NanSafe | None:
    """Returns the NaN-safe form of an op, or `None` if the op needs none."""
    if any(data_type_of(value) not in _FLOATS for value in (*op.operands, *op.results)):
        return None
    if isinstance(op, dnnl.SoftmaxOp):
        return _softmax(op)
    if isinstance(op, dnnl.PoolingOp) and op.algorithm.data == "max" and not op.post_ops:
        return _max_pooling(op)
    if isinstance(op, dnnl.BatchNormalizationOp) and op.relu.value.data:
        return _without(op, dnnl.EltwiseAttr.of("relu"), {"relu": IntegerAttr(0, i1)})
    if isinstance(op, dnnl.EltwiseOp) and not op.post_ops:
        function = dnnl.EltwiseAttr(op.algorithm, op.alpha, op.beta)
        copied = {"algorithm": StringAttr("linear"), "alpha": FloatAttr(1.0, f64)}
        return _without(op, function, {**copied, "beta": FloatAttr(0.0, f64)})
    if isinstance(op, dnnl.PostOpsOp) and op.post_ops:
        *others, last = op.post_ops
        return _without(op, last, {"post_ops": ArrayAttr(others)})
    return None


def _without(
    op: Operation, function: Attribute, changes: Mapping[str, Attribute]
) -> NanSafe | None:
    """Returns the NaN-safe form of an op: the op with changed properties, then `function`."""
    if not isinstance(function, dnnl.EltwiseAttr):
        return None
    algorithm, parameters = function.algorithm.data, (function.alpha, function.beta)
    alpha, beta = (one.value.data for one in parameters)
    if algorithm not in _FORMULAS or (algorithm == "relu" and alpha != 0):
        return None
    operand = Types(dnnl.layout_of).operand(Arg.DST, op.results[0])
    element = tensor_type(op.results[0]).element_type
    size = element_bytes(operand.descriptor.data_type)
    elements = operand.descriptor.byte_size // size  # with padding, which stays as it is
    bits = struct.pack(">ff", alpha, beta).hex()
    name, formula = f"nan_safe_{algorithm}_{bits}", _formula(algorithm, alpha, beta)
    code = call_of_kernel(activation_code(name, elements, formula, element), Slot.RESULT)
    return NanSafe(_changed(op, changes), code, (operand,))


def _softmax(op: dnnl.SoftmaxOp) -> NanSafe:
    """Returns a softmax that writes NaN to a whole vector with a NaN, as ONNX does and oneDNN does
    not.
    """
    layout, axis, shape = dnnl.layout_of(op.output), op.axis.value.data, shape_of(op.output)
    order, blocks = layouts.order(layout), dict(layouts.blocks(layout))
    sizes = layouts.padded(shape, layout)
    block = blocks.pop(axis, 1)
    inner = order[order.index(axis) + 1 :]
    between = [size for one, size in blocks.items() if one not in inner]
    inside = math.prod((*(sizes[one] for one in inner), *between))
    outside = math.prod(sizes) // (inside * sizes[axis])
    operands = (Types(dnnl.layout_of).operand(Arg.DST, op.output),)
    add = partial(add_spread_nan, element=tensor_type(op.output).element_type)
    code = Generated(add, (outside, shape[axis], sizes[axis], inside, block))
    return NanSafe(_changed(op, {}), code, operands)


def _max_pooling(op: dnnl.PoolingOp) -> NanSafe | None:
    """Returns a max pooling that returns NaN for windows with a NaN, where oneDNN returns another
    element.

    Windows that contain only padding keep oneDNN's result, the type's minimum.
    """
    source, layout = shape_of(op.primary[0]), dnnl.layout_of(op.output)
    spatial, order = tuple(range(2, len(source))), layouts.order(layout)
    at = order.index(2)
    if dnnl.layout_of(op.primary[0]) != layout or order[at : at + len(spatial)] != spatial:
        return None
    sizes = layouts.padded(source, layout)
    inner = math.prod(sizes[one] for one in order[at + len(spatial) :])
    inner *= math.prod(size for _, size in layouts.blocks(layout))
    axes = zip(
        source[2:],
        shape_of(op.output)[2:],
        ints(op.kernel),
        ints(op.strides),
        ints(op.dilation),
        op.begins,
        strict=True,
    )
    words = [word for axis in axes for word in axis]
    missing = [1, 1, 1, 1, 1, 0] * (WINDOW_AXES - len(spatial))
    images = sizes[0] * sizes[1] // inner
    types = Types(dnnl.layout_of)
    operands = (types.operand(Arg.SRC, op.primary[0]), types.operand(Arg.DST, op.output))
    add = partial(add_max_of_windows, element=tensor_type(op.output).element_type)
    code = Generated(add, (images, inner, *missing, *words))
    return NanSafe(_changed(op, {}), code, operands)


def _changed(op: Operation, changes: Mapping[str, Attribute]) -> Operation:
    return type(op).create(
        operands=op.operands,
        result_types=[one.type for one in op.results],
        properties={**op.properties, **changes},
    )


def _bounded(code: ScalarCode, x: SSAValue, low: float, high: float) -> SSAValue:
    return code.at_most(code.at_least(x, low), high)


def _relu(code: ScalarCode, x: SSAValue, alpha: float, beta: float) -> SSAValue:
    return code.at_least(x, 0.0)


def _hard_sigmoid(code: ScalarCode, x: SSAValue, alpha: float, beta: float) -> SSAValue:
    return _bounded(code, code.add(code.multiply(x, alpha), beta), 0.0, 1.0)


def _exp(code: ScalarCode, x: SSAValue, alpha: float, beta: float) -> SSAValue:
    return code.exp(x)


def _logistic(code: ScalarCode, x: SSAValue, alpha: float, beta: float) -> SSAValue:
    """Computes `1 / (1 + e^-x)`."""
    return code.add(code.multiply(tanh(code, code.multiply(x, 0.5)), 0.5), 0.5)


_FORMULAS: Mapping[str, Callable[[ScalarCode, SSAValue, float, float], SSAValue]] = {
    "relu": _relu,
    "clip": _bounded,
    "clip_v2": _bounded,
    "hardsigmoid": _hard_sigmoid,
    "exp": _exp,
    "logistic": _logistic,
}
"""Formulas of the functions that some oneDNN implementation gets wrong, by oneDNN's algorithm
name.
"""


@cache
def _formula(algorithm: str, alpha: float, beta: float) -> Formula:
    """Returns the formula of an algorithm, with `alpha` and `beta` bound."""
    return lambda code, x: _FORMULAS[algorithm](code, x, alpha, beta)
