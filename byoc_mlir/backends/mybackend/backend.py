"""A backend that runs one composite: conv2d, then batch norm (or a bias), then ReLU.

The composite is one C function. Its weights are packed when code is generated: batch norm is
multiplied into them, and they lie so that the innermost loop is over output channels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from byoc_mlir.backends.base import Backend, CodegenContext, CSource, OpDetail
from byoc_mlir.backends.c_compiler import find_c_compiler, no_c_compiler
from byoc_mlir.backends.region import nodes_of, only_f32, outputs_of
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay import ConstantOp, Weight
from byoc_mlir.dialects.relay.base import ints, shape_of
from byoc_mlir.dialects.relay.nn import BatchNormOp, BiasAddOp
from byoc_mlir.dialects.relay.window import Conv2DOp
from byoc_mlir.patterns import (
    CompositePattern,
    Match,
    Pattern,
    is_constant,
    is_op,
    is_tuple_get_item,
    wildcard,
)

FUNCTION = """
/* data [N, C, H, W], weight [C, KH, KW, O], bias [O] -> out [N, O, OH, OW] */
static void %(name)s(const float *data, const float *weight, const float *bias, float *out) {
  enum { N = %(n)d, C = %(c)d, H = %(h)d, W = %(w)d, O = %(o)d, OH = %(oh)d, OW = %(ow)d };
  for (long n = 0; n < N; ++n)
    for (long y = 0; y < OH; ++y)
      for (long x = 0; x < OW; ++x) {
        float sum[O];
        for (long o = 0; o < O; ++o) sum[o] = bias[o];
        for (long c = 0; c < C; ++c)
          for (long i = 0; i < %(kh)d; ++i)
            for (long j = 0; j < %(kw)d; ++j) {
              const long row = y * %(sy)d + i * %(dy)d - %(py)d;
              const long column = x * %(sx)d + j * %(dx)d - %(px)d;
              if (row < 0 || row >= H || column < 0 || column >= W) continue;
              const float value = data[((n * C + c) * H + row) * W + column];
              const float *factors = weight + ((c * %(kh)d + i) * %(kw)d + j) * O;
              for (long o = 0; o < O; ++o) sum[o] += value * factors[o];
            }
        for (long o = 0; o < O; ++o)
          out[((n * O + o) * OH + y) * OW + x] = sum[o] < 0.0f ? 0.0f : sum[o];
      }
}
"""
FLAGS = ("-O3", "-march=native", "-ffp-contract=fast")


class MyBackend(Backend):
    """Convolutions of one group with constant weights, followed by batch norm or bias, and ReLU."""

    name: ClassVar[str] = "mybackend"

    def unavailable(self) -> str | None:
        return no_c_compiler()

    def describe(self) -> str:
        return f"C compiler {' '.join(find_c_compiler())}"

    def patterns(self) -> Sequence[CompositePattern]:
        conv = is_op("nn.conv2d")(wildcard(), is_constant()).named("conv")
        parameters = [is_constant() for _ in range(4)]
        normalised = is_tuple_get_item(is_op("nn.batch_norm")(conv, *parameters), 0)
        biased = is_op("nn.bias_add")(conv, is_constant())
        rows: dict[str, Pattern] = {"conv2d_bn_relu": normalised, "conv2d_bias_relu": biased}
        return [
            CompositePattern(f"mybackend.{name}", is_op("nn.relu")(inner), _check)
            for name, inner in rows.items()
        ]

    def codegen(self, region: FuncOp, context: CodegenContext) -> CSource:
        return self.codegen_regions([region], context)[0]

    def codegen_regions(
        self, regions: Sequence[FuncOp], context: CodegenContext
    ) -> Sequence[CSource]:
        source = "".join(map(_functions, regions))
        return [CSource(source, FLAGS, (), *_constants_and_details(region)) for region in regions]


def _functions(region: FuncOp) -> str:
    """A C function for each composite, and one for the region that calls them."""
    symbol, outputs = region.sym_name.data, outputs_of(region)
    names: dict[SSAValue, str] = {value: f"in{i}" for i, value in enumerate(region.args)}
    functions, calls = "", ""
    for number, op in enumerate(_composites(region)):
        made = op.outputs[0]
        names[made] = f"out{outputs.index(made)}" if made in outputs else f"{symbol}_buffer{number}"
        if made not in outputs:
            count = math.prod(shape_of(made))
            functions += f"static _Thread_local float {names[made]}[{count}];\n"
        functions += FUNCTION % {"name": f"{symbol}_{number}", **_sizes(op)}
        operands = f"{names[op.inputs[0]]}, w{number}, b{number}, {names[made]}"
        calls += f"  {symbol}_{number}({operands});\n"
    parameters = [
        *(f"const float *{kind}{i}" for i in range(len(_composites(region))) for kind in "wb"),
        *(f"const float *in{i}" for i in range(len(region.args))),
        *(f"float *out{i}" for i in range(len(outputs))),
    ]
    return f"{functions}\nint {symbol}({', '.join(parameters)}) {{\n{calls}  return 0;\n}}\n"


def _constants_and_details(region: FuncOp) -> tuple[tuple[Weight, ...], tuple[OpDetail, ...]]:
    packed = [_packed(op) for op in _composites(region)]
    note = "weights [C, KH, KW, O]"
    return (
        tuple(Weight.of("packed", array) for pair in packed for array in pair),
        tuple(OpDetail(node_names(op), "C loops", note=note) for op in _composites(region)),
    )


def _check(match: Match) -> str | None:
    conv = match.op("conv")
    assert isinstance(conv, Conv2DOp)
    if conv.groups.value.data != 1:
        return f"only one group is supported, found {conv.groups.value.data}"
    return only_f32(conv)


def _sizes(composite: CompositeOp) -> dict[str, int]:
    conv = _conv(composite)
    (n, c, h, w), (_, o, oh, ow) = shape_of(conv.data), shape_of(conv.output)
    kh, kw = shape_of(conv.weight)[2:]
    (sy, sx), (dy, dx) = ints(conv.strides), ints(conv.dilation)
    py, px = ints(conv.padding)[:2]
    return dict(
        n=n, c=c, h=h, w=w, o=o, oh=oh, ow=ow, kh=kh, kw=kw,
        sy=sy, sx=sx, dy=dy, dx=dx, py=py, px=px,
    )  # fmt: skip


def _packed(composite: CompositeOp) -> tuple[Any, Any]:
    """The weight as `[C, KH, KW, O]` and the bias, with batch norm in both."""
    conv, follower = _conv(composite), list(composite.ops())[-2]
    weight = _array(conv.weight).transpose(1, 2, 3, 0)
    if isinstance(follower, BiasAddOp):
        return np.ascontiguousarray(weight), _array(follower.bias)
    assert isinstance(follower, BatchNormOp)
    scale = _array(follower.gamma) / np.sqrt(
        _array(follower.moving_var) + follower.epsilon.value.data
    )
    bias = _array(follower.beta) - _array(follower.moving_mean) * scale
    return np.ascontiguousarray(weight * scale, np.float32), np.asarray(bias, np.float32)


def _conv(composite: CompositeOp) -> Conv2DOp:
    (conv,) = (op for op in composite.ops() if isinstance(op, Conv2DOp))
    return conv


def _array(value: SSAValue) -> Any:
    assert isinstance(value.owner, ConstantOp)
    return value.owner.array


def _composites(region: FuncOp) -> Sequence[CompositeOp]:
    return [op for op in nodes_of(region) if isinstance(op, CompositeOp)]
