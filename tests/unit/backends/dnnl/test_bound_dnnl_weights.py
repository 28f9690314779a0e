"""Algorithms chosen under a limit of weight memory, with given times."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.ir import Operation
from xdsl.parser import Parser

from byoc_mlir.backends.dnnl.choices import Choices
from byoc_mlir.backends.dnnl.costs.costs import Cost
from byoc_mlir.backends.dnnl.dialect import DNNL, ConvolutionOp
from byoc_mlir.backends.dnnl.passes import bound_dnnl_weights
from byoc_mlir.backends.dnnl.passes.bound_dnnl_weights import BoundDnnlWeights
from byoc_mlir.backends.dnnl.primitives.descriptions import LayoutOf
from byoc_mlir.dialects import make_context

IMAGE, WEIGHTS = "tensor<1x8x9x9xf32>", "tensor<8x8x3x3xf32>"
WINDOW = "strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]"
CONVOLUTION = f'{{{WINDOW}, algorithm = "f4x3"}} : ({IMAGE}, {WEIGHTS}) -> {IMAGE}'
WEIGHT_BYTES = 4 * 8 * 8 * 3 * 3


class GivenCosts:
    """Costs by which Winograd's algorithms are faster; F(4x4) has 4 times the weights, F(2x2) 1.8
    times.
    """

    def __init__(self, choices: Choices):
        del choices

    def offers(self, op: Operation, layout: LayoutOf) -> Sequence[Cost]:
        del op, layout
        sizes = {"direct": (4.0, 1.0), "f2x3": (2.0, 1.8), "f4x3": (1.0, 4.0)}
        return [
            Cost(milliseconds, name, weight_bytes=int(growth * WEIGHT_BYTES))
            for name, (milliseconds, growth) in sizes.items()
        ]


@pytest.mark.parametrize(
    ("growth", "algorithms"),
    [
        (1.0, ["direct", "direct"]),
        (1.8, ["f2x3", "f2x3"]),
        (2.9, ["f2x3", "f4x3"]),
        (4.0, ["f4x3", "f4x3"]),
    ],
)
def test_algorithms_are_the_fastest_whose_weights_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch, growth: float, algorithms: list[str]
) -> None:
    """Checks two convolutions that are both in `f4x3` before the pass."""
    monkeypatch.setattr(bound_dnnl_weights, "Costs", GivenCosts)
    context = make_context()
    context.load_dialect(DNNL)
    attributes = f'byoc.compiler = "dnnl", byoc.weight_growth = {growth} : f64'
    module = Parser(
        context,
        f"""
        func.func private @r(%x: {IMAGE}) -> {IMAGE} attributes {{{attributes}}} {{
          %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : {WEIGHTS}
          %0 = dnnl.convolution %x, %w {CONVOLUTION}
          %1 = dnnl.convolution %0, %w {CONVOLUTION}
          func.return %1 : {IMAGE}
        }}
        """,
    ).parse_module()
    BoundDnnlWeights().apply(context, module)
    found = [op for op in module.walk() if isinstance(op, ConvolutionOp)]
    assert sorted(op.algorithm.data for op in found) == algorithms
    for op in found:
        was_too_large = op.too_large is not None and op.too_large.data == "f4x3"
        assert was_too_large == (op.algorithm.data != "f4x3")
