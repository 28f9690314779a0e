"""Hostile ONNX models: names, sizes, paths, control flow and texts, as an attacker sends them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TypeAlias

import onnx
from google.protobuf.message import DecodeError
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper

from byoc_mlir_fuzz.mutate import mutated_bytes, mutated_model

Attack: TypeAlias = Callable[[Random, ModelProto], None]
"""Change of a model, in place."""

TEXTS = (
    *("", " ", ".", "..", "/", "\\", "%", "%s%n", "{}", "{0.__class__}", "\x00", "a\x00b", "\n"),
    *("\x1b[2J", "\u202e", "\u2028", '"', "'", '"} loc("', "^bb0", "%0", "@main", "#map", "!llvm"),
    *(
        "main",
        "byoc.name",
        "dnnl_main_0",
        "malloc",
        "_start",
        "__tls_get_addr",
        "memcpy",
        "é",
        "名",
    ),
    *("x" * 65_536, "x" * 65_537, "-1", "0", "nan", "None", "$(touch x)", "`touch x`", "; touch x"),
    *("../../x", "/etc/passwd", "C:\\x", "file:///etc/passwd", "https://localhost/x"),
)
PATHS = (
    *("../outside.bin", "/etc/passwd", "/proc/self/mem", "/dev/zero", "/dev/stdin", "pipe", "link"),
    *("folder/../../outside.bin", "folder", "", ".", "..", "\x00", "data.bin\x00", "data.bin", "~"),
    *("./data.bin", "folder/link/outside.bin", "x" * 5000, "é", "data.bin/", "//etc/passwd"),
)
"""Locations of external data; the runner makes `data.bin`, `pipe`, `link` and `folder`."""

_ENDS = (
    *(0, 1, -1, 2, 3, 127, 2**15, 2**31 - 1, 2**31, -(2**31), 2**32, 2**40, 2**62, 2**63 - 1),
    *(-(2**63), -(2**63) + 1, 2**47, 2**61 + 1),
)
_NUMBERS_AS_TEXT = ("0", "-1", "1e3", "9" * 30, "0x10", "", " 4", "4 ", str(2**63), "é", "\x00")


def attacked(rng: Random, model: ModelProto, kind: str) -> bytes:
    """Returns a model after one to three attacks of a kind, as the bytes of its file."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for _ in range(rng.choice([1, 1, 2, 3])):
        try:
            ATTACKS[kind](rng, copy)
        except (IndexError, ValueError, TypeError):  # there is nothing of the kind to change
            continue
        except DecodeError:  # protobuf copies no messages that are nested deeper
            continue
    if kind == "bytes":
        return mutated_bytes(rng, model.SerializeToString())
    if kind == "fields":
        return mutated_model(rng, model)
    data = copy.SerializeToString()
    if kind == "texts" and rng.random() < 0.2:  # not UTF-8, which protobuf writes no more
        names = [name.encode() for name in _value_names(copy.graph) if len(name) > 1]
        if names:
            name = rng.choice(names)
            data = data.replace(name, b"\xff" * len(name))
    return data


def _value_names(graph: GraphProto) -> list[str]:
    names = [value.name for value in (*graph.input, *graph.output, *graph.initializer)]
    return names + [name for node in graph.node for name in (*node.input, *node.output)]


def _names(rng: Random, model: ModelProto) -> None:
    """Renames a value everywhere, so that the model stays valid, or in one place."""
    graph = model.graph
    old, new = rng.choice(_value_names(graph)), rng.choice(TEXTS)
    if rng.random() < 0.2:
        node = rng.choice(list(graph.node))
        node.output[rng.randrange(len(node.output))] = new
        return
    for value in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
        if value.name == old:
            value.name = new
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [new if name == old else name for name in names]
        if rng.random() < 0.3:
            node.name = rng.choice(TEXTS)


def _sizes(rng: Random, model: ModelProto) -> None:
    """Puts a size near the ends of its type into a type, a weight, an attribute or an operand."""
    graph = model.graph
    kind = rng.randrange(5)
    if kind == 0:
        dims = rng.choice([*graph.input, *graph.output]).type.tensor_type.shape.dim
        rng.choice(list(dims)).dim_value = rng.choice(_ENDS)
    elif kind == 1:
        dims = rng.choice(list(graph.input)).type.tensor_type.shape.dim
        rng.choice(list(dims)).dim_param = rng.choice([*TEXTS, "N", "N+1", "N*N*N", "-N", "N//0"])
    elif kind == 2:
        tensor = rng.choice(list(graph.initializer))
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(_ENDS)
    elif kind == 3:
        attributes = [one for node in graph.node for one in node.attribute if one.ints or one.i]
        attribute = rng.choice(attributes)
        if attribute.type == AttributeProto.INT:
            attribute.i = rng.choice(_ENDS)
        else:
            attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(_ENDS)
    else:
        _extreme_operand(rng, graph)


