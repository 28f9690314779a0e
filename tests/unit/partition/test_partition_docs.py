"""Code in docs/patterns.md and docs/partitioning.md: it does as the pages describe."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from dnnl_graphs import Graph, anchor
from xdsl.context import Context
from xdsl.ir import Operation
from xdsl.parser import Parser

from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.relay import nn
from byoc_mlir.dialects.relay.elementwise import AddOp
from byoc_mlir.dialects.relay.reduce import SoftmaxOp
from byoc_mlir.patterns import match_pattern
from byoc_mlir.tools.byoc_opt import main
from byoc_mlir.transforms.partition_graph import PartitionGraph
from byoc_mlir.transforms.region_times import times_of

DOCS = Path(__file__).parents[3] / "docs"
BACKEND = """
from byoc_mlir.backends import Backend, register_backend

@register_backend
class Npu(Backend):
    name = "npu"
    def patterns(self):
        return table
    def codegen(self, region, context):
        raise NotImplementedError  # models are partitioned here, not compiled
"""
CONVOLUTION = """
func.func @main(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %b = relay.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %0 = relay.nn.conv2d %x, %w {strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]}
    : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  %1 = relay.nn.bias_add %0, %b : (tensor<1x4x6x6xf32>, tensor<4xf32>) -> tensor<1x4x6x6xf32>
  %2 = relay.nn.relu %1 : (tensor<1x4x6x6xf32>) -> tensor<1x4x6x6xf32>
  func.return %2 : tensor<1x4x6x6xf32>
}
"""


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_patterns():
    table, dominator, _ = blocks("patterns.md", "python")
    names: dict[str, Any] = {}
    exec(table, names)
    exec(dominator.replace("\ndominates(", "\ndominated = dominates("), names)
    g = Graph()
    softmax = g.op(SoftmaxOp, g.argument(2, 8), axis=-1)
    twice = g.op(nn.ReluOp, g.op(nn.ReluOp, softmax))
    total = g.op(AddOp, twice, g.op(nn.ReluOp, softmax))
    g.function(total)
    assert isinstance(total.owner, Operation)
    match = match_pattern(names["dominated"], total.owner)
    assert match is not None
    assert len(match.ops) == 5


def test_explanation():
    table, _, session = blocks("patterns.md", "python")
    names: dict[str, Any] = {}
    exec(table, names)
    g = Graph()
    convolution, bias = anchor(g, "conv2d"), g.argument(8)
    bias.name_hint = "bias"
    result = g.op(nn.BiasAddOp, convolution, bias)
    g.function(result)
    names["bias_add"] = result.owner
    example = doctest.DocTestParser().get_doctest(session, names, "patterns.md", None, None)
    assert doctest.DocTestRunner().run(example) == (0, 2)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    text = (DOCS / "partitioning.md").read_text()
    command = re.search(r"^byoc-opt (.*)$", text, re.MULTILINE)
    assert command is not None
    (tmp_path / "npu.py").write_text(blocks("patterns.md", "python")[0] + BACKEND)
    (tmp_path / "model.mlir").write_text(CONVOLUTION)
    arguments = shlex.split(command[1])
    files = [str(tmp_path / word) if (tmp_path / word).is_file() else word for word in arguments]
    assert main(files) == 0
    printed = capsys.readouterr().out
    assert "func.func private @npu_main_0" in printed
    assert 'byoc.composite "npu.conv2d_bias" from "nn.conv2d_nn.bias_add_nn.relu_"' in printed


def test_annotation():
    drawn, outlined, _ = blocks("partitioning.md", "mlir")
    type_ = "tensor<4xf32>"
    text = f"func.func @main(%x: {type_}) -> {type_} {{ {drawn} func.return %2 : {type_} }}"
    module = Parser(make_context(), text).parse_module()
    module.verify()
    PartitionGraph().apply(Context(), module)
    assert outlined.strip() in str(module)


def test_times():
    *_, region = blocks("partitioning.md", "mlir")
    (function,) = Parser(make_context(), region).parse_module().ops
    assert str(times_of(function)) == "estimated: npu 1.200 ms, host 3.400 ms"
