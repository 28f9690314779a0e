"""Activations that code of our own computes faster than oneDNN's post-ops."""

from __future__ import annotations

import math
from collections.abc import Mapping

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.backends.dnnl.api import api
from byoc_mlir.backends.dnnl.choices import MEASURED
from byoc_mlir.backends.dnnl.costs import Costs
from byoc_mlir.backends.dnnl.dialect import (
    ActivationOp,
    ConvolutionOp,
    EltwiseAttr,
    InnerProductOp,
    MatmulOp,
    layout_of,
)
from byoc_mlir.backends.dnnl.dialect.base import PostOpsOp
from byoc_mlir.dialects.relay.base import shape_of

ACTIVATION_RATES: Mapping[str, float] = {"swish": 2.2e6, "gelu_erf": 1.5e6, "gelu_tanh": 1.8e6}
"""Elements per millisecond on one thread; timed on an AMD EPYC with AVX2."""

_WORTH_A_PASS = 0.95
"""How much cheaper it must be: the results are read and written once more."""


_PRODUCTS = (ConvolutionOp, MatmulOp, InnerProductOp)


def is_inaccurate(algorithm: str) -> bool:
    """Whether the library's code for an activation is not accurate to some units in the last place
    here: with AVX-512 its gelu_erf is off by 3e-4.
    """
    return algorithm == "gelu_erf" and api().has_avx512


def milliseconds(op: ActivationOp) -> float:
    """About what an activation takes on one thread."""
    return math.prod(shape_of(op.output)) / ACTIVATION_RATES[op.algorithm.data]


def split_activations(func: FuncOp, costs: Costs, times: dict[Operation, float]) -> None:
    """Takes activations at the end of a chain off the op before them, where that is faster.

    A 3x3 convolution may then be computed by Winograd's algorithm, too.

    ```mlir
    %1 = dnnl.convolution %x, %w {post_ops = [#dnnl.eltwise<swish, 1.0>]} : …
    ```
    becomes
    ```mlir
    %0 = dnnl.convolution %x, %w : …
    %1 = dnnl.activation %0 {algorithm = "swish"} : …
    ```

    Args:
        func: a region in its final layouts.
        times: the milliseconds of its ops, kept up to date.
    """
    for op in list(func.body.block.ops):
        if isinstance(op, PostOpsOp):
            activation = _last_activation(op)
            if activation is not None and (isinstance(op, _PRODUCTS) or is_inaccurate(activation)):
                _split(op, activation, costs, times)


def _last_activation(op: PostOpsOp) -> str | None:
    last = op.post_ops.data[-1] if op.post_ops else None
    if not isinstance(last, EltwiseAttr) or last.algorithm.data not in ACTIVATION_RATES:
        return None
    is_plain = last.algorithm.data != "swish" or last.alpha.value.data == 1.0
    return last.algorithm.data if is_plain else None


def _split(
    op: PostOpsOp,
    activation: str,
    costs: Costs,
    times: dict[Operation, float],
) -> None:
    properties = {**op.properties, "post_ops": ArrayAttr(op.post_ops.data[:-1])}
    bare = type(op).create(
        operands=op.operands, result_types=[op.result.type], properties=properties
    )
    if isinstance(bare, ConvolutionOp):
        bare.algorithm = StringAttr("direct")  # without the activation it is chosen again
    result = ActivationOp(bare.result, algorithm=activation, result_types=[op.result.type])
    cost = costs.best(bare, layout_of)
    if not _pays(cost.milliseconds + milliseconds(result), op, activation, costs):
        result.erase()
        bare.erase()
        return
    if isinstance(bare, ConvolutionOp):
        bare.algorithm = StringAttr(cost.algorithm)
    for new in (bare, result):
        new.location = op.location
    if times.pop(op, None) is not None and cost.is_measured:
        times[bare] = cost.milliseconds
    Rewriter.insert_op((bare, result), InsertPoint.before(op))
    op.result.replace_all_uses_with(result.output)
    Rewriter.erase_op(op)


def _pays(split: float, op: PostOpsOp, activation: str, costs: Costs) -> bool:
    """Whether the activation is split off, where that takes so long altogether."""
    if is_inaccurate(activation):
        return True
    if costs.choices.activation != MEASURED:
        return costs.choices.activation == "loop"
    return split <= _WORTH_A_PASS * costs.op(op, layout_of)
