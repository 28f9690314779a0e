"""Products with weights that are quantised in blocks, recognised so that the weights stay packed.

Exporters write a DequantizeLinear before a MatMul, with a Transpose between them where the weight
is stored by units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import NodeProto, helper

from byoc_mlir.dialects.relay.evaluate.blockwise import packed
from byoc_mlir.frontend.order import read_names
from byoc_mlir.frontend.value import Array

DOMAIN = "com.microsoft"
_BITS: Mapping[np.dtype[Any], int] = {
    np.dtype(ml_dtypes.int4): 4,
    np.dtype(ml_dtypes.uint4): 4,
    np.dtype(np.int8): 8,
    np.dtype(np.uint8): 8,
}
_LEAST_BLOCK = 16


@dataclass(frozen=True)
class _Weight:
    """A matrix `[units, steps]` of codes from 0 on, in blocks along the steps."""

    codes: Array
    scales: Array
    zero_points: Array
    block: int
    bits: int

    def constants(self, name: str) -> dict[str, Array]:
        """What a MatMulNBits reads of the weight of a name."""
        units, steps = self.codes.shape
        blocks = self.scales.shape[1]
        whole = np.pad(self.codes, ((0, 0), (0, blocks * self.block - steps)))
        return {
            f"{name}.codes": packed(whole.reshape(units, blocks, -1), self.bits),
            f"{name}.scales": self.scales,
            f"{name}.zero_points": self.zero_points,
        }

    def node(self, product: NodeProto) -> NodeProto:
        """A MatMulNBits in place of a product."""
        units, steps = self.codes.shape
        inputs = [product.input[0], *(f"{product.input[1]}.{part}" for part in _PARTS)]
        sizes: dict[str, Any] = {
            "K": steps,
            "N": units,
            "bits": self.bits,
            "block_size": self.block,
        }
        return helper.make_node(
            "MatMulNBits", inputs, list(product.output), product.name, domain=DOMAIN, **sizes
        )


_PARTS = ("codes", "scales", "zero_points")


@dataclass(frozen=True)
class PackedProducts:
    """A graph's nodes with MatMulNBits in place of such products."""

    nodes: Sequence[NodeProto]
    constants: Mapping[str, Array]
    """What the new nodes read beside the constants of the graph."""
    unread: frozenset[str]
    """The values that nothing reads any more."""


def with_packed_weights(graph: onnx.GraphProto, constants: Mapping[str, Array]) -> PackedProducts:
    """The nodes of a graph, products with weights in blocks recognised."""
    sources = {
        node.output[0]: node
        for node in graph.node
        if _is(node, "DequantizeLinear", 2, 3) or _is(node, "Transpose", 1)
    }
    factors = {node.input[1] for node in graph.node if _is(node, "MatMul", 2)}
    weights = {name: _turned_weight(name, sources, constants) for name in factors & sources.keys()}
    nodes: list[NodeProto] = []
    found: dict[str, Array] = {}
    for node in graph.node:
        weight = weights.get(node.input[1]) if _is(node, "MatMul", 2) else None
        nodes.append(node if weight is None else weight.node(node))
        if weight is not None and f"{node.input[1]}.codes" not in found:
            found |= weight.constants(node.input[1])
    if not found:
        return PackedProducts(graph.node, {}, frozenset())
    unread: set[str] = set()
    for kind in ("Transpose", "DequantizeLinear"):
        read = {output.name for output in graph.output}
        read.update(*(read_names(node) for node in nodes if unread.isdisjoint(node.output)))
        unread |= {
            node.output[0]
            for node in nodes
            if _is(node, kind, 1, 2, 3) and node.output[0] not in read
        }
    return PackedProducts(nodes, found, frozenset(unread))


def _is(node: NodeProto, op_type: str, *operands: int) -> bool:
    """Whether a node, not checked yet, is of a kind, with so many operands and one result."""
    kind = (node.op_type, node.domain, len(node.output))
    return kind == (op_type, "", 1) and len(node.input) in operands


def _turned_weight(
    name: str, sources: Mapping[str, NodeProto], constants: Mapping[str, Array]
) -> _Weight | None:
    """The weight that a value is, turned as MatMul takes it; `None` where it is none."""
    node, turned = sources.get(name), True
    if node is not None and node.op_type == "Transpose":
        turned = False
        node = sources.get(node.input[0]) if _attribute(node, "perm", [1, 0]) == [1, 0] else None
    if node is None or node.op_type != "DequantizeLinear":
        return None
    if (_attribute(node, "axis", 1) in (0, -2)) != turned:
        return None
    return _weight(node, constants, turned=turned)


def _weight(node: NodeProto, constants: Mapping[str, Array], *, turned: bool) -> _Weight | None:
    """What a node dequantises, if it is a matrix in blocks that is known; `turned`: of units."""
    block = _attribute(node, "block_size", 0)
    known = [constants.get(name) for name in node.input]
    arrays = [array.T if turned else array for array in known if array is not None]
    if len(arrays) < max(2, len(known)) or block < _LEAST_BLOCK or block & (block - 1):
        return None
    codes, scales, *rest = arrays
    points = rest[0] if rest else np.zeros(scales.shape, codes.dtype)
    if codes.ndim != 2 or codes.dtype not in _BITS or scales.dtype != np.float32:
        return None
    blocks = (codes.shape[0], -(-codes.shape[1] // block))
    if (scales.shape, points.shape, points.dtype) != (blocks, blocks, codes.dtype):
        return None
    lowest = int(ml_dtypes.iinfo(codes.dtype).min)
    numbers = (codes.astype(np.int16) - lowest).astype(np.uint8)
    return _Weight(numbers, scales, points.astype(np.float32) - lowest, block, _BITS[codes.dtype])


def _attribute(node: NodeProto, name: str, default: Any) -> Any:
    """An attribute; the default where it is of another type, which is refused later."""
    found = next((each for each in node.attribute if each.name == name), None)
    value = default if found is None else helper.get_attribute_value(found)
    return value if isinstance(value, type(default)) else default
