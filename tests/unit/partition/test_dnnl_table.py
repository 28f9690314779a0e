"""Every row of oneDNN's pattern table: found where it should be, and nowhere else.

Each value inside of a match is once used outside, and each side condition is once broken.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType, f16, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from byoc_mlir.backends import get_backend
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.relay import elementwise as e
from byoc_mlir.dialects.relay import nn, window
from byoc_mlir.dialects.relay.constant import ConstantOp
from byoc_mlir.transforms.merge_composite import MergeComposite
from byoc_mlir.transforms.partition_for import PartitionFor
from byoc_mlir.transforms.placement import placements

C = 8
CONVOLUTIONS = {
    "conv1d": window.Conv1DOp,
    "conv2d": window.Conv2DOp,
    "conv3d": window.Conv3DOp,
    "conv1d_transpose": window.Conv1DTransposeOp,
    "conv2d_transpose": window.Conv2DTransposeOp,
    "conv3d_transpose": window.Conv3DTransposeOp,
}
MATRICES = {"dense": nn.DenseOp, "matmul": nn.MatmulOp}


class Graph:
    """A function that ends in the expression under test."""

    def __init__(self, element: Attribute = f32):
        self.element = element
        self.block = Block()

    def argument(self, *shape: int) -> SSAValue:
        return self.block.insert_arg(TensorType(self.element, shape), len(self.block.args))

    def op(self, kind: type[Operation], *operands: SSAValue, **properties: object) -> SSAValue:
        op = kind(*operands, **properties)  # pyright: ignore
        self.block.add_op(op)
        return op.results[0]

    def number(self, value: float) -> SSAValue:
        return self.constant(np.asarray(value, np.float32))

    def constant(self, array: np.ndarray) -> SSAValue:
        dtype = np.float16 if self.element == f16 else np.float32
        op = ConstantOp.of("c", array.astype(dtype))
        self.block.add_op(op)
        return op.output

    def module(self, *results: SSAValue) -> ModuleOp:
        self.block.add_op(ReturnOp(*results))
        types = list(self.block.arg_types), [value.type for value in results]
        module = ModuleOp([FuncOp("main", FunctionType.from_lists(*types), Region(self.block))])
        module.verify()
        return module


def anchor(g: Graph, name: str, layout: str | None = None) -> SSAValue:
    if name in MATRICES:
        return g.op(MATRICES[name], g.argument(5, C), g.argument(C, C))
    kind = CONVOLUTIONS[name]
    rank = kind.SPATIAL_RANK
    windows: dict[str, object] = {
        "strides": [1] * rank,
        "padding": [1] * 2 * rank,
        "dilation": [1] * rank,
        "data_layout": layout or f"NC{'DHW'[-rank:]}",
        "kernel_layout": f"{'IO' if name.endswith('transpose') else 'OI'}{'DHW'[-rank:]}",
    }
    if name.endswith("transpose"):
        windows["output_padding"] = [0] * rank
    shapes = [1, C, *[6] * rank], [C, C, *[3] * rank]
    return g.op(kind, g.argument(*shapes[0]), g.argument(*shapes[1]), **windows)


def bias_add(g: Graph, x: SSAValue, axis: int | None = None) -> SSAValue:
    values = g.constant(np.arange(C, dtype=np.float32))
    last = len(x.type.get_shape()) - 1
    is_matrix = last == 1
    return g.op(
        nn.BiasAddOp, x, values, axis=axis if axis is not None else last if is_matrix else 1
    )


def gelu_erf(g: Graph, x: SSAValue, root: float = math.sqrt(2.0)) -> SSAValue:
    erf = g.op(e.ErfOp, g.op(e.DivideOp, x, g.number(root)))
    product = g.op(e.MultiplyOp, x, g.op(e.AddOp, erf, g.number(1.0)))
    return g.op(e.MultiplyOp, product, g.number(0.5))


def gelu_tanh(g: Graph, x: SSAValue, cubic: float = 0.044715) -> SSAValue:
    cube = g.op(e.PowerOp, x, g.number(3.0))
    inner = g.op(e.AddOp, x, g.op(e.MultiplyOp, cube, g.number(cubic)))
    tanh = g.op(e.TanhOp, g.op(e.MultiplyOp, inner, g.number(math.sqrt(2 / math.pi))))
    product = g.op(e.MultiplyOp, x, g.op(e.AddOp, tanh, g.number(1.0)))
    return g.op(e.MultiplyOp, product, g.number(0.5))


def mish(g: Graph, x: SSAValue, one: float = 1.0) -> SSAValue:
    log = g.op(e.LogOp, g.op(e.AddOp, g.op(e.ExpOp, x), g.number(one)))
    return g.op(e.MultiplyOp, x, g.op(e.TanhOp, log))


def hard_sigmoid(g: Graph, x: SSAValue, low: float = 0.0) -> SSAValue:
    scaled = g.op(e.MultiplyOp, x, g.number(0.2))
    return g.op(e.ClipOp, g.op(e.AddOp, scaled, g.number(0.5)), a_min=low, a_max=1.0)


def hard_swish(g: Graph, x: SSAValue, six: float = 6.0) -> SSAValue:
    clip = g.op(e.ClipOp, g.op(e.AddOp, x, g.number(3.0)), a_min=0.0, a_max=6.0)
    return g.op(e.MultiplyOp, x, g.op(e.DivideOp, clip, g.number(six)))


ACTIVATIONS: dict[str, Callable[[Graph, SSAValue], SSAValue]] = {
    "gelu_erf": gelu_erf,
    "gelu_tanh": gelu_tanh,
    "mish": mish,
    "hardswish": hard_swish,
    "hardsigmoid": hard_sigmoid,
    "swish": lambda g, x: g.op(e.MultiplyOp, x, g.op(e.SigmoidOp, x)),
    "relu": lambda g, x: g.op(nn.ReluOp, x),
    "leaky_relu": lambda g, x: g.op(nn.LeakyReluOp, x, alpha=0.1),
    "clip": lambda g, x: g.op(e.ClipOp, x, a_min=0.0, a_max=6.0),
    "sigmoid": lambda g, x: g.op(e.SigmoidOp, x),
    "tanh": lambda g, x: g.op(e.TanhOp, x),
    "abs": lambda g, x: g.op(e.AbsOp, x),
    "exp": lambda g, x: g.op(e.ExpOp, x),
    "sqrt": lambda g, x: g.op(e.SqrtOp, x),
}

ROWS = [row.name.removeprefix("dnnl.") for row in get_backend("dnnl").patterns()]
ANCHORS = sorted({*CONVOLUTIONS, *MATRICES}, key=lambda name: (-len(name), name))


def build(row: str) -> tuple[Graph, list[SSAValue], SSAValue]:
    """A graph for a row: what is inside of the match, and its result."""
    g = Graph()
    name = next(name for name in ANCHORS if row == name or row.startswith(f"{name}_"))
    rest = row.removeprefix(name).removeprefix("_")
    value = anchor(g, name)
    if rest.startswith("bias"):
        value, rest = bias_add(g, value), rest.removeprefix("bias").removeprefix("_")
    if rest.startswith("sum"):
        residual = g.argument(*value.type.get_shape())
        value, rest = g.op(e.AddOp, value, residual), rest.removeprefix("sum").removeprefix("_")
    if rest:
        value = ACTIVATIONS[rest](g, value)
    inner = [
        result
        for op in g.block.ops
        if not isinstance(op, ConstantOp)
        for result in op.results
        if result is not value
    ]
    return g, inner, value


def composites(module: ModuleOp) -> list[str]:
    return [op.composite_name.data for op in module.walk() if isinstance(op, CompositeOp)]


def merged(module: ModuleOp) -> list[str]:
    MergeComposite(("dnnl",)).apply(Context(), module)
    module.verify()
    return composites(module)


@pytest.mark.parametrize("anchored", ANCHORS)
def test_every_row_is_found(anchored: str):
    longer = [name for name in ANCHORS if name.startswith(f"{anchored}_")]
    mine = [
        row
        for row in ROWS
        if row.startswith(f"{anchored}_") and not any(row.startswith(name) for name in longer)
    ]
    assert len(mine) > 30
    for row in mine:
        g, _, result = build(row)
        assert merged(g.module(result)) == [f"dnnl.{row}"]


@pytest.mark.parametrize("row", [row for row in ROWS if re.match("(conv2d|dense)_(?!tr)", row)])
def test_a_value_inside_that_is_used_outside(row: str):
    _, inner, _ = build(row)
    for position in range(len(inner)):
        g, values, result = build(row)
        tapped = values[position]
        found = merged(g.module(result, tapped))
        assert f"dnnl.{row}" not in found, f"with {tapped.owner.name} used outside"


def reasons(module: ModuleOp) -> str:
    PartitionFor(("dnnl",)).apply(Context(), module)
    module.verify()
    return "\n".join(row.reason for row in placements(module))


Broken = Callable[[Graph], SSAValue]
BROKEN: dict[str, tuple[str, str, Broken]] = {
    "layout": (
        "dnnl.conv2d_relu",
        "layouts NHWC and OIHW",
        lambda g: g.op(nn.ReluOp, anchor(g, "conv2d", layout="NHWC")),
    ),
    "bias axis": (
        "dnnl.conv2d_bias",
        "the bias runs along axis 2, not along the channels",
        lambda g: bias_add(g, wide(g), axis=2),
    ),
    "bias shape": (
        "dnnl.conv2d_bias",
        "is not one number per channel",
        lambda g: g.op(e.AddOp, anchor(g, "conv2d"), g.argument(6, 6)),
    ),
    "full bias under tanh": (
        "dnnl.conv2d_bias_tanh",
        "is not one number per channel",
        lambda g: g.op(e.TanhOp, g.op(e.AddOp, anchor(g, "conv2d"), g.argument(6, 6))),
    ),
    "commuted bias shape": (
        "dnnl.conv2d_bias",
        "is not one number per channel",
        lambda g: g.op(e.AddOp, g.argument(6, 6), anchor(g, "conv2d")),
    ),
    "dense bias shape": (
        "dnnl.dense_bias",
        "is not one number per channel",
        lambda g: g.op(e.AddOp, anchor(g, "dense"), g.argument(5, 1)),
    ),
    "residual shape": (
        "dnnl.conv2d_bias_sum",
        "is broadcast to",
        lambda g: g.op(e.AddOp, bias_add(g, anchor(g, "conv2d")), g.argument(2, C, 6, 6)),
    ),
    "root of gelu": (
        "dnnl.dense_gelu_erf",
        "the constants of gelu_erf are not those",
        lambda g: gelu_erf(g, anchor(g, "dense"), root=7.0),
    ),
    "cubic factor of gelu": (
        "dnnl.dense_gelu_tanh",
        "the constants of gelu_tanh are not those",
        lambda g: gelu_tanh(g, anchor(g, "dense"), cubic=0.05),
    ),
    "one of mish": (
        "dnnl.conv2d_mish",
        "the constants of mish are not those",
        lambda g: mish(g, anchor(g, "conv2d"), one=2.0),
    ),
    "bounds of hardsigmoid": (
        "dnnl.conv2d_hardsigmoid",
        "the constants of hardsigmoid are not those",
        lambda g: hard_sigmoid(g, anchor(g, "conv2d"), low=-1.0),
    ),
    "six of hardswish": (
        "dnnl.conv2d_hardswish",
        "the constants of hardswish are not those",
        lambda g: hard_swish(g, anchor(g, "conv2d"), six=5.0),
    ),
}


def wide(g: Graph) -> SSAValue:
    """A convolution whose result has as many rows as channels, so that a bias fits either axis."""
    data, kernel = g.argument(1, C, C, 6), g.argument(C, C, 3, 3)
    return g.op(
        window.Conv2DOp, data, kernel, strides=[1, 1], padding=[1, 1, 1, 1], dilation=[1, 1]
    )


@pytest.mark.parametrize("case", BROKEN)
def test_broken_side_conditions(case: str):
    name, reason, make = BROKEN[case]
    g = Graph()
    module = g.module(make(g))
    said = reasons(module)
    assert name not in composites(module)
    assert re.search(rf"{name}\b[^;]*: [^;]*{re.escape(reason)}", said)


def test_other_element_types():
    g = Graph(f16)
    module = g.module(g.op(nn.ReluOp, anchor(g, "dense")))
    said = reasons(module)
    assert composites(module) == []
    assert re.search(r"dnnl.dense_relu: element type f16", said)
