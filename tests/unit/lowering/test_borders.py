"""Images with a border around them, whose interior is not filled first."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import byoc_mlir
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime

_NODES = {
    "depthwise": "y = Conv <group = 24, pads = [1, 2, 0, 1]> (x, k)",
    "pool": "z = Abs (x) t = Neg (z) y = MaxPool <kernel_shape = [3, 3], pads = [1, 0, 1, 1]> (t)",
    "pad": "y = Pad (x, widths, value)",
    "twice": "a = Pad (x, widths, value) y = Pad (a, widths, value)",
    "front": "y = Pad (x, front, value)",
}


def _model(nodes: str, sizes: str) -> onnx.ModelProto:
    model = parser.parse_model(
        f"""<ir_version: 9, opset_import: ["" : 17]>
        net (float[{sizes}] x) => (float[a, b, c, d] y) {{ {nodes} }}"""
    )
    constants = {
        "k": np.random.default_rng(1).standard_normal((24, 1, 3, 3)).astype(np.float32),
        "widths": np.array([0, 0, 2, 1, 0, 0, 3, 0]),
        "front": np.array([1, 2, 0, 0, 0, 1, 0, 0]),
        "value": np.array(0.5, np.float32),
    }
    for name, array in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    return model


@pytest.mark.values
@pytest.mark.parametrize("nodes", _NODES)
@pytest.mark.parametrize("threads", [1, 2])
def test_borders(nodes: str, threads: int) -> None:
    """Checks images of static sizes, of dynamic sizes, and images too small for strips."""
    shapes = [(2, 24, 40, 41), (1, 24, 70, 33), (3, 24, 3, 4), (0, 24, 9, 9)]
    model = _model(_NODES[nodes], "n, 24, h, w")
    together = byoc_mlir.compile(model, targets=(), threads=threads)
    for number, shape in enumerate(shapes):
        feeds = {"x": np.random.default_rng(number).standard_normal(shape).astype(np.float32)}
        expected = run_onnxruntime(model, feeds)
        alone = byoc_mlir.compile(
            _model(_NODES[nodes], ", ".join(map(str, shape))), targets=(), threads=threads
        )
        for executable in (together, alone):
            assert_agrees(executable.run(feeds), expected)
