"""Model with each kind of kernel that tuning chooses for."""

from __future__ import annotations

import numpy as np
import onnx
from helpers.models import parsed


def small_network(seed: int = 0) -> onnx.ModelProto:
    """Returns a network that compiles quickly: convolutions of 3, of 16 and of single channels, a
    transposition and a matmul.
    """
    rng = np.random.default_rng(seed)
    shapes = {"w0": (16, 3, 3, 3), "d": (16, 1, 3, 3), "w1": (16, 16, 1, 1), "w2": (16, 9)}
    weights = {
        name: (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        for name, shape in shapes.items()
    }
    window = "kernel_shape = [3, 3], pads = [1, 1, 1, 1]"
    nodes = f"""
        [conv0] c0 = Conv <{window}> (x, w0)
        [relu0] r0 = Relu (c0)
        [depthwise] d0 = Conv <group = 16, {window}> (r0, d)
        [conv1] c1 = Conv <kernel_shape = [1, 1]> (d0, w1)
        [transpose] t = Transpose <perm = [0, 2, 3, 1]> (c1)
        [exp] e = Exp (t)
        [product] y = MatMul (e, w2)
    """
    return parsed("(float[1, 3, 8, 8] x) => (float[1, 8, 8, 9] y)", nodes, weights)
