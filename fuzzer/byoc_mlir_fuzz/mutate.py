"""Damaged ONNX models: bytes of the file, or fields of the graph."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, TypeAlias

import onnx
from onnx import AttributeProto, NodeProto, TensorProto, helper

from byoc_mlir.frontend.graphs import subgraphs

_NUMBERS = (0, 1, -1, 2, 3, 7, 127, -128, 2**31 - 1, -(2**31), 2**32, 2**40, 2**63 - 1, -(2**63))
_FLOATS = (0.0, -0.0, 1e-38, -1.0, 1e38, float("inf"), float("-inf"), float("nan"))
_TEXTS = ("", "x", "SAME_UPPER", "linear", "\u00e9\n", "a" * 300, "'\"%", "../../etc")

Mutation: TypeAlias = Callable[[Random, onnx.GraphProto], None]


def mutated_bytes(rng: Random, model: bytes) -> bytes:
    """Changes, deletes, doubles or cuts off some bytes of the file."""
    data = bytearray(model)
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        if not data:
            break
        at, length = rng.randrange(len(data)), rng.choice([1, 1, 2, 8, 64])
        kind = rng.randrange(6)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at] = rng.randrange(256)
        elif kind == 2:
            del data[at : at + length]
        elif kind == 3:
            data[at:at] = data[at : at + length]
        elif kind == 4:
            data[at : at + length] = rng.randbytes(length)
        elif rng.random() < 0.3:
            del data[at:]
    return bytes(data)


def mutated_model(rng: Random, model: onnx.ModelProto) -> bytes:
    """Changes one to four fields of the model."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for _ in range(rng.choice([1, 1, 2, 4])):
        try:
            rng.choice(_MUTATIONS)(rng, copy.graph)
        except (IndexError, ValueError, TypeError):  # there is nothing of the kind to change
            continue
    if rng.random() < 0.05:
        copy.opset_import[0].version = rng.choice([*_NUMBERS, 5, 11, 19])
    if rng.random() < 0.03:
        copy.ir_version = rng.choice(_NUMBERS)
    return copy.SerializeToString()


def _node(rng: Random, graph: onnx.GraphProto) -> NodeProto:
    node = rng.choice(list(graph.node))
    inner = [each for each in subgraphs(node) if each.node]
    return _node(rng, rng.choice(inner)) if inner and rng.random() < 0.6 else node


def _names(graph: onnx.GraphProto) -> list[str]:
    names = [value.name for value in graph.input] + [tensor.name for tensor in graph.initializer]
    return [*names, *(name for node in graph.node for name in node.output)]


def _attribute_number(rng: Random, graph: onnx.GraphProto) -> None:
    attribute = rng.choice(list(_node(rng, graph).attribute))
    if attribute.type == AttributeProto.INT:
        attribute.i = rng.choice(_NUMBERS)
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f = rng.choice(_FLOATS)
    elif attribute.type == AttributeProto.STRING:
        attribute.s = rng.choice(_TEXTS).encode()
    elif attribute.type == AttributeProto.INTS:
        _change_list(rng, attribute)


def _change_list(rng: Random, attribute: AttributeProto) -> None:
    kind = rng.randrange(3)
    if kind == 0:
        attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(_NUMBERS)
    elif kind == 1:
        attribute.ints.append(rng.choice(_NUMBERS))
    else:
        del attribute.ints[rng.randrange(len(attribute.ints))]


def _attribute_type(rng: Random, graph: onnx.GraphProto) -> None:
    attribute = rng.choice(list(_node(rng, graph).attribute))
    kinds: Any = AttributeProto.AttributeType.values()  # numbers, of which the stubs know nothing
    attribute.type = rng.choice(kinds)


def _attribute_added(rng: Random, graph: onnx.GraphProto) -> None:
    name = rng.choice(["axis", "axes", "pads", "strides", "group", "to", "perm", "kernel_shape"])
    numbers = [rng.choice(_NUMBERS) for _ in range(rng.randint(1, 4))]
    value = rng.choice([numbers, numbers[0], "x", 1.5])
    _node(rng, graph).attribute.append(helper.make_attribute(name, value))


def _attribute_gone(rng: Random, graph: onnx.GraphProto) -> None:
    attributes = _node(rng, graph).attribute
    del attributes[rng.randrange(len(attributes))]


