"""Properties of `relay` ops: conversion from Python values, and checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import (
    AttrConstraint,
    BaseAttr,
    IRDLOperation,
    OptionalDef,
    VerificationContext,
    prop_def,
)
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.shape import ShapeAttr, SizeAttr, is_symbolic
from byoc_mlir.dims import Dim, Size

PyValue: TypeAlias = Attribute | bool | Size | float | str | Sequence[Size] | Sequence[str] | None


@dataclass(frozen=True)
class _OneOf(AttrConstraint[StringAttr]):
    """Constraint of a string property to accepted words; `check_properties` checks it, and names
    the property.
    """

    accepted: tuple[str, ...]

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        BaseAttr(StringAttr).verify(attr, constraint_context)

    def mapping_type_vars(self, type_var_mapping: Mapping[Any, Any]) -> _OneOf:
        return self


def str_prop(default: str | None = None, accepted: Iterable[str] = ()) -> StringAttr:
    """Defines a string property, printed as `layout = "NCHW"`; restricted to `accepted` words, if
    given.
    """
    words = tuple(accepted)
    return prop_def(
        _OneOf(words) if words else BaseAttr(StringAttr),
        default_value=None if default is None else StringAttr(default),
    )


def check_properties(op: IRDLOperation) -> None:
    """Checks that properties exist, and that words are accepted.

    Raises:
        VerifyException: a property is missing or unknown, or its word is not accepted.
    """
    definitions = op.get_irdl_definition().properties
    if unknown := op.properties.keys() - definitions.keys() - {"operandSegmentSizes"}:
        raise VerifyException(
            f"{op.name} has no property {min(unknown)}; it has {', '.join(definitions)}"
        )
    for name, definition in definitions.items():
        value = op.properties.get(name, definition.default_value)
        if value is None and not isinstance(definition, OptionalDef):
            raise VerifyException(f"{op.name}: the property {name} is missing")
        accepted = definition.constr.accepted if isinstance(definition.constr, _OneOf) else ()
        if accepted and isinstance(value, StringAttr) and value.data not in accepted:
            raise VerifyException(
                f"{op.name}: {name} is '{value.data}', accepted is {', '.join(accepted)}"
            )


def to_attribute(value: PyValue) -> Any:
    """Returns the attribute for a Python value in a `relay` property."""
    if isinstance(value, Attribute):
        return value
    if isinstance(value, bool):
        return BoolAttr.from_bool(value)
    if isinstance(value, int):
        return IntegerAttr(_in_i64(value), i64)
    if isinstance(value, Dim):
        return SizeAttr(value)
    if isinstance(value, float):
        return FloatAttr(value, f64)
    if isinstance(value, str):
        return StringAttr(value)
    if isinstance(value, Sequence):
        if value and isinstance(value[0], str):
            return ArrayAttr([StringAttr(str(item)) for item in value])
        sizes = cast(Sequence[Size], value)
        if is_symbolic(sizes):
            return ShapeAttr(tuple(sizes))
        return DenseArrayBase.from_list(i64, [_in_i64(int(item)) for item in sizes])
    raise TypeError(f"no relay property can hold {value!r}")


def _in_i64(number: int) -> int:
    if not -(1 << 63) <= number < 1 << 63:
        raise VerifyException(f"{number:.3e} is computed; accepted are integers of 64 bits")
    return number
