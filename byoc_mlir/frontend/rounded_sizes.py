"""Sizes that nodes round from floats: symbolic arithmetic does not follow them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import onnx
from onnx import helper, numpy_helper
from onnx.external_data_helper import uses_external_data

from byoc_mlir.frontend.graphs import attribute_of
from byoc_mlir.frontend.order import read_names
from byoc_mlir.frontend.value import Array

GIVE_SIZES = frozenset({"Shape", "Size"})
"""Ops whose results depend on their operand's shape only."""

_FLOATS = (
    *(onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE),
    *(onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16),
)


def rounded_values(nodes: Iterable[onnx.NodeProto]) -> frozenset[str]:
    """Returns the integers to which nodes round floats that follow from shapes.

    Args:
        nodes: nodes in order.
    """
    sizes, floats, rounded = set[str](), set[str](), set[str]()
    for node in nodes:
        outputs = frozenset(filter(None, node.output))
        read = frozenset(read_names(node))
        is_cast = node.op_type == "Cast"
        is_float = is_cast and attribute_of(node, "to").i in _FLOATS
        if node.op_type in GIVE_SIZES:
            sizes |= outputs
        elif is_cast and not is_float and not floats.isdisjoint(read):
            rounded |= outputs
            sizes |= outputs
        elif not floats.isdisjoint(read) or (is_float and not sizes.isdisjoint(read)):
            floats |= outputs
        elif not sizes.isdisjoint(read):
            sizes |= outputs
    return frozenset(rounded)


def with_symbols(graph: onnx.GraphProto, shapes: Mapping[str, Sequence[int]]) -> None:
    """Replaces rounded integers by the shapes of new inputs, so that shape inference follows each
    element.

    ```text
    size = Cast <to = 7> (floored)
    // becomes, with an input "size{}" of shape ["size{0}", "size{1}"]
    size:int64 = Shape ("size{}")
    size = Cast <to = 7> ("size:int64")
    ```

    Args:
        shapes: shapes of the rounded integers, of rank 0 or 1, by name.
    """
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        name = node.output[0] if node.output else ""
        if name not in shapes:
            nodes.append(node)
            continue
        count = math.prod(shapes[name])
        source, elements = f"{name}{{}}", f"{name}:int64"
        dims = [f"{name}{{{number}}}" for number in range(count)]
        graph.input.append(helper.make_tensor_value_info(source, onnx.TensorProto.UINT8, dims))
        nodes.append(helper.make_node("Shape", [source], [elements]))
        if not shapes[name]:
            nodes.append(helper.make_node("Squeeze", [elements], [f"{elements}:0"]))
        cast = helper.make_node("Cast", nodes[-1].output, [name])
        cast.attribute.extend(node.attribute)
        nodes.append(cast)
    del graph.node[:]
    graph.node.extend(nodes)


def symbolic_values(
    nodes: Iterable[onnx.NodeProto],
    known: Mapping[str, Sequence[int | None]],
    tensors: Iterable[onnx.TensorProto],
) -> set[str]:
    """Returns the values that depend on sizes that are not the same in every run.

    A position of a shape is followed through `Gather` and `Slice` with constant operands.

    Args:
        nodes: nodes in order.
        known: sizes of tensors that are the same in every run.
        tensors: constants of the graph.
    """
    constants = {tensor.name: tensor for tensor in tensors}
    items: dict[str, Sequence[int | None]] = {}
    symbolic: set[str] = set()
    for node in nodes:
        if node.op_type == "Constant":
            constants.update((name, attribute_of(node, "value").t) for name in node.output)
        elif node.op_type in GIVE_SIZES:
            shape = known.get(node.input[0], (None,))
            items[node.output[0]] = shape[_part(node)] if node.op_type == "Shape" else shape
        elif node.op_type in ("Gather", "Slice") and node.input[0] in items:
            items[node.output[0]] = _selected(node, items[node.input[0]], constants)
        elif not symbolic.isdisjoint(read_names(node)):
            symbolic.update(filter(None, node.output))
        symbolic.update(name for name in node.output if None in items.get(name, ()))
    return symbolic


def _part(shape: onnx.NodeProto) -> slice:
    end = attribute_of(shape, "end")
    return slice(attribute_of(shape, "start").i, end.i if end.name else None)


def _selected(
    node: onnx.NodeProto,
    items: Sequence[int | None],
    constants: Mapping[str, onnx.TensorProto],
) -> Sequence[int | None]:
    """Returns the selected sizes; all of them if the positions are not constant."""
    operands = [_array(constants.get(name)) for name in node.input[1:]]
    if not operands or any(operand is None for operand in operands):
        return items
    numbers = [operand.reshape(-1).tolist() for operand in operands if operand is not None]
    if node.op_type == "Gather":
        inside = range(-len(items), len(items))
        return [items[place] if place in inside else None for place in numbers[0]]
    if any(len(each) != 1 for each in numbers):
        return items
    begin, end, step = numbers[0][0], numbers[1][0], numbers[3][0] if len(numbers) > 3 else 1
    return items[begin:end:step] if step else items


def _array(tensor: onnx.TensorProto | None) -> Array | None:
    if tensor is None or not tensor.data_type:
        return None
    return None if uses_external_data(tensor) else numpy_helper.to_array(tensor)
