"""Quantisation and its inverse."""

from __future__ import annotations

import numpy as np

from byoc_mlir.testing.samples.onnx_nodes.choices import some_axis
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import recipe
from byoc_mlir.testing.samples.onnx_nodes.tensor import RejectedError


@recipe("QuantizeLinear", "DequantizeLinear")
def quantise(graph: RandomGraph, op_type: str) -> None:
    rng = graph.rng
    back = op_type == "DequantizeLinear"
    x = graph.tensor(graph.dtypes(op_type), least=0, most=4, style="plain")
    per_axis = x.rank > 0 and graph.opset >= 13 and rng.random() < 0.5
    axis = some_axis(graph, x.rank) if per_axis else None
    shape = () if axis is None else (x.sizes[axis],)
    kinds = graph.dtypes(op_type, 1)
    scale_type = np.dtype(np.float32) if back or x.dtype not in kinds else x.dtype
    scales = [rng.randint(1, 15) / 16 for _ in range(int(np.prod(shape)))]
    scale = graph.parameter(np.array(scales, scale_type).reshape(shape))
    zero_type = x.dtype if back else graph.pick_dtype(graph.dtypes(op_type, 2))
    if (back and x.dtype == np.int32) or rng.random() < 0.2:
        graph.emit(op_type, [x, scale], axis=axis)
        return
    zeros = [rng.randint(0, 9) for _ in range(int(np.prod(shape)))]
    zero = graph.parameter(np.array(zeros, zero_type).reshape(shape))
    graph.emit(op_type, [x, scale, zero], axis=axis)


@recipe("DynamicQuantizeLinear")
def dynamic(graph: RandomGraph, op_type: str) -> None:
    x = graph.tensor(graph.dtypes(op_type), style="plain")
    if 0 in x.sizes:
        raise RejectedError("what has no elements has no range")
    graph.emit(op_type, [x], 3)
