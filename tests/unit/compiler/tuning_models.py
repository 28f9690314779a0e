"""Model with each kind of kernel that tuning chooses for."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def small_network(seed: int = 0) -> onnx.ModelProto:
    """Returns a network that compiles quickly: convolutions of 3, of 16 and of single channels, a
    transposition and a matmul.
    """
    generator = np.random.default_rng(seed)

    def weight(name: str, *shape: int) -> TensorProto:
        array = generator.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
        return numpy_helper.from_array(array.astype(np.float32), name)

    weights = [
        weight("w0", 16, 3, 3, 3),
        weight("d", 16, 1, 3, 3),
        weight("w1", 16, 16, 1, 1),
        weight("w2", 16, 9),
    ]
    window: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["c0"], "conv0", **window),
        helper.make_node("Relu", ["c0"], ["r0"], "relu0"),
        helper.make_node("Conv", ["r0", "d"], ["d0"], "depthwise", group=16, **window),
        helper.make_node("Conv", ["d0", "w1"], ["c1"], "conv1", kernel_shape=[1, 1]),
        helper.make_node("Transpose", ["c1"], ["t"], "transpose", perm=[0, 2, 3, 1]),
        helper.make_node("Exp", ["t"], ["e"], "exp"),
        helper.make_node("MatMul", ["e", "w2"], ["y"], "product"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 8, 8, 9])
    graph = helper.make_graph(nodes, "small", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
