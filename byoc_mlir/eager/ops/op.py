"""What our ops are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from typing import Any

import numpy as np
from onnx import NodeProto

from byoc_mlir.eager.ops.errors import NotEagerError
from byoc_mlir.eager.schemas import schema_of, value_of
from byoc_mlir.tensors import Array


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the first one.

    Raises:
        NotEagerError: there is no such axis.
    """
    if not -rank <= axis < rank:
        raise NotEagerError(f"axis {axis} of a tensor of rank {rank}")
    return axis % rank


class Op:
    """An op of the default domain, which its class's `_run` computes.

    Args:
        node: the node.
        opset: the version of the domain, which says what attributes are that are left out.
    """

    _run: Callable[..., Sequence[Any]]
    """The results, for operands of which `None` are left out, and attributes by name."""

    def __init__(self, node: NodeProto, opset: int):
        self.node = node
        self.opset = opset
        schema = schema_of(node.op_type, opset)
        known = {} if schema is None else schema.defaults
        found = {**known, **{item.name: value_of(item) for item in node.attribute}}
        taken = _taken(type(self)._run)
        self._attributes = {name: found[name] for name in found if taken is None or name in taken}

    def run(self, *operands: Array | None) -> tuple[Array, ...]:
        """The results; numpy's numbers become arrays."""
        return tuple(map(np.asarray, self._run(*operands, **self._attributes)))


def _taken(function: Callable[..., object]) -> set[str] | None:
    """The names of what a function takes; `None` where it takes all."""
    parameters = signature(function).parameters
    takes_all = any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())
    return None if takes_all else set(parameters)
