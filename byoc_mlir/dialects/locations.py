"""ONNX node names as locations, which passes keep and reports read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ArrayAttr,
    FusedLoc,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
)
from xdsl.ir import Attribute, Operation


@lru_cache(maxsize=4096)
def node_location(node: str) -> LocationAttr:
    """Returns the location of the ONNX node with that name."""
    return NameLoc(StringAttr(node), NoneAttr())


def fused_location(ops: Iterable[Operation]) -> LocationAttr:
    """Returns the location of an op that replaces several ops: each node once, in order."""
    return nodes_location(node for op in ops for node in node_names(op))


def nodes_location(names: Iterable[str]) -> LocationAttr:
    """Returns the location of an op for the given ONNX nodes, without repetitions."""
    nodes = list(dict.fromkeys(names))
    if not nodes:
        return UNKNOWN_LOC
    if len(nodes) == 1:
        return node_location(nodes[0])
    return FusedLoc(ArrayAttr([node_location(node) for node in nodes]), NoneAttr())


def node_names(op: Operation) -> tuple[str, ...]:
    """Returns the ONNX nodes of an op; none if it has no location."""
    return tuple(_names(op.location))


def _names(location: Attribute) -> Iterator[str]:
    if isinstance(location, NameLoc):
        yield location.desc.data
    elif isinstance(location, FusedLoc) and isinstance(location.locations, ArrayAttr):
        for part in location.locations:
            yield from _names(part)
