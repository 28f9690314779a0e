"""Properties of the values and ops that patterns are matched against."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.base import Tensor, relay_name
from byoc_mlir.dialects.relay.constant import Array, ConstantOp
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.elementwise import BroadcastOp, CastOp, UnaryOp, WhereOp
from byoc_mlir.dialects.relay.nn import BiasAddOp, LrnOp
from byoc_mlir.dialects.relay.properties import to_attribute
from byoc_mlir.dialects.relay.reduce import ReduceOp, SoftmaxLikeOp
from byoc_mlir.dialects.relay.shape import surely_same, type_sizes
from byoc_mlir.dialects.relay.transform import ReshapeOp
from byoc_mlir.errors import ByocError

Subject: TypeAlias = SSAValue | Operation
"""Value, or an op with several results as a whole."""

ConstantValue: TypeAlias = bool | int | float | Array


def as_constant(value: SSAValue) -> ConstantOp | None:
    """Returns the constant op that defines a value; `None` if another op does."""
    return value.owner if isinstance(value.owner, ConstantOp) else None


def describe(subject: Subject) -> str:
    """Describes a subject for messages, with its ONNX nodes if they are known."""
    if isinstance(subject, BlockArgument):
        return f"argument %{subject.name_hint or subject.index}"
    op = subject if isinstance(subject, Operation) else subject.owner
    assert isinstance(op, Operation)
    nodes = ", ".join(node_names(op))
    text = f"{relay_name(op)} ({nodes})" if nodes else relay_name(op)
    if isinstance(subject, OpResult) and len(op.results) > 1:
        return f"result #{subject.index} of {text}"
    return text


def attribute_mismatch(subject: Subject, wanted: Mapping[str, Any]) -> str | None:
    """Returns the first property of the subject's op that differs from `wanted`, as text; `None` if
    all agree.
    """
    if not wanted:
        return None
    op = subject if isinstance(subject, Operation) else subject.owner
    if not isinstance(op, Operation):
        return f"expected an op with attributes {sorted(wanted)}, found {describe(subject)}"
    for name, value in wanted.items():
        found = op.properties.get(name, op.attributes.get(name))
        if found is None:
            found = _derived_attribute(op, name)
        if found != to_attribute(value):
            shown = "nothing" if found is None else str(found)
            return f"expected {name} = {value} on {describe(subject)}, found {shown}"
    return None


def _derived_attribute(op: Operation, name: str) -> Attribute | None:
    """Returns an attribute that only TVM's op has, derived from the op's kind and types."""
    if name == "TOpPattern":
        return to_attribute(_fusion_class(op))
    weight = getattr(op, "weight", None)
    type_ = weight.type if isinstance(weight, SSAValue) else None
    if not (isinstance(type_, TensorType) and isinstance(op.results[0].type, TensorType)):
        return None
    sizes = type_sizes(cast(Tensor, type_))
    results = type_sizes(cast(Tensor, op.results[0].type))
    kind = relay_name(op).removeprefix("qnn.").removeprefix("nn.")
    if kind == "dense":
        return to_attribute(results[-1]) if name == "units" else None
    if not kind.startswith("conv"):
        return None
    derived = {"kernel_size": sizes[2:], "channels": results[1]}
    return to_attribute(derived[name]) if name in derived else None


def _fusion_class(op: Operation) -> int:
    """Returns TVM's `TOpPattern` of an op.

    0: element-wise, 1: broadcasting, 2: moving elements, 3: reduction, 4: fusable with a following
    element-wise op, 8: any other.
    """
    kind = relay_name(op)
    if isinstance(op, SoftmaxLikeOp | LrnOp):
        return 8
    if isinstance(op, UnaryOp | CastOp):
        return 0
    if isinstance(op, BroadcastOp | BiasAddOp | WhereOp):
        return 1
    if isinstance(op, ReduceOp):
        return 3
    if type(op).__module__ == ReshapeOp.__module__:
        return 2
    return 4 if _FUSABLE.match(kind) else 8


_FUSABLE = re.compile(r"(nn|qnn)\.(conv|dense|matmul|batch_norm|\w*pool)")


def dtype_mismatch(subject: Subject, dtype: str) -> str | None:
    """Returns why the subject is no tensor of an element type; `None` if it is one."""
    type_ = _type_of(subject)
    if isinstance(type_, TensorType):
        found: Attribute = type_.element_type
        if str(found) == dtype or _numpy_name(found) == dtype:
            return None
    return f"expected {describe(subject)} to have dtype {dtype}, found {type_}"


def shape_mismatch(subject: Subject, shape: tuple[int | None, ...]) -> str | None:
    """Returns why the subject is no tensor of a shape; `None` if it is one."""
    type_ = _type_of(subject)
    if isinstance(type_, TensorType):
        found = type_sizes(cast(Tensor, type_))
        if len(found) == len(shape) and all(
            wanted is None or surely_same(size, wanted)
            for size, wanted in zip(found, shape, strict=True)
        ):
            return None
    wanted = ", ".join("any" if size is None else str(size) for size in shape)
    return f"expected {describe(subject)} to have shape [{wanted}], found {type_}"


def type_mismatch(subject: Subject, type_: Attribute) -> str | None:
    """Returns why the subject does not have a type; `None` if it has it."""
    found = _type_of(subject)
    if found == type_:
        return None
    return f"expected {describe(subject)} to have type {type_}, found {found}"


def same_expression(expression: SSAValue | ConstantValue, value: SSAValue) -> bool:
    """True if `value` is computed by the given expression.

    Two expressions agree if they have the same ops on the same arguments, and constants of equal
    content.
    """
    if isinstance(expression, SSAValue):
        return _same_value(expression, value)
    constant = as_constant(value)
    if constant is None:
        return False
    found, wanted = constant.array, np.asarray(expression)
    if wanted.shape != (found.shape if wanted.ndim else ()) or (
        found.size == 0 and not wanted.ndim
    ):
        return False
    return _holds(found, wanted)


def _holds(found: Array, wanted: Array) -> bool:
    """True if an attribute has the wanted value, rounded to the attribute's precision.

    Only floats are rounded, to another float type: 0.5 is no integer, 300 no `i8`.
    """
    with np.errstate(all="ignore"):
        try:
            cast = wanted.astype(found.dtype)
        except OverflowError:
            return False
        if not np.array_equal(
            np.broadcast_to(cast, found.shape), found, equal_nan=_is_float(found)
        ):
            return False
        if not (_is_float(found) and _is_float(wanted)):
            return bool(np.all(cast.astype(object) == wanted.astype(object)))
        wide, back = wanted.astype(np.float64), cast.astype(np.float64)
    in_range = (np.isfinite(wide) == np.isfinite(back)) & ((wide == 0) == (back == 0))
    return bool(np.all(in_range))


def _is_float(array: Array) -> bool:
    kind = array.dtype.kind
    return kind == "f" or (kind == "V" and not np.can_cast(array.dtype, np.int64))  # of ml_dtypes


def _same_value(one: SSAValue, two: SSAValue) -> bool:
    pending, equal = [(one, two)], set[tuple[SSAValue, SSAValue]]()
    while pending:
        pair = pending.pop()
        if pair[0] is pair[1] or pair in equal:
            continue
        equal.add(pair)
        if not (isinstance(pair[0], OpResult) and isinstance(pair[1], OpResult)):
            return False
        left, right = pair[0].op, pair[1].op
        if not _same_op(left, right) or pair[0].index != pair[1].index:
            return False
        pending.extend(zip(left.operands, right.operands, strict=True))
    return True


def _same_op(one: Operation, two: Operation) -> bool:
    return (
        one.name == two.name
        and one.properties == two.properties
        and len(one.operands) == len(two.operands)
        and one.result_types == two.result_types
        and not (one.regions or two.regions)
    )


def _type_of(subject: Subject) -> Attribute | str:
    return subject.type if isinstance(subject, SSAValue) else "an op with several results"


def _numpy_name(element_type: Attribute) -> str | None:
    try:
        return numpy_dtype(element_type).name
    except ByocError:
        return None
