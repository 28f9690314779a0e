"""Definition of the ops of a family, and search for the ops that modules define."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import isclass
from typing import TypeVar, cast

from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition

Kind = TypeVar("Kind", bound=IRDLOperation)


def define_op(
    base: type[Kind],
    name: str,
    document: str | None = None,
    fields: Mapping[str, object] | None = None,
) -> type[Kind]:
    """Defines an op of a family, in the module of the family's base.

    Args:
        base: base class of the family.
        name: the op's name; the class has the last part of it.
        document: documentation of the op, if it differs from the family's.
        fields: other fields of the class.
    """
    words = name.rpartition(".")[2].title().replace("_", "")
    own = {"__doc__": document or base.__doc__, "__module__": base.__module__, "name": name}
    return irdl_op_definition(
        cast("type[Kind]", type(f"{words}Op", (base,), {**own, **(fields or {})}))
    )


def operations_in(*namespaces: Mapping[str, object]) -> list[type[Operation]]:
    """Returns the ops that modules define, in their order, without imported ones."""
    return [
        kind
        for namespace in namespaces
        for kind in tuple(namespace.values())
        if isclass(kind)
        and kind.__module__ == namespace["__name__"]
        and "name" in vars(kind)
        and issubclass(kind, IRDLOperation)  # last: it looks through all ops to say no
    ]
