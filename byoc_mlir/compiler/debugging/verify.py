"""Comparison of a compiled model with an oracle, and search for the smallest part that differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from onnx import ModelProto, NodeProto

from byoc_mlir.compiler.debugging.compare import Comparer, Tolerance, is_quantised
from byoc_mlir.compiler.debugging.oracles import chosen_oracle, tensor_values
from byoc_mlir.compiler.debugging.parts import ExtractedPart, WholeModel
from byoc_mlir.compiler.execution.model import compile_model
from byoc_mlir.compiler.partition.report import is_all_on_host
from byoc_mlir.compiler.request import Request
from byoc_mlir.errors import ByocError, InvalidModelError
from byoc_mlir.frontend.graphs import subgraphs
from byoc_mlir.frontend.order import needed_nodes
from byoc_mlir.runtime.device_array import on_host
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.verification import Asked, Compared, FailingPart, Verification
from byoc_mlir.tensors import StructureInfo, TensorInfo

Nodes: TypeAlias = Sequence[NodeProto]


class Reducer:
    """Search for a small part of a model that differs: it compiles parts, and runs them on the
    oracle's inputs.

    Args:
        comparer: the model and the oracle's values.
        request: options of the compilation.
        symbols: symbolic dimension for each input size that stays symbolic in parts.
    """

    def __init__(self, comparer: Comparer, request: Request, symbols: Mapping[int, str]):
        self._symbols = symbols
        self._comparer = comparer
        self._request = replace(request, prune="off", fallback="allow", profile=False, dump_ir=None)

    def node_by_node(self, nodes: Nodes) -> tuple[Compared, ...]:
        """Compiles the nodes together with each tensor as an output; compares the outputs of each
        node with the oracle's.
        """
        names = [name for node in nodes for name in node.output]
        return self._compared(nodes, [name for name in names if name in self._comparer.values])

    def smallest(self, nodes: Nodes, tensor: str) -> FailingPart | None:
        """Returns the smallest part of the nodes that differs; `None` if all of them together do
        not differ.

        It removes nodes that the tensor depends on, first from the end, then from the start. The
        binary search assumes that each part of a correct part is correct too.
        """
        nodes = self._part(nodes, [tensor]).nodes
        if not nodes or not self._differs(nodes, tensor):
            return None
        last = _first(len(nodes), lambda at: self._differing(nodes[: at + 1]) is not None)
        nodes = nodes[: last + 1]
        tensor = self._differing(nodes) or tensor
        start = (
            len(nodes)
            - 1
            - _first(len(nodes), lambda more: self._differs(nodes[len(nodes) - 1 - more :], tensor))
        )
        return self.failing(nodes[start:], tensor)

    def failing(self, nodes: Nodes, tensor: str) -> FailingPart | None:
        """Returns the part with these nodes, if the tensor differs in it."""
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

    def _differing(self, nodes: Nodes) -> str | None:
        """Returns an output of the last node that differs from the oracle's value, or `None`."""
        names = [name for name in nodes[-1].output if name in self._comparer.values]
        return next((one.tensor for one in self._compared(nodes, names) if not one.agrees), None)

    def _differs(self, nodes: Nodes, tensor: str) -> bool:
        return any(not one.agrees for one in self._compared(nodes, [tensor]))

    def _compared(self, nodes: Nodes, names: Sequence[str]) -> tuple[Compared, ...]:
        """Compiles the nodes as a separate model, and compares `names` with the oracle's values;
        empty if it fails.
        """
        part = self._part(nodes, names)
        request = replace(self._request, model=part.model)
        if self._is_on_host(part):  # as in the model
            request = replace(request, targets=(), backend_options={})
        try:
            with compile_model(request) as executable:
                found = executable.run(part.inputs)
        except ByocError:  # a part may be what the model is not: then it is not the one
            return ()
        return self._comparer.compared(found, names)

    def _part(self, nodes: Nodes, names: Sequence[str]) -> ExtractedPart:
        return self._comparer.whole.part(nodes, names, self._comparer.values, self._symbols)

    def _is_on_host(self, part: ExtractedPart) -> bool:
        """True if no backend runs any op of the part, including ops in subgraphs."""
        rows = [self._comparer.row(node.name) for node in part.nodes]
        graphs = [graph for node in part.nodes for graph in subgraphs(node)]
        return not graphs and all(row is not None and is_all_on_host(row) for row in rows)


def _first(count: int, fails: Callable[[int], bool]) -> int:
    """Returns the first index that fails, assuming that all later ones fail too; the last index
    does fail.
    """
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if fails(middle):
            high = middle
        else:
            low = middle + 1
    return low


TRANSPARENT = ("folded", "removed")
"""Placements of nodes without code."""


@dataclass(frozen=True)
class Examined:
    """A verification and its inputs."""

    verification: Verification
    comparer: Comparer
    request: Request
    inputs: Mapping[str, Any]


