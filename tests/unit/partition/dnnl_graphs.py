"""Functions of the form that a row of oneDNN's pattern table describes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import FunctionType, TensorType, f16, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from byoc_mlir.dialects import core_dialects
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.relay import elementwise as e
from byoc_mlir.dialects.relay import nn, window
from byoc_mlir.dialects.relay.constant import ConstantOp

C = 8
LESS = next(op for op in core_dialects()["relay"]().operations if op.name == "relay.less")
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
    """Function that ends in the expression under test."""

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

    def ones(self, *shape: int) -> SSAValue:
        return self.constant(np.ones(shape))

    def constant(self, array: np.ndarray) -> SSAValue:
        dtype = np.float16 if self.element == f16 else np.float32
        op = ConstantOp.of("c", array.astype(dtype))
        self.block.add_op(op)
        return op.output

    def function(self, result: SSAValue, name: str = "main") -> FuncOp:
        self.block.add_op(ReturnOp(result))
        type_ = FunctionType.from_lists(list(self.block.arg_types), [result.type])
        return FuncOp(name, type_, Region(self.block))


def anchor(g: Graph, name: str) -> SSAValue:
    if name in MATRICES:
        return g.op(MATRICES[name], g.argument(5, C), g.argument(C, C))
    kind = CONVOLUTIONS[name]
    rank = kind.SPATIAL_RANK
    windows: dict[str, object] = {
        "strides": [1] * rank,
        "padding": [1] * 2 * rank,
        "dilation": [1] * rank,
        "data_layout": f"NC{'DHW'[-rank:]}",
        "kernel_layout": f"{'IO' if name.endswith('transpose') else 'OI'}{'DHW'[-rank:]}",
    }
    if name.endswith("transpose"):
        windows["output_padding"] = [0] * rank
    shapes = [1, C, *[6] * rank], [C, C, *[3] * rank]
    return g.op(kind, g.argument(*shapes[0]), g.argument(*shapes[1]), **windows)


def bias_add(g: Graph, x: SSAValue, axis: int | None = None) -> SSAValue:
    values = g.constant(np.arange(C, dtype=np.float32))
    last = len(_shape(x)) - 1
    is_matrix = last == 1
    return g.op(
        nn.BiasAddOp, x, values, axis=axis if axis is not None else last if is_matrix else 1
    )


def gelu_erf(
    g: Graph, x: SSAValue, root: float = math.sqrt(2.0), one: float = 1.0, half: float = 0.5
) -> SSAValue:
    erf = g.op(e.ErfOp, g.op(e.DivideOp, x, g.number(root)))
    product = g.op(e.MultiplyOp, x, g.op(e.AddOp, erf, g.number(one)))
    return g.op(e.MultiplyOp, product, g.number(half))


def gelu_tanh(
    g: Graph,
    x: SSAValue,
    three: float = 3.0,
    cubic: float = 0.044715,
    root: float = math.sqrt(2 / math.pi),
    one: float = 1.0,
    half: float = 0.5,
) -> SSAValue:
    cube = g.op(e.PowerOp, x, g.number(three))
    inner = g.op(e.AddOp, x, g.op(e.MultiplyOp, cube, g.number(cubic)))
    tanh = g.op(e.TanhOp, g.op(e.MultiplyOp, inner, g.number(root)))
    product = g.op(e.MultiplyOp, x, g.op(e.AddOp, tanh, g.number(one)))
    return g.op(e.MultiplyOp, product, g.number(half))


def mish(g: Graph, x: SSAValue, one: float = 1.0) -> SSAValue:
    log = g.op(e.LogOp, g.op(e.AddOp, g.op(e.ExpOp, x), g.number(one)))
    return g.op(e.MultiplyOp, x, g.op(e.TanhOp, log))


def hardsigmoid(g: Graph, x: SSAValue, low: float = 0.0, high: float = 1.0) -> SSAValue:
    scaled = g.op(e.MultiplyOp, x, g.number(0.2))
    return g.op(e.ClipOp, g.op(e.AddOp, scaled, g.number(0.5)), a_min=low, a_max=high)


def hardswish(g: Graph, x: SSAValue, low: float = 0.0, six: float = 6.0) -> SSAValue:
    clip = g.op(e.ClipOp, g.op(e.AddOp, x, g.number(3.0)), a_min=low, a_max=6.0)
    return g.op(e.MultiplyOp, x, g.op(e.DivideOp, clip, g.number(six)))


def elu(g: Graph, x: SSAValue, zero: float = 0.0, one: float = 1.0) -> SSAValue:
    below = g.op(e.SubtractOp, g.op(e.ExpOp, x), g.number(one))
    return g.op(e.WhereOp, g.op(LESS, x, g.number(zero)), below, x)


def prelu(g: Graph, x: SSAValue, slopes: tuple[int, ...] = ()) -> SSAValue:
    return g.op(nn.PreluOp, x, g.ones(*slopes))


ACTIVATIONS: dict[str, Callable[..., SSAValue]] = {
    "gelu_erf": gelu_erf,
    "gelu_tanh": gelu_tanh,
    "mish": mish,
    "hardswish": hardswish,
    "hardsigmoid": hardsigmoid,
    "swish": lambda g, x: g.op(e.MultiplyOp, x, g.op(e.SigmoidOp, x)),
    "prelu": prelu,
    "elu": elu,
    "relu": lambda g, x: g.op(nn.ReluOp, x),
    "leaky_relu": lambda g, x: g.op(nn.LeakyReluOp, x, alpha=0.1),
    "clip": lambda g, x: g.op(e.ClipOp, x, a_min=0.0, a_max=6.0),
    "sigmoid": lambda g, x: g.op(e.SigmoidOp, x),
    "tanh": lambda g, x: g.op(e.TanhOp, x),
    "abs": lambda g, x: g.op(e.AbsOp, x),
    "exp": lambda g, x: g.op(e.ExpOp, x),
    "sqrt": lambda g, x: g.op(e.SqrtOp, x),
}

ANCHORS = sorted({*CONVOLUTIONS, *MATRICES}, key=lambda name: (-len(name), name))


def _shape(x: SSAValue) -> tuple[int, ...]:
    assert isinstance(x.type, TensorType)
    return x.type.get_shape()


def alike(g: Graph, x: SSAValue) -> SSAValue:
    """Adds an argument of the type of `x`."""
    return g.argument(*_shape(x))


AFTER_ANCHOR: dict[str, Callable[[Graph, SSAValue], SSAValue]] = {
    "bias": bias_add,
    "scale": lambda g, x: g.op(e.MultiplyOp, x, g.number(0.5)),
    "sum": lambda g, x: g.op(e.AddOp, x, alike(g, x)),
    "mul": lambda g, x: g.op(e.MultiplyOp, x, alike(g, x)),
    "max": lambda g, x: g.op(e.MaximumOp, x, alike(g, x)),
    "min": lambda g, x: g.op(e.MinimumOp, x, alike(g, x)),
    **ACTIVATIONS,
}


def build(row: str) -> FuncOp:
    """Returns a function that the row describes."""
    name = next(name for name in ANCHORS if row == name or row.startswith(f"{name}_"))
    g = Graph()
    value, rest = anchor(g, name), row.removeprefix(name)
    while rest:
        part = next(part for part in AFTER_ANCHOR if re.match(rf"_{part}(_|$)", rest))
        value, rest = AFTER_ANCHOR[part](g, value), rest.removeprefix(f"_{part}")
    return g.function(value, row)


def composites(scope: Operation) -> list[str]:
    names = [op.composite_name.data for op in scope.walk() if isinstance(op, CompositeOp)]
    return [name.removeprefix("dnnl.") for name in names]
