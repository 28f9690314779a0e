"""Search for the ops that a dialect's modules define."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import isclass

from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation


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
