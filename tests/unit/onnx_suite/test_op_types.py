"""The table of element types and backends is what the partitioner does."""

from __future__ import annotations

import sys
from pathlib import Path

from op_types import LEVEL, op_types

from byoc_mlir.testing.isa import call_at

PAGE = Path(__file__).parents[3] / "docs" / "op-types.md"
OPS = (
    *(("", "Add"), ("", "Conv"), ("", "Gather"), ("", "MatMul"), ("", "NonZero"), ("", "Range")),
    *(("", "QuantizeLinear"), ("ai.onnx.ml", "Scaler"), ("com.microsoft", "FusedMatMul")),
)


def print_lines() -> None:
    for line in op_types(OPS):
        sys.stdout.write(f"{line}\n")


def test_the_page_has_these_lines() -> None:
    lines = call_at(LEVEL, print_lines).splitlines()
    assert len(lines) == len(OPS)
    assert set(lines) <= set(PAGE.read_text().splitlines())
