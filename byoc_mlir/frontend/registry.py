"""Which function imports which ONNX op, from which opset version on."""

from __future__ import annotations

import inspect
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.value import NodeRefused, Value

OpFunction: TypeAlias = Callable[..., Value | Sequence[Value]]
F = TypeVar("F", bound=OpFunction)


@dataclass(frozen=True)
class OnnxOp:
    """One version of an ONNX op and the function that imports it.

    The function takes the context, then the node's inputs (`None` where one is left out), then
    the attributes as keywords; it returns the outputs.
    """

    domain: str
    op_type: str
    since: int
    function: OpFunction
    signature: inspect.Signature

    def __call__(
        self,
        context: NodeContext,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Any],
    ) -> tuple[Value, ...]:
        """The outputs of a node.

        Raises:
            NodeRefused: this node cannot be imported.
            VerifyException: its operands and attributes do not fit together.
        """
        try:
            bound = self.signature.bind(context, *inputs, **attributes)
        except TypeError as error:
            raise NodeRefused(f"this form of the op is not supported: {error}") from error
        outputs = self.function(*bound.args, **bound.kwargs)
        return (outputs,) if isinstance(outputs, Value) else tuple(outputs)


_REGISTRY: dict[tuple[str, str], list[OnnxOp]] = {}


def onnx_op(op_type: str, since: int = 1, domain: str = "") -> Callable[[F], F]:
    """Registers a function for an ONNX op from opset `since` up to the next registered one."""

    def register(function: F) -> F:
        versions = _REGISTRY.setdefault((domain, op_type), [])
        assert all(op.since != since for op in versions), f"{op_type} {since} is registered twice"
        signature = inspect.signature(function)
        versions.append(OnnxOp(domain, op_type, since, function, signature))
        versions.sort(key=lambda op: op.since)
        return function

    return register


def find_op(domain: str, op_type: str, opset: int) -> OnnxOp | None:
    """The function for an op in the version that an opset has, `None` when there is none."""
    versions = _REGISTRY.get((domain, op_type), [])
    index = bisect_right(versions, opset, key=lambda op: op.since)
    return versions[index - 1] if index else None


def registered_ops() -> tuple[OnnxOp, ...]:
    """All registered functions, by domain, op and version."""
    return tuple(op for key in sorted(_REGISTRY) for op in _REGISTRY[key])
