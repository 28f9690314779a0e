"""Element-wise ops and reductions whose operands must stay in the domain that ONNX defines."""

from __future__ import annotations

import numpy as np
from onnx import helper

from byoc_mlir.testing.samples.onnx_nodes.choices import maybe, some_axes, some_axis
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import recipe
from byoc_mlir.testing.samples.onnx_nodes.tensor import DTYPES, Tensor
from byoc_mlir.testing.samples.onnx_nodes.values import broadcastable, is_float


@recipe("Add", "Sub", "Mul", "PRelu", "Equal", "Less", "Greater", "And", "Or", "Xor")
@recipe("LessOrEqual", "GreaterOrEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
def binary(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type))
    y = _second(graph, x)
    operands = [x, y] if op_type == "PRelu" or graph.rng.random() < 0.7 else [y, x]
    graph.emit(op_type, operands, broadcast=1 if x.shape != y.shape else None)


def _second(graph: RandomGraph, x: Tensor) -> Tensor:
    same = graph.rng.random() < 0.4
    return graph.tensor(x.dtype, x.sizes if same else broadcastable(graph.rng, x.sizes))


@recipe("Div", "Mod")
def divide(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type))
    shape = broadcastable(graph.rng, x.sizes)
    zero_too = is_float(x.dtype) or graph.rng.random() < 0.03
    y = graph.tensor(x.dtype, shape, style=None if zero_too else "positive")
    fmod = None
    if op_type == "Mod":
        fmod = 1 if is_float(x.dtype) else maybe(graph, 1, 0.3)
    graph.emit(op_type, [x, y], fmod=fmod, broadcast=1 if shape != x.shape else None)


@recipe("Pow")
def power(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type))
    kinds = graph.dtypes(op_type, 1) if graph.opset >= 12 else [x.dtype]
    dtype = x.dtype if x.dtype in kinds and graph.rng.random() < 0.7 else graph.pick_dtype(kinds)
    if not is_float(x.dtype):
        dtype = x.dtype if x.dtype in kinds else dtype
    shape = broadcastable(graph.rng, x.sizes)
    style = None if is_float(x.dtype) else "positive"
    y = graph.tensor(dtype, shape, style=style)
    graph.emit(op_type, [x, y], broadcast=1 if shape != x.shape else None)


@recipe("BitShift")
def shift(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type))
    y = graph.tensor(x.dtype, broadcastable(graph.rng, x.sizes), style="positive")
    graph.emit(op_type, [x, y], direction=graph.rng.choice(["LEFT", "RIGHT"]))


@recipe("Clip")
def clip(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type))
    low, high = sorted((graph.rng.randint(-4, 4), graph.rng.randint(-4, 4)))
    if x.dtype.kind == "u":
        low, high = abs(low), abs(low) + high + 4
    if graph.opset >= 11:
        bounds = [graph.parameter(np.array(n, x.dtype)) for n in (low, high)]
        graph.emit(op_type, [x], min=maybe(graph, bounds[0]), max=maybe(graph, bounds[1]))
        return
    graph.emit(op_type, [x], min=maybe(graph, float(low)), max=maybe(graph, float(high)))


@recipe("Cast", "CastLike")
def cast(graph: RandomGraph, op_type: str) -> None:
    to = graph.pick_dtype(DTYPES)
    x = graph.tensor(graph.dtypes(op_type))
    if is_float(x.dtype) and not is_float(to) and to != np.bool_:  # out of range is not defined
        x = graph.tensor(x.dtype, style="positive", fresh=True)
    if op_type == "CastLike":
        graph.emit(op_type, [x, graph.tensor(to)])
        return
    number = helper.np_dtype_to_tensor_dtype(to)
    name = onnx_name(number) if graph.opset < 6 else number
    graph.emit(op_type, [x], to=name)


def onnx_name(number: int) -> str:
    return helper.tensor_dtype_to_string(number).removeprefix("TensorProto.")


@recipe("Where")
def where(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type, 1))
    y = _second(graph, x)
    condition = graph.tensor(np.dtype(np.bool_), broadcastable(graph.rng, x.sizes))
    graph.emit(op_type, [condition, *graph.rng.sample([x, y], 2)])


@recipe("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2")
@recipe("ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")
def reduce(graph: RandomGraph, op_type: str) -> None:
    style = "positive" if op_type == "ReduceLogSum" else None
    kinds = graph.dtypes(op_type)
    if op_type == "ReduceLogSumExp":  # ONNX Runtime cuts the logarithm of integers, then adds
        kinds = [dtype for dtype in kinds if is_float(dtype)]
    x = graph.tensor(kinds, style=style)
    axes = some_axes(graph, x.rank) if graph.opset >= 11 else None
    if axes is None:
        axes = [axis % x.rank for axis in some_axes(graph, x.rank, 1)]
    elif 0 in x.sizes:  # ONNX Runtime ignores axes counted from the end of what is empty
        axes = [axis % x.rank for axis in axes]
    keep = maybe(graph, graph.rng.randint(0, 1))
    noop = maybe(graph, graph.rng.randint(0, 1), 0.2)
    graph.emit(op_type, [x], axes=axes or None, keepdims=keep, noop_with_empty_axes=noop)


@recipe("CumSum", "CumProd")
def cumulate(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), least=1)
    axis = graph.parameter(np.array(some_axis(graph, x.rank), np.int64))
    flags = {name: maybe(graph, graph.rng.randint(0, 1)) for name in ("exclusive", "reverse")}
    graph.emit(op_type, [x, axis], **flags)


@recipe("Dropout")
def dropout(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type))
    ratio = np.array(0.5, np.float32) if graph.opset >= 12 else 0.5
    test = 1 if graph.opset < 7 else None
    graph.emit(op_type, [x], graph.rng.randint(1, 2), ratio=maybe(graph, ratio), is_test=test)
