"""Estimated latency of a region with oneDNN, on one thread."""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation

from byoc_mlir.abi import COMPILER
from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.choices import Choices
from byoc_mlir.backends.dnnl.costs.costs import Costs
from byoc_mlir.backends.dnnl.partition.trial import region_of
from byoc_mlir.backends.dnnl.passes.choose_dnnl_products import ChooseDnnlProducts
from byoc_mlir.backends.dnnl.passes.convert_relay_to_dnnl import ConvertRelayToDnnl
from byoc_mlir.backends.dnnl.passes.fold_dnnl_zero_points import FoldDnnlZeroPoints
from byoc_mlir.backends.dnnl.passes.split_dnnl_post_ops import SplitDnnlPostOps
from byoc_mlir.backends.dnnl.passes.unfold_dnnl_deconvolutions import UnfoldDnnlDeconvolutions
from byoc_mlir.backends.dnnl.primitives.descriptions import plain_bytes
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.kernels.costs import ConvolutionCalibration, calibration
from byoc_mlir.onednn.engine import openmp_threads

_BEFORE_LAYOUTS = (
    ConvertRelayToDnnl(),
    UnfoldDnnlDeconvolutions(),
    FoldDnnlZeroPoints(),
    SplitDnnlPostOps(),
    ChooseDnnlProducts(),
)
"""Passes to run on a single op."""


def planned_milliseconds(region: FuncOp, choices: Choices) -> float:
    """Estimates the milliseconds of a region after all passes."""
    costs = Costs(choices)
    with openmp_threads(1):
        ops = (op for op in region.body.block.ops if isinstance(op, dnnl.ExecutedOp))
        return sum(_milliseconds(op, costs) for op in ops)


def separate_milliseconds(region: FuncOp, choices: Choices) -> float:
    """Estimates the milliseconds of a region as the sum over its ops and composites.

    Layouts are not planned. Equal ops are estimated once.
    """
    known: dict[Hashable, float] = {}
    total = 0.0
    with openmp_threads(1):
        for op in region.body.block.ops:
            if isinstance(op, ConstantOp | ReturnOp):
                continue
            look = tuple(map(_look, op.walk()))
            if look not in known:
                known[look] = _alone(op, choices)
            total += known[look]
    return total


def _look(op: Operation) -> Hashable:
    """Returns a key of an op: all its properties except the contents of constants."""
    types = tuple(value.type for value in (*op.operands, *op.results))
    constants = tuple(isinstance(value.owner, ConstantOp) for value in op.operands)
    properties = () if isinstance(op, ConstantOp) else tuple(sorted(op.properties.items(), key=str))
    return op.name, types, constants, properties


def _alone(op: Operation, choices: Choices) -> float:
    region = region_of(op)
    region.attributes[COMPILER] = StringAttr("dnnl")
    for one in _BEFORE_LAYOUTS:
        one.change(region)
    return planned_milliseconds(region, choices)


def _milliseconds(op: dnnl.ExecutedOp, costs: Costs) -> float:
    if isinstance(op, dnnl.ReorderOp):
        (source,) = op.operands
        return costs.reorder(source, dnnl.layout_of(source), dnnl.layout_of(op.results[0]))
    return max(costs.decided(op), reading_weights(op))


def reading_weights(op: Operation) -> float:
    """Returns the minimum milliseconds to read an op's weights from memory.

    Measured latencies do not include it, since the weights were in caches.
    """
    weights = (value for value in op.operands if isinstance(value.owner, ConstantOp))
    return sum(map(plain_bytes, weights)) / calibration(ConvolutionCalibration).weight_bytes
