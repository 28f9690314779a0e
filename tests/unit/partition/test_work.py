from __future__ import annotations

import pytest
from xdsl.parser import Parser

from byoc_mlir.dialects import make_context
from byoc_mlir.transforms.work import estimated_work

IMAGE, KERNEL = "tensor<1x3x8x8xf32>", "tensor<4x3x3x3xf32>"
WINDOW = "strides = [1, 1], padding = [0, 0, 0, 0], dilation = [1, 1]"


@pytest.mark.parametrize(
    ("op", "types", "result", "work"),
    [
        (f"nn.conv2d %a, %b {{{WINDOW}}}", (IMAGE, KERNEL), "tensor<1x4x6x6xf32>", 2 * 144 * 27),
        ("nn.dense %a, %b", ("tensor<5x7xf32>", "tensor<3x7xf32>"), "tensor<5x3xf32>", 2 * 15 * 7),
        ("nn.matmul %a, %b", ("tensor<2x5x7xf32>", "tensor<7x3xf32>"), "tensor<2x5x3xf32>", 420),
        (
            "nn.matmul %a, %b {transpose_a = true}",
            ("tensor<7x5xf32>", "tensor<7x3xf32>"),
            "tensor<5x3xf32>",
            210,
        ),
        ("add %a, %b", ("tensor<5x7xf32>", "tensor<7xf32>"), "tensor<5x7xf32>", 35),
        ("add %a, %b", ("tensor<?x7xf32>", "tensor<7xf32>"), "tensor<?x7xf32>", 7),
    ],
)
def test_estimated_work(op: str, types: tuple[str, str], result: str, work: int):
    text = f"""func.func @main(%a: {types[0]}, %b: {types[1]}) {{
      %0 = relay.{op} : ({types[0]}, {types[1]}) -> {result}
      func.return
    }}"""
    module = Parser(make_context(), text).parse_module()
    module.verify()
    [first, *_] = (item for item in module.walk() if item.name.startswith("relay."))
    assert estimated_work(first) == work


def test_products_of_a_recurrent_layer():
    """Checks the MACs of states with the weight, at each step, for each batch entry."""
    types = ("tensor<7x2x3x20xf32>", "tensor<2x5x20xf32>", *["tensor<2x3x5xf32>"] * 2)
    results = ("tensor<7x2x3x5xf32>", *types[2:])
    text = f"""func.func @main(%a: {types[0]}, %b: {types[1]}, %c: {types[2]}, %d: {types[3]}) {{
      %0, %1, %2 = relay.nn.lstm %a, %b, %c, %d {{direction = "bidirectional"}} :
        ({", ".join(types)}) -> ({", ".join(results)})
      func.return
    }}"""
    module = Parser(make_context(), text).parse_module()
    module.verify()
    [layer] = (item for item in module.walk() if item.name == "relay.nn.lstm")
    assert estimated_work(layer) == 2 * 7 * 2 * 3 * 20 * 5
