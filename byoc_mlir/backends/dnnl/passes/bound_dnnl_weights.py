"""The pass `bound-dnnl-weights`: limits the memory of packed weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.func import FuncOp

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.choices import MEASURED, Choices
from byoc_mlir.backends.dnnl.costs.costs import Cost, Costs
from byoc_mlir.backends.dnnl.passes.choose_dnnl_algorithms import decide
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass
from byoc_mlir.backends.dnnl.primitives.descriptions import plain_bytes
from byoc_mlir.dialects.byoc import weight_growth
from byoc_mlir.kernels.weight_bound import Way, fastest_within
from byoc_mlir.onednn.engine import openmp_threads

_Convolution: TypeAlias = dnnl.ConvolutionOp | dnnl.QuantizedConvolutionOp


@dataclass(frozen=True)
class BoundDnnlWeights(Choices, RegionPass):
    """Replaces algorithms if the packed weights of a region's convolutions exceed
    `byoc.weight_growth`.

    It chooses algorithms with smaller weights, those with the least loss of time per byte first.

    Options:
        winograd, convolution, layout, activation: as the backend's options of these names.

    ```mlir
    %0 = dnnl.convolution %x, %w {…, algorithm = "f6x3"} : …
    ```
    becomes
    ```mlir
    %0 = dnnl.convolution %x, %w {…, algorithm = "f4x3", too_large = "f6x3"} : …
    ```
    """

    name = "bound-dnnl-weights"

    def change(self, region: FuncOp) -> None:
        growth = weight_growth(region)
        if math.isinf(growth) or self.convolution != MEASURED:
            return
        convolutions = [op for op in region.body.block.ops if isinstance(op, _Convolution)]
        if all(op.algorithm.data == "direct" for op in convolutions):
            return  # there is none with smaller weights
        offers = self._offers(convolutions)
        most = growth * sum(plain_bytes(op.weights) for op in offers)
        if sum(some[op.algorithm.data].weight_bytes for op, some in offers.items()) <= most:
            return
        ways = fastest_within([list(map(_way, some.values())) for some in offers.values()], most)
        for (op, some), way in zip(offers.items(), ways, strict=True):
            if way.weight_bytes < some[op.algorithm.data].weight_bytes:
                op.too_large = op.algorithm
                decide(op, some[way.algorithm])

    def _offers(
        self, convolutions: Sequence[_Convolution]
    ) -> Mapping[_Convolution, Mapping[str, Cost]]:
        """Returns the costs of each convolution by algorithm.

        Convolutions whose current algorithm has no cost are omitted.
        """
        costs = Costs(self)
        found: dict[_Convolution, Mapping[str, Cost]] = {}
        with openmp_threads(1):
            for op in convolutions:
                offers = {one.algorithm: one for one in costs.offers(op, dnnl.layout_of)}
                if op.algorithm.data in offers:
                    found[op] = offers
        return found


def _way(cost: Cost) -> Way:
    return Way(cost.algorithm, cost.milliseconds, cost.weight_bytes)
