"""Subgraphs: `If`, `Loop`, `Scan`; and sequences and optionals, which become tensors again."""

from __future__ import annotations

import numpy as np
from onnx import helper

from byoc_mlir.testing.samples.onnx_nodes.choices import maybe
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import add_node, recipe
from byoc_mlir.testing.samples.onnx_nodes.tensor import RejectedError, Tensor
from byoc_mlir.testing.samples.onnx_nodes.values import Shape

_SIMPLE = ("Add", "Mul", "Relu", "Neg", "Sub", "Concat", "MatMul", "Transpose", "ReduceSum", "Tanh")
_BOOL = np.dtype(np.bool_)


def _grow(graph: RandomGraph) -> None:
    """Adds a few simple nodes."""
    for _ in range(graph.rng.randint(1, 3)):
        add_node(graph, graph.rng.choice(_SIMPLE))


def _like(graph: RandomGraph, wanted: Tensor) -> Tensor:
    """Returns a value of the type of `wanted` that a node of this graph computes."""
    made = {name for node in graph.nodes for name in node.output}
    same = [
        value
        for value in graph.values
        if value.name in made and (value.dtype, value.shape) == (wanted.dtype, wanted.shape)
    ]
    if same:
        return same[-1]
    source = graph.tensor(wanted.dtype, wanted.sizes)
    return graph.emit("Identity", [source])[0]


@recipe("If")
def if_(graph: RandomGraph, op_type: str) -> None:
    condition = graph.parameter(np.array(graph.rng.random() < 0.5), as_input=0.7)
    then, other = graph.inner(), graph.inner()
    _grow(then)
    results = [value for value in then.values[-2:] if _made(then, value)]
    if not results:
        raise RejectedError("an empty branch")
    _grow(other)
    matching = [other.emit("Identity", [_like(other, value)])[0] for value in results]
    graph.emit(
        op_type,
        [condition],
        len(results),
        types=[(value.dtype, value.shape) for value in results],
        then_branch=then.subgraph("then", [], results),
        else_branch=other.subgraph("else", [], matching),
    )


def _made(graph: RandomGraph, value: Tensor) -> bool:
    return value.shape is not None and any(value.name in node.output for node in graph.nodes)


def _argument(body: RandomGraph, name: str, dtype: np.dtype, shape: Shape) -> Tensor:
    body.counter[0] += 1
    value = Tensor(f"{name}{body.counter[0]}", dtype, shape)
    body.values.append(value)
    return value


@recipe("Loop")
def loop(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    trips = rng.randint(0, 4)
    carried = [graph.tensor(graph.dtypes("Relu"), most=3) for _ in range(rng.randint(1, 2))]
    body = graph.inner()
    step = _argument(body, "i", np.dtype(np.int64), ())
    going = _argument(body, "cond", _BOOL, ())
    inside = [_argument(body, "s", value.dtype, value.sizes) for value in carried]
    _grow(body)
    after = [body.emit("Identity", [_like(body, value)])[0] for value in inside]
    (go_on,) = body.emit("Identity", [going])
    (scanned,) = body.emit("Identity", [inside[0]])
    limit = graph.parameter(np.array(trips, np.int64), 0.2)
    start = graph.constant(np.array(True)) if rng.random() < 0.5 else None
    types = [(value.dtype, value.shape) for value in carried]
    graph.emit(
        op_type,
        [limit, start, *carried],
        len(carried) + 1,
        types=[*types, (inside[0].dtype, (trips, *inside[0].sizes))],
        body=body.subgraph("body", [step, going, *inside], [go_on, *after, scanned]),
    )


@recipe("Scan")
def scan(graph: RandomGraph, op_type: str) -> None:
    if graph.opset < 9:
        raise RejectedError("another form")
    steps = graph.rng.randint(1, 4)
    state = graph.tensor(graph.dtypes("Relu"), most=2)
    row = state.sizes
    rows = graph.tensor(state.dtype, (steps, *row))
    body = graph.inner()
    inside = _argument(body, "s", state.dtype, row)
    element = _argument(body, "e", state.dtype, row)
    body.emit("Add", [inside, element])
    _grow(body)
    after = _like(body, inside)
    (scanned,) = body.emit("Identity", [element])
    backwards = maybe(graph, [graph.rng.randint(0, 1)], 0.4)
    graph.emit(
        op_type,
        [state, rows],
        2,
        types=[(state.dtype, row), (state.dtype, (steps, *row))],
        num_scan_inputs=1,
        scan_input_directions=backwards,
        body=body.subgraph("body", [inside, element], [after, scanned]),
    )


@recipe("SequenceConstruct", "SequenceAt", "SequenceInsert", "SequenceErase", "SequenceLength")
@recipe("ConcatFromSequence", "SequenceEmpty")
def sequence(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    dtype = graph.pick_dtype(graph.dtypes("Relu"))
    shape = graph.tensor(dtype, least=1, most=3).sizes
    items = [graph.tensor(dtype, shape) for _ in range(rng.randint(1, 3))]
    held, count = graph.emit_sequence("SequenceConstruct", items), len(items)
    if op_type == "SequenceEmpty":
        number = helper.np_dtype_to_tensor_dtype(dtype)
        held, count = graph.emit_sequence(op_type, [], dtype=number), 0
    if op_type in ("SequenceInsert", "SequenceEmpty"):
        at = graph.parameter(np.array(rng.randint(-count, count), np.int64))
        place = at if rng.random() < 0.6 else None
        operands = [held, graph.tensor(dtype, shape)] + ([place] if place else [])
        held, count = graph.emit_sequence("SequenceInsert", operands), count + 1
    if op_type == "SequenceErase":
        at = graph.parameter(np.array(rng.randint(-count, count - 1), np.int64))
        held, count = graph.emit_sequence(op_type, [held, at]), count - 1
    if op_type == "SequenceLength" or not count:
        graph.emit("SequenceLength", [held], types=[(np.dtype(np.int64), ())])
        return
    if op_type == "ConcatFromSequence":
        joined = (shape[0] * count, *shape[1:])
        graph.emit(op_type, [held], types=[(dtype, joined)], axis=0)
        return
    at = graph.parameter(np.array(rng.randint(-count, count - 1), np.int64))
    graph.emit("SequenceAt", [held, at], types=[(dtype, shape)])


@recipe("SplitToSequence")
def split_to_sequence(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes("Relu"), least=1, most=3)
    size = x.sizes[0]
    part = graph.rng.randint(1, max(size, 1))
    held = graph.emit_sequence(op_type, [x, graph.parameter(np.array(part, np.int64))], axis=0)
    graph.emit("SequenceLength", [held], types=[(np.dtype(np.int64), ())])
    if size:
        first = graph.constant(np.array(0, np.int64))
        shape = (min(part, size), *x.sizes[1:])
        graph.emit("SequenceAt", [held, first], types=[(x.dtype, shape)])


@recipe("Optional", "OptionalGetElement", "OptionalHasElement")
def optional(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes("Relu"))
    held = graph.emit_sequence("Optional", [x])
    if op_type == "OptionalHasElement":
        graph.emit(op_type, [held], types=[(_BOOL, ())])
        return
    graph.emit("OptionalGetElement", [held], types=[(x.dtype, x.shape)])
