"""Layouts that win for given times of ops and reorders."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp, bf16
from xdsl.ir import Operation, SSAValue
from xdsl.parser import Parser

from byoc_mlir.backends.dnnl.choices import Choices
from byoc_mlir.backends.dnnl.dialect import (
    DNNL,
    ConvertOp,
    ConvolutionOp,
    ReorderOp,
    layout_of,
)
from byoc_mlir.backends.dnnl.passes import plan_dnnl_layouts
from byoc_mlir.backends.dnnl.passes.plan_dnnl_layouts import PlanDnnlLayouts
from byoc_mlir.backends.dnnl.primitives.descriptions import LayoutOf
from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.relay.base import tensor_type

WINDOW = "{strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]}"
IMAGE, WEIGHTS = "tensor<1x32x28x28xf32>", "tensor<32x32x3x3xf32>"
CONSTANT = f'%w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : {WEIGHTS}'
CONVOLUTION = f"{WINDOW} : ({IMAGE}, {WEIGHTS}) -> {IMAGE}"
CHAIN = f"""
func.func private @chain(%x: {IMAGE}) -> {IMAGE} attributes {{byoc.compiler = "dnnl"}} {{
  {CONSTANT}
  %0 = dnnl.convolution %x, %w {CONVOLUTION}
  %1 = dnnl.convolution %0, %w {CONVOLUTION}
  %2 = dnnl.convolution %1, %w {CONVOLUTION}
  func.return %2 : {IMAGE}
}}
"""
ROUNDED = "tensor<1x32x28x28xbf16>"
CONVERTED = f"""
func.func private @converted(%x: {IMAGE}) -> {ROUNDED} attributes {{byoc.compiler = "dnnl"}} {{
  {CONSTANT}
  %0 = dnnl.convolution %x, %w {CONVOLUTION}
  %1 = dnnl.convert %0 {{element = bf16}} : ({IMAGE}) -> {ROUNDED}
  func.return %1 : {ROUNDED}
}}
"""
BLOCKED, PLAIN = "aBcd8b", "abcd"


class GivenCosts:
    """Costs: a convolution takes 1 ms in a blocked layout, 3 ms in NHWC, 9 ms otherwise; a
    conversion 1 ms, and 1 ms more if it changes the layout; a reorder a given time, and half of it
    for bf16.
    """

    reorder_milliseconds = 0.0

    def __init__(self, choices: Choices):
        del choices

    def op(self, op: Operation, layout: LayoutOf) -> float:
        read, written = layout(op.operands[0]), layout(op.results[0])
        if isinstance(op, ConvertOp):
            return 1.0 if read == written else 2.0
        return {BLOCKED: 1.0, PLAIN: 3.0}.get(written, 9.0) if read == written else 9.0

    def reorder(self, value: SSAValue, old: str, new: str) -> float:
        if old == new:
            return 0.0
        element = tensor_type(value).element_type
        return self.reorder_milliseconds * (0.5 if element == bf16 else 1.0)


def _planned(
    monkeypatch: pytest.MonkeyPatch, text: str, reorder_milliseconds: float
) -> list[Operation]:
    """Returns the ops of a region after the pass."""
    monkeypatch.setattr(plan_dnnl_layouts, "Costs", GivenCosts)
    monkeypatch.setattr(GivenCosts, "reorder_milliseconds", reorder_milliseconds)
    context = make_context()
    context.load_dialect(DNNL)
    module: ModuleOp = Parser(context, text).parse_module()
    PlanDnnlLayouts().apply(context, module)
    module.verify()
    return list(module.walk())


def _layouts(ops: list[Operation]) -> list[str]:
    return [layout_of(op.output) for op in ops if isinstance(op, ConvolutionOp)]


def _reorders(ops: list[Operation]) -> int:
    return sum(isinstance(op, ReorderOp) for op in ops)


def test_one_layout_serves_a_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that the layout is the fastest for each op, with a reorder at either end."""
    ops = _planned(monkeypatch, CHAIN, 1.0)
    assert (_layouts(ops), _reorders(ops)) == ([BLOCKED] * 3, 2)


def test_reorders_that_take_longer_than_they_gain_are_not_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Checks two reorders of 4 ms against the 6 ms that a chain of three would save."""
    ops = _planned(monkeypatch, CHAIN, 4.0)
    assert (_layouts(ops), _reorders(ops)) == ([PLAIN] * 3, 0)


@pytest.mark.parametrize(
    ("reorder_milliseconds", "layout", "reorders"), [(0.5, BLOCKED, 2), (3.0, PLAIN, 0)]
)
def test_numbers_are_converted_in_the_layout_in_which_they_are(
    monkeypatch: pytest.MonkeyPatch, reorder_milliseconds: float, layout: str, reorders: int
) -> None:
    ops = _planned(monkeypatch, CONVERTED, reorder_milliseconds)
    (conversion,) = (op for op in ops if isinstance(op, ConvertOp))
    assert layout_of(conversion.source) == layout_of(conversion.results[0]) == layout
    assert _reorders(ops) == reorders