def _extreme_operand(rng: Random, graph: GraphProto) -> None:
    """Replaces an operand by a constant of integers near the ends, of one to four elements."""
    node = rng.choice([node for node in graph.node if node.input])
    name = f"hostile{rng.randrange(1 << 30)}"
    values = [rng.choice(_ENDS) for _ in range(rng.randint(1, 4))]
    graph.initializer.append(helper.make_tensor(name, TensorProto.INT64, [len(values)], values))
    node.input[rng.randrange(len(node.input))] = name


def _paths(rng: Random, model: ModelProto) -> None:
    """Moves a weight to a file, which may lie anywhere, at any offset, with any length."""
    graph = model.graph
    if not graph.initializer:
        value = rng.choice([one for one in graph.input if one.type.HasField("tensor_type")])
        kind = value.type.tensor_type
        dims = [dim.dim_value for dim in kind.shape.dim]
        graph.initializer.append(TensorProto(name=value.name, data_type=kind.elem_type, dims=dims))
    tensor = rng.choice(list(graph.initializer))
    size = len(tensor.raw_data) or 16
    for field in ("raw_data", "float_data", "int32_data", "int64_data", "double_data"):
        tensor.ClearField(field)
    tensor.data_location = TensorProto.EXTERNAL
    entries: Mapping[str, str] = {
        "location": rng.choice(PATHS) if rng.random() < 0.7 else "data.bin",
        "offset": rng.choice(["0", "0", str(4096), *_NUMBERS_AS_TEXT]),
        "length": rng.choice([str(size), str(size), *_NUMBERS_AS_TEXT]),
        rng.choice(TEXTS): rng.choice(TEXTS),
    }
    for key, value in entries.items():
        if rng.random() < 0.9:
            tensor.external_data.add(key=key, value=value)


def _control(rng: Random, model: ModelProto) -> None:
    """Moves the nodes into a branch, a loop, a scan or a function, or nests them deeply."""
    kind = rng.randrange(4)
    if kind == 0:
        _nest(model, rng.choice([1, 2, 31, 33, 60]), doubles=rng.random() < 0.5)
    elif kind == 1:
        _loop(rng, model)
    elif kind == 2:
        _functions(rng, model)
    else:
        body = model.graph.node[rng.randrange(len(model.graph.node))]
        inner = rng.choice([model.graph, GraphProto(), helper.make_graph([body], "g", [], [])])
        copy = GraphProto()
        copy.CopyFrom(inner)
        name = rng.choice(["then_branch", "else_branch", "body"])
        body.attribute.append(helper.make_attribute(name, copy))
        body.op_type = rng.choice(["If", "Loop", "Scan", "SequenceMap", body.op_type])


_NESTED_BYTES = 1 << 16
"""Most bytes of nested graphs, which may double on each level."""


def _nest(model: ModelProto, depth: int, *, doubles: bool) -> None:
    """Moves the nodes into nested branches: one of each level, or both."""
    graph = model.graph
    flat = helper.make_graph(list(graph.node), "flat", [], list(graph.output))
    graph.initializer.append(helper.make_tensor("hostile_yes", TensorProto.BOOL, [], [True]))
    for level in range(depth):
        names = [f"{value.name}" for value in graph.output]
        inner = helper.make_graph(list(graph.node), f"g{level}", [], list(graph.output))
        other = inner if doubles else flat
        node = helper.make_node("If", ["hostile_yes"], names, then_branch=inner, else_branch=other)
        if node.ByteSize() > _NESTED_BYTES:
            return
        graph.node.append(node)
        del graph.node[:-1]


def _loop(rng: Random, model: ModelProto) -> None:
    """Moves the nodes to the body of a loop, with a trip count near the ends of its type."""
    graph = model.graph
    trips, goes = rng.choice(_ENDS), rng.random() < 0.8
    graph.initializer.append(helper.make_tensor("hostile_n", TensorProto.INT64, [], [trips]))
    graph.initializer.append(helper.make_tensor("hostile_yes", TensorProto.BOOL, [], [goes]))
    scanned = [onnx.ValueInfoProto(name=value.name) for value in graph.output]
    body = helper.make_graph(
        [*graph.node, helper.make_node("Identity", ["hostile_c"], ["hostile_d"])],
        "body",
        [
            helper.make_tensor_value_info("hostile_i", TensorProto.INT64, []),
            helper.make_tensor_value_info("hostile_c", TensorProto.BOOL, []),
        ],
        [helper.make_tensor_value_info("hostile_d", TensorProto.BOOL, []), *scanned],
    )
    names = [value.name for value in graph.output]
    del graph.node[:]
    graph.node.append(helper.make_node("Loop", ["hostile_n", "hostile_yes"], names, body=body))
    for value in graph.output:
        value.ClearField("type")
        value.type.tensor_type.elem_type = TensorProto.FLOAT


