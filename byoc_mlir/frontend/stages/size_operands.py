"""Values of a graph that determine shapes: operands that nodes read as lengths, counts and
shapes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Set

import onnx

from byoc_mlir.frontend.graphs import standard_name
from byoc_mlir.frontend.inferred import inferred_with_values, sizes_of_tensors
from byoc_mlir.frontend.order import read_names
from byoc_mlir.frontend.rounded_sizes import GIVE_SIZES, rounded_values, symbolic_values
from byoc_mlir.frontend.stages.suggestions import sizes_read
from byoc_mlir.locks import cached_property
from byoc_mlir.tensors import MOST_SIZES

_SIZES_OF_SIZES = frozenset(
    {
        "Add",
        "Cast",
        "Concat",
        "Div",
        "Gather",
        "Identity",
        "Max",
        "Min",
        "Mod",
        "Mul",
        "Neg",
        "ReduceMax",
        "ReduceMin",
        "ReduceProd",
        "ReduceSum",
        "Reshape",
        "Slice",
        "Squeeze",
        "Sub",
        "Transpose",
        "Unsqueeze",
    }
)
"""Ops that the importer evaluates symbolically on sizes."""

_INTEGERS = (onnx.TensorProto.INT32, onnx.TensorProto.INT64)


class SizeValues:
    """Values on which sizes in a graph's nodes depend.

    Args:
        model: checked model.
        nodes: the nodes of the model's graph, in order.
        constants: the names of constant tensors.
        arguments: the names of the inputs.
    """

    def __init__(
        self,
        model: onnx.ModelProto,
        nodes: Sequence[onnx.NodeProto],
        constants: Set[str],
        arguments: Iterable[str],
    ):
        self._model = model
        self._nodes = nodes
        self._constants = constants
        self._arguments = frozenset(arguments)

    @cached_property
    def computed(self) -> frozenset[str]:
        """Returns the values on which sizes depend, and which nodes compute from the inputs'
        content, or round from floats.
        """
        return self._values - self._arguments

    @cached_property
    def given(self) -> frozenset[str]:
        """Returns the inputs of few integers on which sizes depend."""
        inputs = self._values & self._arguments
        return inputs & self._few_integers if inputs else inputs

    def read_by(self, nodes: Sequence[onnx.NodeProto]) -> frozenset[str]:
        """Returns the values of other segments on which sizes in these nodes depend."""
        made = {name for node in nodes for name in node.output}
        return self._behind(sizes_read(nodes) - self._constants, nodes) - made

    @cached_property
    def _values(self) -> frozenset[str]:
        wanted = sizes_read(self._nodes) - self._constants
        data = data_of(self._nodes, self._arguments | self._rounded(wanted))
        return self._behind(wanted & data, self._nodes) & data

    def _rounded(self, wanted: Set[str]) -> Set[str]:
        """Returns integers that nodes round from floats that follow from symbolic sizes; none if
        no wanted value depends on such an integer.
        """
        rounded = rounded_values(self._nodes)
        if not rounded or wanted.isdisjoint(data_of(self._nodes, rounded)):
            return frozenset()
        known = {} if self._inferred is None else sizes_of_tensors(self._inferred)
        return rounded & symbolic_values(self._nodes, known, self._model.graph.initializer)

    def _behind(self, wanted: Iterable[str], nodes: Sequence[onnx.NodeProto]) -> frozenset[str]:
        """Returns the values from which the wanted values are computed by symbolic arithmetic."""
        producers = {name: node for node in nodes for name in node.output}
        pending, seen, found = list(wanted), set[str](), set[str]()
        while pending:
            name = pending.pop()
            if name in seen:
                continue
            seen.add(name)
            node = producers.get(name)
            if node is not None and self.is_arithmetic(node):
                pending.extend(read for read in node.input if read not in self._constants)
            else:
                found.add(name)
        return frozenset(found)

    def is_arithmetic(self, node: onnx.NodeProto) -> bool:
        """True if the importer evaluates the node symbolically when its operands are sizes."""
        if standard_name(node.domain) or node.op_type not in _SIZES_OF_SIZES:
            return False
        return all(name in self._constants or name in self._few_integers for name in node.input)

    @cached_property
    def _few_integers(self) -> Set[str]:
        """Returns the integer tensors that are so small that each element may be a symbol."""
        inferred = self._inferred
        if inferred is None:
            return frozenset()
        infos = (*inferred.input, *inferred.value_info, *inferred.output)
        return {info.name for info in infos if _holds_few_integers(info.type.tensor_type)}

    @cached_property
    def _inferred(self) -> onnx.GraphProto | None:
        return inferred_with_values(self._model)


def data_of(nodes: Iterable[onnx.NodeProto], arguments: Iterable[str]) -> Set[str]:
    """Returns the values that depend on the inputs' content, and not only on their shapes."""
    data = set(arguments)
    for node in nodes:
        if node.op_type not in GIVE_SIZES and not data.isdisjoint(read_names(node)):
            data.update(node.output)
    return data


def _holds_few_integers(tensor: onnx.TypeProto.Tensor) -> bool:
    sizes = tensor.shape.dim
    if tensor.elem_type not in _INTEGERS or not tensor.HasField("shape"):
        return False
    is_known = all(dim.HasField("dim_value") for dim in sizes)
    return is_known and math.prod(dim.dim_value for dim in sizes) <= MOST_SIZES
