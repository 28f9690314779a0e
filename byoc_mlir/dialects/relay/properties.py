"""What properties of `relay` ops may be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import StringAttr
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


@dataclass(frozen=True)
class _OneOf(AttrConstraint[StringAttr]):
    """Text; `RelayOp` refuses what is not accepted, and names the property."""

    accepted: tuple[str, ...]

    def verify(self, attr: Attribute, constraint_context: VerificationContext) -> None:
        BaseAttr(StringAttr).verify(attr, constraint_context)

    def mapping_type_vars(self, type_var_mapping: Mapping[Any, Any]) -> _OneOf:
        return self


def str_prop(default: str | None = None, accepted: Iterable[str] = ()) -> StringAttr:
    """A string property, printed as `layout = "NCHW"`; any text, unless some are accepted alone."""
    words = tuple(accepted)
    return prop_def(
        _OneOf(words) if words else BaseAttr(StringAttr),
        default_value=None if default is None else StringAttr(default),
    )


def check_properties(op: IRDLOperation) -> None:
    """Checks which properties there are, and those that are one of some words.

    Raises:
        VerifyException: one is missing, unknown, or another word.
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