def _input_renamed(rng: Random, graph: onnx.GraphProto) -> None:
    node = _node(rng, graph)
    node.input[rng.randrange(len(node.input))] = rng.choice([*_names(graph), "nowhere", ""])


def _input_count(rng: Random, graph: onnx.GraphProto) -> None:
    node = _node(rng, graph)
    if rng.random() < 0.5:
        node.input.append(rng.choice(_names(graph)))
    else:
        del node.input[rng.randrange(len(node.input))]


def _output_changed(rng: Random, graph: onnx.GraphProto) -> None:
    node = _node(rng, graph)
    kind = rng.randrange(3)
    if kind == 0:
        node.output[0] = rng.choice([*_names(graph), "new", ""])
    elif kind == 1:
        node.output.append("more")
    else:
        del node.output[rng.randrange(len(node.output))]


def _op_changed(rng: Random, graph: onnx.GraphProto) -> None:
    schemas = onnx.defs.get_all_schemas()
    _node(rng, graph).op_type = rng.choice(sorted({schema.name for schema in schemas}))


def _node_changed(rng: Random, graph: onnx.GraphProto) -> None:
    at = rng.randrange(len(graph.node))
    kind = rng.randrange(4)
    if kind == 0:
        del graph.node[at]
    elif kind == 1:
        graph.node.append(graph.node[at])
    elif kind == 2:
        graph.node[at].name = rng.choice(_TEXTS)
    else:
        graph.node[at].domain = rng.choice(["ai.onnx.ml", "com.microsoft", "ai.onnx", "byoc"])


def _cycle(rng: Random, graph: onnx.GraphProto) -> None:
    first, last = sorted((rng.randrange(len(graph.node)), rng.randrange(len(graph.node))))
    graph.node[first].input[0] = graph.node[last].output[0]


def _dims(rng: Random, graph: onnx.GraphProto) -> None:
    value = rng.choice([*graph.input, *graph.output])
    dims = value.type.tensor_type.shape.dim
    kind = rng.randrange(4)
    if kind == 0:
        rng.choice(list(dims)).dim_value = rng.choice(_NUMBERS)
    elif kind == 1:
        rng.choice(list(dims)).dim_param = rng.choice(_TEXTS)
    elif kind == 2:
        dims.add().dim_value = rng.choice(_NUMBERS)
    else:
        value.type.tensor_type.ClearField("shape")


def _element_type(rng: Random, graph: onnx.GraphProto) -> None:
    value = rng.choice([*graph.input, *graph.output])
    value.type.tensor_type.elem_type = rng.randrange(27)


def _tensor(rng: Random, graph: onnx.GraphProto) -> None:
    tensor = rng.choice(list(graph.initializer))
    kind = rng.randrange(6)
    if kind == 0:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(_NUMBERS)
    elif kind == 1:
        tensor.data_type = rng.randrange(27)
    elif kind == 2:
        tensor.raw_data = tensor.raw_data[: rng.randrange(len(tensor.raw_data) + 1)]
    elif kind == 3:
        _contents(rng, tensor)
    elif kind == 4:
        tensor.dims.append(rng.choice(_NUMBERS))
    else:
        graph.initializer.remove(tensor)


def _contents(rng: Random, tensor: TensorProto) -> None:
    """Replaces elements by integers, most of them far beyond any axis or shape."""
    numbers = b"".join(
        (rng.choice(_NUMBERS) % 2**64).to_bytes(8, "little")
        for _ in range(len(tensor.raw_data) // 8)
    )
    tensor.raw_data = numbers + tensor.raw_data[len(numbers) :]


def _interface(rng: Random, graph: onnx.GraphProto) -> None:
    kind = rng.randrange(4)
    if kind == 0:
        del graph.input[rng.randrange(len(graph.input))]
    elif kind == 1:
        graph.output.add().name = rng.choice([*_names(graph), "nowhere"])
    elif kind == 2:
        graph.input.append(rng.choice(list(graph.input)))
    else:
        del graph.output[:]


_MUTATIONS: tuple[Mutation, ...] = (
    *(_attribute_number, _attribute_number, _attribute_number, _attribute_type, _attribute_added),
    *(_attribute_gone, _input_renamed, _input_count, _output_changed, _op_changed, _node_changed),
    *(_cycle, _dims, _element_type, _tensor, _tensor, _tensor, _interface),
)
