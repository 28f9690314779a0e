"""Model for the command line tools, with nodes of every placement."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper, parser

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
net (float[batch, 3, 8, 8] x) => (float[batch, 4, 6, 6] y, float[batch, 4, 6, 6] z)
<float[4, 3, 3, 3] w, float[4] s, float[4] b>
{
  half = Constant <value = float {0.5}> ()
  one = Add (half, half)
  same = Identity (x)
  conv = Conv (same, w)
  norm = BatchNormalization (conv, s, b, b, s)
  z = Relu (norm)
  sin = Sin (z)
  y = Mod <fmod = 1> (sin, one)
}"""

NODES = ["Constant", "Add", "Identity", "Conv", "BatchNormalization", "Relu", "Sin", "Mod"]


def model(batch: int | str = 1) -> onnx.ModelProto:
    """Returns a convolution into which batch norm and relu are fused, then ops for the host."""
    built: onnx.ModelProto = parser.parse_model(MODEL.replace("batch", str(batch)))
    generator = np.random.default_rng(3)
    for name, shape in {"w": (4, 3, 3, 3), "s": (4,), "b": (4,)}.items():
        array = generator.uniform(0.5, 1.5, shape).astype(np.float32)
        built.graph.initializer.append(numpy_helper.from_array(array, name))
    for node in built.graph.node:
        node.name = f"/[{node.op_type.lower()}]"  # brackets are markup to rich
    return built


def written(folder: Path, batch: int | str = 1) -> str:
    """Writes the model and returns its path."""
    path = folder / "model.onnx"
    onnx.save(model(batch), path)
    return str(path)
