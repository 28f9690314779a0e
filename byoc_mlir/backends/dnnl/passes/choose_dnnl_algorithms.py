"""The pass `choose-dnnl-algorithms`: the algorithms of convolutions and of image conversions."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import FloatAttr, StringAttr, f64
from xdsl.dialects.func import FuncOp

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.choices import Choices
from byoc_mlir.backends.dnnl.costs.costs import IMPOSSIBLE, Cost, Costs
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass
from byoc_mlir.backends.dnnl.primitives.layout_choices import is_planned
from byoc_mlir.onednn.engine import openmp_threads


@dataclass(frozen=True)
class ChooseDnnlAlgorithms(Choices, RegionPass):
    """Chooses the algorithm of every convolution and conversion, in the planned layouts.

    It also records the latencies of ops.

    Options:
        winograd, convolution, layout, activation: as the backend's options of these names.

    ```mlir
    %0 = dnnl.convolution %x, %w {strides = [1, 1], …} : …
    ```
    becomes
    ```mlir
    %0 = dnnl.convolution %x, %w {strides = [1, 1], …, algorithm = "f4x3"} : …
    ```
    """

    name = "choose-dnnl-algorithms"

    def change(self, region: FuncOp) -> None:
        costs = Costs(self)
        with openmp_threads(1):
            for op in region.body.block.ops:
                if isinstance(op, dnnl.ExecutedOp) and is_planned(op):
                    decide(op, costs.best(op, dnnl.layout_of))


def decide(op: dnnl.ExecutedOp, cost: Cost) -> None:
    """Records the algorithm of an op, and its latency if there is code for it."""
    if isinstance(op, dnnl.ConvertOp | dnnl.ConvolutionOp | dnnl.QuantizedConvolutionOp):
        op.algorithm = StringAttr(cost.algorithm)
    is_possible = cost.milliseconds < IMPOSSIBLE
    op.milliseconds = FloatAttr(round(cost.milliseconds, 4), f64) if is_possible else None
