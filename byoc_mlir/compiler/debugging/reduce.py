"""The smallest part of a model that differs alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from onnx import NodeProto

from byoc_mlir.compiler.debugging.compare import Comparer
from byoc_mlir.compiler.debugging.parts import Part
from byoc_mlir.compiler.execution.model import compile_model
from byoc_mlir.compiler.partition.report import is_all_on_host
from byoc_mlir.compiler.request import Request
from byoc_mlir.errors import ByocError
from byoc_mlir.frontend.graphs import subgraphs
from byoc_mlir.runtime.verification import Compared, FailingPart

Nodes: TypeAlias = Sequence[NodeProto]


class Reducer:
    """Compiles parts of a model, from inputs that the oracle gives, and compares.

    Args:
        comparer: knows the model and the oracle's values.
        request: how the model is compiled.
        symbols: names for sizes of parts' inputs, which are not fixed then.
    """

    def __init__(self, comparer: Comparer, request: Request, symbols: Mapping[int, str]):
        self._symbols = symbols
        self._comparer = comparer
        self._request = replace(request, prune="off", fallback="allow", profile=False, dump_ir=None)

    def node_by_node(self, nodes: Nodes) -> tuple[Compared, ...]:
        """What each node gives where all of them are compiled together, each an output."""
        names = [name for node in nodes for name in node.output]
        return self._compared(nodes, [name for name in names if name in self._comparer.values])

    def smallest(self, nodes: Nodes, tensor: str) -> FailingPart | None:
        """The smallest part among the nodes that differs; `None` if they do not differ together.

        Of the nodes before the tensor as few as possible, first from the end, then from the start.
        Halving finds them, where a part of a part that is right is right too.
        """
        nodes = self._part(nodes, [tensor]).nodes
        if not nodes or not self._differs(nodes, tensor):
            return None
        last = _first(len(nodes), lambda at: self._differs_up_to(nodes, at))
        nodes = nodes[: last + 1]
        tensor = self._differing(nodes) or tensor
        start = (
            len(nodes)
            - 1
            - _first(len(nodes), lambda more: self._differs(nodes[len(nodes) - 1 - more :], tensor))
        )
        return self.failing(nodes[start:], tensor)

    def failing(self, nodes: Nodes, tensor: str) -> FailingPart | None:
        """The part with these nodes, if the tensor differs in it."""
        found = self._compared(nodes, [tensor])
        if not found or found[0].agrees:
            return None
        part, comparer = self._part(nodes, [tensor]), self._comparer
        rows = [row for row in (comparer.row(node.name) for node in part.nodes) if row is not None]
        main = next((row for row in rows if row.region), rows[-1] if rows else None)
        return FailingPart(
            tuple(node.name for node in part.nodes),
            tuple(node.op_type for node in part.nodes),
            "host" if main is None else main.placement,
            "" if main is None else main.region,
            tuple(dict.fromkeys(row.composite for row in rows if row.composite)),
            self._is_on_host(part),
            tensor,
            found[0].difference,
            part.model.SerializeToString(deterministic=True),
            dict(part.inputs),
            {tensor: comparer.values[tensor]},
        )

    def _differs_up_to(self, nodes: Nodes, at: int) -> bool:
        return self._differing(nodes[: at + 1]) is not None

    def _differing(self, nodes: Nodes) -> str | None:
        """What differs of what the last node gives."""
        names = [name for name in nodes[-1].output if name in self._comparer.values]
        return next((one.tensor for one in self._compared(nodes, names) if not one.agrees), None)

    def _differs(self, nodes: Nodes, tensor: str) -> bool:
        return any(not one.agrees for one in self._compared(nodes, [tensor]))

    def _compared(self, nodes: Nodes, names: Sequence[str]) -> tuple[Compared, ...]:
        """The tensors, where the nodes are compiled alone; none, if that cannot be done."""
        part = self._part(nodes, names)
        try:
            found = run_part(part, self._placed(part))
        except ByocError:  # a part may be what the model is not: then it is not the one
            return ()
        return self._comparer.compared(found, names)

    def _part(self, nodes: Nodes, names: Sequence[str]) -> Part:
        return self._comparer.whole.part(nodes, names, self._comparer.values, self._symbols)

    def _placed(self, part: Part) -> Request:
        """As the model was compiled: what ran on the host alone runs there."""
        if self._is_on_host(part):
            return replace(self._request, targets=(), backend_options={})
        return self._request

    def _is_on_host(self, part: Part) -> bool:
        """Whether no backend has any of it, nor of what is inside of its nodes."""
        rows = [self._comparer.row(node.name) for node in part.nodes]
        graphs = [graph for node in part.nodes for graph in subgraphs(node)]
        return not graphs and all(row is not None and is_all_on_host(row) for row in rows)


def run_part(part: Part, request: Request) -> dict[str, Any]:
    """Compiles a part as a request says, and runs it."""
    with compile_model(replace(request, model=part.model)) as executable:
        return executable.run(part.inputs)


def _first(count: int, fails: Callable[[int], bool]) -> int:
    """The first index that fails, if all behind it fail too; the last one does."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if fails(middle):
            high = middle
        else:
            low = middle + 1
    return low