def examine(
    executable: Executable,
    request: Request,
    asked: Asked,
) -> Examined:
    """Verifies an executable with an oracle; the errors are those of `Executable.verify`.

    Args:
        request: the model and the options of the executable.
    """
    oracle = chosen_oracle(asked.against)
    source = request.model
    if not isinstance(source, str | Path | bytes | ModelProto) or _is_mlir(source):
        raise InvalidModelError("a model in MLIR has no other form to be compared with")
    found = on_host(executable.run(asked.inputs))
    request = replace(request, resident={})  # what is compiled from here on is not the model
    inputs = {info.name: _as_given(info, asked.inputs[info.name]) for info in executable.inputs}
    whole = WholeModel(source)
    values = tensor_values(oracle, whole, inputs, request)
    is_rounded = request.precision in ("bf16", "f16", "tf32") or is_quantised(whole.model)
    tolerance = Tolerance(asked.rtol, asked.atol, is_rounded)
    comparer = Comparer(whole, values, tolerance, executable.report())
    outputs = comparer.compared(found, whole.outputs)
    compared = {one.tensor for one in outputs}
    others = [name for name in whole.outputs if name not in compared]
    note = f"not compared, as they are no tensors: {', '.join(others)}" if others else ""
    verification = Verification(oracle, outputs, note=note)
    search = _PartSearch(comparer, request, inputs)
    if not verification.agrees:
        verification = search.searched(verification)
    elif asked.nodes:
        verification = replace(verification, nodes=search.tapped(list(values)))
    return Examined(verification, comparer, request, inputs)


def _is_mlir(source: object) -> bool:
    return isinstance(source, str | Path) and Path(source).suffix == ".mlir"


def _as_given(info: TensorInfo, value: Any) -> Any:
    """Converts an input to a tensor of the input's type; sequences and optionals stay unchanged."""
    return value if isinstance(info, StructureInfo) else np.asarray(value, info.dtype)


class _PartSearch:
    """Search for the smallest part of a model that differs."""

    def __init__(self, comparer: Comparer, request: Request, inputs: Mapping[str, Any]):
        self._comparer = comparer
        self._whole = comparer.whole
        self._request = request
        self._inputs = inputs

    def searched(self, verification: Verification) -> Verification:
        """Returns the verification, with the smallest differing part added."""
        boundaries = self._boundaries()
        wrong = [one for one in (*boundaries, *verification.outputs) if not one.agrees]
        order = {name: at for at, name in enumerate(self._whole.producer)}
        first = min(wrong, key=lambda one: order.get(one.tensor, len(order)))
        nodes = self._segment(first.tensor)
        rows, part = (), None
        symbolic = self._whole.symbols(self._inputs)
        for symbols in ({}, symbolic) if symbolic else ({},):
            reducer = Reducer(self._comparer, self._request, symbols)
            rows = reducer.node_by_node(nodes)
            part = self._smallest(reducer, nodes, rows, first.tensor)
            if part is not None:
                break
        note = "no part of the model was found that differs when it is compiled alone"
        notes = [verification.note, "" if part is not None else note]
        return replace(
            verification,
            boundaries=boundaries,
            nodes=rows,
            part=part,
            note="; ".join(filter(None, notes)),
        )

    def _boundaries(self) -> tuple[Compared, ...]:
        """Compares the tensors at region boundaries; compiles the model with these tensors as
        outputs.
        """
        names = [
            name
            for name, node in self._whole.producer.items()
            if name in self._comparer.values and self._crosses(name, node)
        ]
        return self.tapped(names)

    def tapped(self, names: Sequence[str]) -> tuple[Compared, ...]:
        """Compares the named tensors; compiles the model with them as further outputs."""
        names = [name for name in names if name in self._whole.producer]
        model = self._whole.with_outputs(names, self._comparer.values)
        with compile_model(replace(self._request, model=model, fallback="allow")) as executable:
            found = executable.run(self._inputs)
        return self._comparer.compared(found, names)

    def _crosses(self, name: str, node: NodeProto) -> bool:
        place = self._comparer.place(node.name)
        if place in TRANSPARENT or name in self._whole.outputs:
            return False
        readers = self._whole.readers.get(name, ())
        return any(self._comparer.place(reader.name) != place for reader in readers)

    def _segment(self, tensor: str) -> Sequence[NodeProto]:
        """Returns the nodes of a tensor's region on which the tensor depends."""
        places = {node.name: self._comparer.place(node.name) for node in self._whole.nodes}
        node = self._whole.producer.get(tensor)
        if node is None:
            return ()
        here = (places.get(node.name, "host"), *TRANSPARENT)
        before = [node for node in self._whole.before(tensor) if places[node.name] in here]
        return needed_nodes(before, [tensor])

    def _smallest(
        self,
        reducer: Reducer,
        nodes: Sequence[NodeProto],
        rows: Sequence[Compared],
        tensor: str,
    ) -> FailingPart | None:
        """Returns a single node that differs, or else the smallest differing group."""
        for row in rows:
            if row.agrees:
                continue
            alone = [self._whole.producer[row.tensor]]
            part = reducer.failing(alone, row.tensor)
            if part is not None:
                return part
        return reducer.smallest(nodes, tensor) or reducer.smallest(
            self._whole.before(tensor), tensor
        )
