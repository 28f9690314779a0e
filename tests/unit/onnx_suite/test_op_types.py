"""Table of element types and backends: it equals the partitioner's placement."""

from __future__ import annotations

import sys

from op_types_page import LEVEL, op_types

from byoc_mlir.testing.isa import call_at

OPS = (
    *(("", "Add"), ("", "Conv"), ("", "Gather"), ("", "MatMul"), ("", "NonZero"), ("", "Range")),
    *(("", "QuantizeLinear"), ("ai.onnx.ml", "Scaler"), ("com.microsoft", "FusedMatMul")),
)


LINES = """\
| Add | h | h | h | h | h | h | h | h |  |
| Conv | hd | h | hd | hd |  |  |  |  |  |
| Gather | h | h | h | h | h | h | h | h | h |
| MatMul | hdb | h | hdb | hdb |  |  | h | h |  |
| NonZero | h | h | h | h | h | h | h | h | h |
| Range | h | h | h | h |  |  | h | h |  |
| QuantizeLinear | h |  | h | h |  |  | f |  |  |
| Scaler | h | h |  |  |  |  | h | h |  |
| FusedMatMul | hdb |  |  |  |  |  |  |  |  |
"""


def print_lines() -> None:
    for line in op_types(OPS):
        sys.stdout.write(f"{line}\n")


def test_lines_of_the_page() -> None:
    assert call_at(LEVEL, print_lines) == LINES
