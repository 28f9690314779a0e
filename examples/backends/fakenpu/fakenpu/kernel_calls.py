"""Calls of the device's kernels for ops and composites, and the backend that has rules for them."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends import Backend, OpDetail, Rule
from byoc_mlir.backends.c_compiler import no_c_compiler
from byoc_mlir.backends.region import elementwise_f32, nodes_of, on_channels, only_f32, product_f32
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.base import ints, relay_name, shape_of
from byoc_mlir.dialects.relay.nn import BiasAddOp
from byoc_mlir.dialects.relay.pool import MaxPool2DOp
from byoc_mlir.dialects.relay.window import Conv2DOp, WindowOp
from byoc_mlir.patterns import CompositePattern, Match, is_op, wildcard

ELEMENTWISE = {"add": "add", "multiply": "multiply", "nn.relu": "relu"}
"""Kernels of the element-wise ops."""


@dataclass(frozen=True)
class KernelCall:
    """Call of a kernel: `function(queue, operands…, result, sizes…)`."""

    function: str
    operands: tuple[SSAValue | None, ...]
    """Values in device memory; `None` is a null pointer."""
    sizes: tuple[int, ...]


def kernel_call(op: Operation) -> KernelCall:
    """Returns the call that computes an op or a composite with one result."""
    inner = list(op.ops()) if isinstance(op, CompositeOp) else [op]
    first, name, shape = inner[0], relay_name(inner[0]), shape_of(op.results[0])
    if name in ELEMENTWISE:
        return KernelCall(ELEMENTWISE[name], tuple(op.operands), (math.prod(shape),))
    if isinstance(first, BiasAddOp):
        axis = first.positive_axis
        sizes = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
        return KernelCall("bias_add", tuple(op.operands), sizes)
    data = shape_of(first.operands[0])
    if isinstance(first, MaxPool2DOp):
        sizes = (math.prod(data[:2]), *data[2:], *shape[2:], *ints(first.pool_size), *_steps(first))
        return KernelCall("max_pool2d", tuple(op.operands), sizes)
    if name == "nn.global_avg_pool2d":
        return KernelCall("average", tuple(op.operands), (math.prod(shape), math.prod(data[2:])))
    return _product(inner, tuple(op.operands))


def _product(inner: Sequence[Operation], operands: tuple[SSAValue, ...]) -> KernelCall:
    first, with_relu = inner[0], int(relay_name(inner[-1]) == "nn.relu")
    data, weight = (shape_of(value) for value in first.operands[:2])
    pointers = (*operands, None)[:3]
    if isinstance(first, Conv2DOp):
        result = shape_of(first.output)
        sizes = (*data, result[1], *result[2:], *weight[2:], *_steps(first), with_relu)
        return KernelCall("conv2d", pointers, sizes)
    return KernelCall("dense", pointers, (data[0], weight[0], data[1], with_relu))


def _steps(op: WindowOp) -> tuple[int, ...]:
    """Returns strides, dilations, and the padding at the begin."""
    return (*ints(op.strides), *ints(op.dilation), *ints(op.padding)[:2])


class KernelBackend(Backend, ABC):
    """Backend whose regions are calls of the device's kernels."""

    def unavailable(self) -> str | None:
        return no_c_compiler()

    def op_rules(self) -> Mapping[str, Rule]:
        pools = dict.fromkeys(("nn.max_pool2d", "nn.global_avg_pool2d"), only_f32)
        products = dict.fromkeys(("nn.conv2d", "nn.dense"), product_f32)
        return {**products, **pools, "nn.bias_add": only_f32, "nn.relu": elementwise_f32}

    def patterns(self) -> Sequence[CompositePattern]:
        rows: list[CompositePattern] = []
        for kind in ("conv2d", "dense"):
            product = is_op(f"nn.{kind}")(wildcard(), wildcard()).named("product")
            biased = is_op("nn.bias_add")(product, wildcard()).named("biased")
            variants = {
                f"{kind}_bias_relu": is_op("nn.relu")(biased),
                f"{kind}_bias": biased,
                f"{kind}_relu": is_op("nn.relu")(product),
            }
            rows += [
                CompositePattern(f"{self.name}.{name}", pattern, _check)
                for name, pattern in variants.items()
            ]
        return rows


def _check(match: Match) -> str | None:
    reason = on_channels(match.op("biased")) if "biased" in match else None
    return reason or product_f32(match.op("product"))


def details(region: FuncOp, implementation: str) -> tuple[OpDetail, ...]:
    """Returns the report's rows of a region."""
    return tuple(OpDetail(node_names(op), implementation) for op in nodes_of(region))
