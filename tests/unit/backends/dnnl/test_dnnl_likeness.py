"""Measurements for one size are an estimate for sizes near it."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import Block
from xdsl.parser import Parser

from byoc_mlir.backends.dnnl.costs.costs import work_of
from byoc_mlir.backends.dnnl.costs.likeness import Alike, likeness_of, problem_of
from byoc_mlir.backends.dnnl.dialect import layout_of
from byoc_mlir.backends.dnnl.dialect.recurrent import LstmOp
from byoc_mlir.backends.dnnl.passes.convert_relay_to_dnnl import ConvertRelayToDnnl
from byoc_mlir.backends.dnnl.primitives.descriptions import DescribedPrimitive, LayoutOf
from byoc_mlir.backends.dnnl.primitives.of_ops import primitive
from byoc_mlir.dialects import make_context

PRODUCT = """
func.func private @r(%x: tensor<{rows}x8xf32>, %y: tensor<4x8xf32>) -> tensor<{rows}x{columns}xf32>
    attributes {{byoc.compiler = "dnnl"}} {{
  %w = relay.constant dense<{value}> : tensor<{columns}x8xf32>
  %0 = relay.nn.dense %x, {weights} : (tensor<{rows}x8xf32>, tensor<{columns}x8xf32>)
      -> tensor<{rows}x{columns}xf32>
  func.return %0 : tensor<{rows}x{columns}xf32>
}}
"""


def _product(
    rows: int,
    columns: int = 4,
    value: float = 0.5,
    weights: str = "%w",
    layout: LayoutOf = layout_of,
) -> DescribedPrimitive:
    context = make_context()
    text = PRODUCT.format(rows=rows, columns=columns, value=value, weights=weights)
    module = Parser(context, text).parse_module()
    assert isinstance(module, ModuleOp)
    ConvertRelayToDnnl().apply(context, module)
    found = [primitive(op, layout) for op in module.walk() if op.name == "dnnl.matmul"]
    (described,) = found
    assert described is not None
    return described


def _likeness(
    rows: int, columns: int = 4, value: float = 0.5, weights: str = "%w", name: str = "jit"
) -> object:
    return likeness_of(_product(rows, columns, value, weights), name, 1)


def test_products_with_weights_of_one_shape_are_alike() -> None:
    one = _likeness(16)
    assert one == _likeness(24)
    assert one == _likeness(16, value=0.25)
    assert one != _likeness(16, columns=5)
    assert one != _likeness(16, name="gemm")


def test_products_of_two_inputs_are_like_no_others() -> None:
    assert _likeness(16, weights="%y") is None


def test_products_of_the_same_shapes_are_rivals_in_any_layout() -> None:
    turned = _product(16, layout=lambda _: "ba")
    assert turned.call != _product(16).call
    assert problem_of(turned, 1) == problem_of(_product(16), 1)
    assert problem_of(turned, 1) != problem_of(turned, 2)
    assert problem_of(turned, 1) != problem_of(_product(24), 1)


def test_estimates_are_for_nearly_as_much_work() -> None:
    alike = Alike()
    assert alike.estimate("a", 100.0) is None
    alike.add("a", 100.0, 1.0)
    alike.add("a", 1000.0, 5.0)
    assert alike.estimate("a", 150.0) == pytest.approx(1.5)
    assert alike.estimate("a", 800.0) == pytest.approx(4.0)
    assert alike.estimate("a", 201.0) is None
    assert alike.estimate("a", 49.0) is None
    assert alike.estimate("b", 100.0) is None


def test_what_is_like_nothing_serves_nothing() -> None:
    alike = Alike()
    alike.add(None, 100.0, 1.0)
    assert alike.estimate(None, 100.0) is None


@pytest.mark.parametrize(("steps", "batch"), [(5, 2), (5, 16), (9, 2)])
def test_a_recurrent_layer_multiplies_at_each_step_for_each_entry(steps: int, batch: int) -> None:
    block = Block(
        arg_types=[
            TensorType(f32, shape)
            for shape in ([steps, batch, 3], [1, 1, 3, 4, 8], [1, 1, 8, 4, 8], [1, 1, 4, 8])
        ]
    )
    described = primitive(LstmOp(block.args), layout_of)
    assert described is not None
    assert work_of(described) == steps * batch * (3 + 8) * 4 * 8
