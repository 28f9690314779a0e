"""Blocks of code in the documentation, and the test of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]

_BLOCK = re.compile(r"^```(?P<language>\S*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)

RUN = ("python", "sh", "console")
"""Languages of blocks that run; in `console`, commands follow `$`, and their output is between
them.
"""

PARSED = ("mlir",)
READ = ("", "c", "text", "toml")
"""Languages of blocks that are for readers: drawings, output of programs, declarations."""


@dataclass(frozen=True)
class Block:
    """Block of a page."""

    page: str
    language: str
    code: str

    @property
    def reason(self) -> str | None:
        """Returns why no test tries the block, or `None` if one does."""
        known = NOT_TRIED.items()
        return next((why for key, why in known if self.is_at(*key)), None)

    def is_at(self, page: str, start: str) -> bool:
        """True if this is the block of a page that begins with `start`."""
        return self.page == page and self.code.startswith(start)


def blocks() -> list[Block]:
    """Returns all blocks of README.md and of the pages in docs, in order."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        Block(page.stem, match["language"], match["code"])
        for page in pages
        for match in _BLOCK.finditer(page.read_text())
    ]


ELSEWHERE: Mapping[str, str] = {
    "artifacts": "tests/unit/artifact/test_artifact_docs.py",
    "patterns": "tests/unit/partition/test_partition_docs.py",
    "partitioning": "tests/unit/partition/test_partition_docs.py",
    "backends": "tests/unit/backends/test_carried_nodes.py",
    "pytorch": "tests/torch/test_pytorch_page.py",
}
"""Pages whose blocks another test runs."""

_ABRIDGED = "an extract, without what every op has"
_INSTALLS = "installs the project"
_LONG = "takes minutes"

NOT_TRIED: Mapping[tuple[str, str], str] = {
    ("cuda", "byoc run"): "needs a GPU",
    ("dumps", "python tools/rereading.py"): _LONG,
    ("faults", "python tests/faults/inject.py"): _LONG,
    ("README", "python -m pip install . &&"): _INSTALLS,
    ("README", "python -m pip install '.[test]'"): _INSTALLS,
    ("README", "byoc new-backend my_npu"): (
        "its test compiles ResNet-18; tests/unit/backends/test_new_backend.py does with less"
    ),
    ("contributing", "python -m pip install -e '.[dev]'"): _INSTALLS,
    ("benchmarks", "python -m pip install '.[bench]'"): _INSTALLS,
    ("fuzzing", "byoc-fuzz --minutes 10"): _LONG,
    ("fuzzing", "byoc-fuzz --targets my_npu"): _LONG,
    ("from-tvm", "# TVM"): "TVM's code, to compare with",
    ("host-compiler", "%1 = linalg.generic {…"): _ABRIDGED,
    ("host-compiler", "func.func @main(%arena, %x, %w"): _ABRIDGED,
    ("host-compiler", "scf.for %n = %c0 to %c32"): _ABRIDGED,
    ("serving", ""): "needs the extra ray, and a server; tests/ray has its calls",
    ("tuning", ""): "it measures for a minute",
    ("processors", "from byoc_mlir.runtime.system.cpu import LEVELS"): (
        "a process for each level; tests/unit/runtime/test_isa.py has such tests"
    ),
    ("processors", "apt-get install gcc-aarch64"): (
        "it needs a cross compiler; tests/aarch64 has such programs"
    ),
}
"""Blocks that no test runs, by page and beginning, and the reason."""

MODEL = """
import numpy as np
import onnx
from onnx import helper, numpy_helper

import byoc_mlir

rng = np.random.default_rng(0)


def save(text, **weights):
    graph = onnx.parser.parse_graph(text)
    for node in graph.node:
        node.name = node.op_type.lower() + "1"
    graph.initializer.extend(
        numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
        for name, shape in weights.items()
    )
    opset = helper.make_opsetid("", 18)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=8)
    onnx.save(model, "model.onnx")
    shape = [dim.dim_value for dim in graph.input[0].type.tensor_type.shape.dim]
    array = rng.standard_normal(shape).astype(np.float32)
    np.savez("inputs.npz", x=array)
    return array


array = save(
    '''net (float[1, 16] x) => (float[1, 10] scores) {
        p = MatMul (x, w)
        r = Relu (p)
        scores = Softmax (r)
    }''',
    w=(16, 10),
)
"""
"""Prelude of every page: a small model, `model.onnx`, and its input."""

_CONVOLUTION = """
array = save(
    '''net (float[1, 3, 16, 16] x) => (float[1, 8] scores) {
        c = Conv <pads = [1, 1, 1, 1]> (x, w, b)
        r = Relu (c)
        g = GlobalAveragePool (r)
        scores = Flatten (g)
    }''',
    w=(8, 3, 3, 3),
    b=(8,),
)
"""

GIVEN: Mapping[str, str] = {
    "README": _CONVOLUTION,
    "compile-and-run": """
from byoc_mlir.testing.networks import NETWORKS
onnx.save(NETWORKS["mnist"](), "model.onnx")
np.savez("inputs.npz", image=rng.random((1, 1, 28, 28), np.float32))
""",
    "debugging": _CONVOLUTION,
    "dnnl": _CONVOLUTION,
    "from-tvm": _CONVOLUTION,
    "inference-session": "image = array",
    "language-models": """
from byoc_mlir.testing.networks import DecoderSizes, decoder
sizes = DecoderSizes(layers=1, vocabulary=50, capacity=512)
layers, shape = sizes.layers, (1, sizes.shared_heads, sizes.capacity, sizes.head_size)
model = decoder(sizes=sizes)
for value in (*model.graph.input, *model.graph.output):
    for start, name in (("past", "past_sequence_length"), ("present", "total_sequence_length")):
        if value.name.startswith(start):
            value.type.tensor_type.shape.dim[2].dim_param = name
step = {
    "input_ids": np.array([[3, 14]]),
    "seqlens_k": np.array([1], np.int32),
    "total_sequence_length": np.array(2, np.int32),
}
""",
}
"""Further prelude of each page."""

_F4, _NUMBER = "memref<4xf32>", "memref<i64>"

VALUES: Mapping[str, str] = {
    "%0 = memref.load %c[] : memref<i1>": f"%c: memref<i1>, %x: {_F4}, %out: {_F4}",
    "// three iterations end in %out when they begin beside it": (
        f"%s: {_F4}, %beside: {_F4}, %out: {_F4}, %x: {_F4}, %row: {_F4}, %rows: memref<5x4xf32>,"
        f" %iteration: {_NUMBER}, %c0: index, %c1: index, %c3: index"
    ),
    "%0 = relay.nn.matmul %x, %w : (tensor<12x64xf32>, tensor<64x40xf32>) -> tensor<12x40xf32>": (
        "%x: tensor<12x64xf32>, %w: tensor<64x40xf32>, %b: tensor<40xf32>"
    ),
    "%0 = relay.qnn.conv2d %x, %w, %x_zero, %w_zero {strides = [1, 1],": (
        "%x: tensor<1x64x56x56xui8>, %w: tensor<64x64x3x3xi8>, %x_zero: tensor<ui8>,"
        " %w_zero: tensor<64xi8>, %bias: tensor<64xi32>, %scales: tensor<64xf32>, %c0: tensor<i32>,"
        " %y_scale: tensor<f32>, %y_zero: tensor<ui8>"
    ),
}
"""Values for the block of a function's IR, by the beginning of its first line."""