def _functions(rng: Random, model: ModelProto) -> None:
    """Adds functions that call the next one twice, and the last one the first, or an op."""
    depth = rng.choice([1, 3, 12, 30, 60])
    last = rng.choice(["Relu", "f0", "Abs"])
    for level in range(depth):
        called = f"f{level + 1}" if level + 1 < depth else last
        domain = "hostile" if called.startswith("f") else ""
        nodes = [
            NodeProto(op_type=called, domain=domain, input=["a"], output=["b"]),
            NodeProto(op_type=called, domain=domain, input=["b"], output=["c"]),
        ]
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("hostile", 1)]
        model.functions.append(
            helper.make_function("hostile", f"f{level}", ["a"], ["c"], nodes, opsets)
        )
    model.opset_import.append(helper.make_opsetid("hostile", 1))
    node = rng.choice([node for node in model.graph.node if node.input])
    node.op_type, node.domain = "f0", "hostile"
    del node.input[1:]
    del node.output[1:]
    del node.attribute[:]


def _texts(rng: Random, model: ModelProto) -> None:
    """Puts a hostile text into a field that holds text."""
    node = rng.choice(list(model.graph.node))
    kind = rng.randrange(7)
    text = rng.choice(TEXTS)
    if kind == 0:
        model.doc_string = model.graph.doc_string = node.doc_string = text
    elif kind == 1:
        helper.set_model_props(model, {text: rng.choice(TEXTS)})
    elif kind == 2:
        node.domain = text
    elif kind == 3:
        node.op_type = text
    elif kind == 4:
        model.graph.name = model.producer_name = text
    elif kind == 5:
        texts = [one for one in node.attribute if one.type == AttributeProto.STRING]
        rng.choice(texts).s = text.encode()
    else:
        rng.choice(list(node.attribute)).name = text


def _memory(rng: Random, model: ModelProto) -> None:
    """Replaces the graph by ops on tensors about as large as the limits, constants or not."""
    size = 1 << rng.randint(16, 24)
    names, lines = ["a"], [_LARGE_CONSTANTS.format(size=size), rng.choice(_LARGE_VALUES)]
    for number in range(rng.randint(1, 10)):
        one, two = rng.choice(names), rng.choice(names)
        lines.append(f"v{number} = {rng.choice(_LARGE_OPS).format(one=one, two=two)}")
        names.append(f"v{number}")
    results = rng.sample(names, min(len(names), rng.randint(1, 4)))
    lines += [
        f"y{number} = ReduceMax <keepdims = 0> ({name})" for number, name in enumerate(results)
    ]
    outputs = ", ".join(f"float y{number}" for number in range(len(results)))
    results = ", ".join(f"float m_{name}" for name in names)
    text = f"{_LARGE_HEADER} g (float[1] x) => ({outputs}) {{ {' '.join(lines)} }}"
    model.CopyFrom(onnx.parser.parse_model(text))


_LARGE_HEADER = '<ir_version: 8, opset_import: ["": 17]>'
_LARGE_CONSTANTS = (
    "n = Constant <value = int64[1] {{{size}}}> () p = Constant <value = int64[2] {{0, {size}}}> ()"
    " s = Constant <value = int64 {{{size}}}> () i = Constant <value_int = 0> ()"
    " u = Constant <value_float = 1.0> ()"
)
_LARGE_VALUES = (
    *("a = Expand (x, n)", "a = Tile (x, n)", "a = ConstantOfShape (n)", "a = Pad (x, p)"),
    "c = ConstantOfShape (n) a = Add (c, x)",
    "l = Constant <value_float = 0.0> () f = Cast <to = 1> (s) a = Range (l, f, u)",
)
_LARGE_OPS = (
    *("Exp ({one})", "Neg ({one})", "Concat <axis = 0> ({one}, {two})", "Identity ({one})"),
    *("Softmax <axis = 0> ({one})", "CumSum ({one}, i)", "Add ({one}, x)", "Add ({one}, {two})"),
    *("Cast <to = 11> ({one})", "Transpose ({one})", "Concat <axis = 0> ({one}, {one}, {one})"),
)


def _unchanged(rng: Random, model: ModelProto) -> None:
    """Leaves the model; functions of their own change bytes, fields, limits, times and inputs."""


ATTACKS: Mapping[str, Attack] = {
    "bytes": _unchanged,
    "fields": _unchanged,
    "names": _names,
    "sizes": _sizes,
    "paths": _paths,
    "control": _control,
    "texts": _texts,
    "memory": _memory,
    "limits": _unchanged,
    "time": _unchanged,
    "inputs": _unchanged,
}
