"""MatMuls with block-quantised weights, rewritten to MatMulNBits so that the weights stay
packed.

Exporters write a DequantizeLinear before a MatMul, with a Transpose between them if the weight is
stored as `[N, K]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import NodeProto, helper

from byoc_mlir.frontend.graphs import attribute_of
from byoc_mlir.frontend.order import read_names
from byoc_mlir.frontend.value import Array
from byoc_mlir.numpy_ops.blockwise import packed

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
    """Weight as unsigned codes `[N, K]`, quantised in blocks along `K`."""

    codes: Array
    scales: Array
    zero_points: Array
    block: int
    bits: int

    def constants(self, name: str) -> dict[str, Array]:
        """Returns the constant operands of a MatMulNBits for the weight `name`."""
        units, steps = self.codes.shape
        blocks = self.scales.shape[1]
        whole = np.pad(self.codes, ((0, 0), (0, blocks * self.block - steps)))
        return {
            f"{name}.codes": packed(whole.reshape(units, blocks, -1), self.bits),
            f"{name}.scales": self.scales,
            f"{name}.zero_points": self.zero_points,
        }

    def node(self, product: NodeProto) -> NodeProto:
        """Returns the MatMulNBits that replaces `product`, a MatMul."""
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
    """Nodes of a graph, with MatMulNBits in place of MatMuls with block-quantised weights."""

    nodes: Sequence[NodeProto]
    constants: Mapping[str, Array]
    """Constants that the new nodes read, in addition to the graph's."""
    unread: frozenset[str]
    """Names of values that no longer have users."""


def with_packed_weights(graph: onnx.GraphProto, constants: Mapping[str, Array]) -> PackedProducts:
    """Returns the nodes of a graph, with MatMulNBits for MatMuls with block-quantised weights."""
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
    """True if an unchecked node has this op, one result and the given number of operands."""
    kind = (node.op_type, node.domain, len(node.output))
    return kind == (op_type, "", 1) and len(node.input) in operands


def _turned_weight(
    name: str, sources: Mapping[str, NodeProto], constants: Mapping[str, Array]
) -> _Weight | None:
    """Returns the block-quantised weight from which the operand `name` of a MatMul is computed, or
    `None`.
    """
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
    """Returns the weight that a DequantizeLinear computes from constant blocks, or `None`.

    If `turned`, the constants are `[K, N]`, and are transposed.
    """
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
    """Returns an attribute, or the default if the attribute's type is wrong; a later check refuses
    wrong types.
    """
    found = attribute_of(node, name)
    value = helper.get_attribute_value(found) if found.name else default
    return value if isinstance(value, type(default)) else default
