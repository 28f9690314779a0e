"""A backend that runs one composite: conv2d, then batch norm (or a bias), then ReLU.

Its weights are packed when code is generated: batch norm is multiplied into them, and they lie so
that the innermost loop of `kernel.c` is over output channels. The originals are freed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends import Backend, CodegenContext, CSource, OpDetail
from byoc_mlir.backends.c_compiler import find_c_compiler, no_c_compiler
from byoc_mlir.backends.c_function import c_function
from byoc_mlir.backends.region import nodes_of, on_channels, only_f32
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay import ConstantOp, Weight
from byoc_mlir.dialects.relay.base import ints, shape_of
from byoc_mlir.dialects.relay.nn import BatchNormOp, BiasAddOp
from byoc_mlir.dialects.relay.window import Conv2DOp, ConvOp
from byoc_mlir.patterns import (
    CompositePattern,
    Match,
    Pattern,
    is_constant,
    is_op,
    is_tuple_get_item,
    wildcard,
)

FLAGS = ("-O3", "-march=native", "-ffp-contract=fast")


class MyBackend(Backend):
    """Backend for convolutions of one group with constant weights, followed by batch norm or bias,
    and ReLU.
    """

    name: ClassVar[str] = "mybackend"
    api_version: ClassVar[int] = 1

    def unavailable(self) -> str | None:
        return no_c_compiler()

    def describe(self) -> str:
        return f"C compiler {' '.join(find_c_compiler())}"

    def patterns(self) -> Sequence[CompositePattern]:
        conv = is_op("nn.conv2d")(wildcard(), is_constant()).named("conv")
        parameters = [is_constant() for _ in range(4)]
        norm = is_op("nn.batch_norm")(conv, *parameters)
        normalised = is_tuple_get_item(norm, 0).named("per_channel")
        biased = is_op("nn.bias_add")(conv, is_constant()).named("per_channel")
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
        kernel = Path(__file__).with_name("kernel.c").read_text()
        source = kernel + "\n".join(map(_function, regions))
        return [
            CSource(source, FLAGS, constants=_constants(region), details=_details(region))
            for region in regions
        ]


def _check(match: Match) -> str | None:
    conv = match.op("conv")
    assert isinstance(conv, Conv2DOp)
    if conv.groups.value.data != 1:
        return f"only one group is supported, found {conv.groups.value.data}"
    return on_channels(match.op("per_channel")) or only_f32(conv)


def _function(region: FuncOp) -> str:
    numbers = {op: number for number, op in enumerate(nodes_of(region))}

    def call(op: Operation, operands: Sequence[str], result: str) -> str:
        conv, number = _conv(op), numbers[op]
        sizes = ", ".join(map(str, (*shape_of(conv.data), *shape_of(conv.output)[1:])))
        kernel, padding = shape_of(conv.weight)[2:], ints(conv.padding)[:2]
        window = (*kernel, *ints(conv.strides), *ints(conv.dilation), *padding)
        tensors = f"{operands[0]}, weight{number}, bias{number}, {result}"
        return f"conv2d_relu({tensors}, {sizes}, (long[]){{{', '.join(map(str, window))}}})"

    packed = [f"{kind}{number}" for number in numbers.values() for kind in ("weight", "bias")]
    return c_function(region, call, packed)


def _constants(region: FuncOp) -> tuple[Weight, ...]:
    packed = [array for op in nodes_of(region) for array in _packed(op)]
    return tuple(Weight.of("packed", np.ascontiguousarray(array, np.float32)) for array in packed)


def _packed(composite: Operation) -> tuple[Any, Any]:
    """Returns the weight as `[C, KH, KW, O]` and the bias, with batch norm folded into both."""
    weight = _array(_conv(composite).weight).transpose(1, 2, 3, 0)
    for op in composite.walk():
        if isinstance(op, BiasAddOp):
            return weight, _array(op.bias)
        if isinstance(op, BatchNormOp):
            scale = _array(op.gamma) / np.sqrt(_array(op.moving_var) + op.epsilon.value.data)
            return weight * scale, _array(op.beta) - _array(op.moving_mean) * scale
    raise AssertionError("neither of the patterns")


def _conv(composite: Operation) -> ConvOp:
    (conv,) = (op for op in composite.walk() if isinstance(op, Conv2DOp))
    return conv


def _array(value: SSAValue) -> Any:
    assert isinstance(value.owner, ConstantOp)
    return value.owner.array


def _details(region: FuncOp) -> tuple[OpDetail, ...]:
    note = "weights [C, KH, KW, O]"
    return tuple(OpDetail(node_names(op), "C loops", note=note) for op in nodes_of(region))
