"""The C function that `c_function` generates."""

from __future__ import annotations

import pytest
from xdsl.context import Context
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from byoc_mlir.backends.c_function import c_function
from byoc_mlir.dialects import make_context
from byoc_mlir.errors import BackendError

REGION = """
func.func private @r(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = relay.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %0 = relay.add %x, %c : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
"""


def region(context: Context) -> FuncOp:
    op = Parser(context, REGION).parse_op()
    assert isinstance(op, FuncOp)
    return op


def call(op: object, operands: object, result: str) -> str:
    return f"add({operands}, {result})"


def test_constants_of_the_region_are_parameters() -> None:
    code = c_function(region(make_context()), call)
    assert "int r(const float *const0, const float *in0, float *out0) {" in code
    assert "add(['in0', 'const0'], out0)" in code


def test_a_constant_that_was_not_packed_is_named_in_the_error() -> None:
    with pytest.raises(BackendError, match="@r reads a constant that `packed` replaced"):
        c_function(region(make_context()), call, packed=["weights"])
