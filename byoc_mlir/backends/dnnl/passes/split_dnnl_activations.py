"""The pass `split-dnnl-activations`: activations that built-in kernels compute faster."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, bf16, f32
from xdsl.dialects.func import FuncOp

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.choices import MEASURED, Choices
from byoc_mlir.backends.dnnl.costs.costs import Costs
from byoc_mlir.backends.dnnl.library.accuracy import is_inaccurate
from byoc_mlir.backends.dnnl.passes.choose_dnnl_algorithms import decide
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass, replace_located
from byoc_mlir.dialects.relay.base import tensor_type
from byoc_mlir.kernels.activations import FORMULAS
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.limits import in_time
from byoc_mlir.onednn.engine import openmp_threads

_PRODUCTS = (dnnl.ConvolutionOp, dnnl.MatmulOp, dnnl.InnerProductOp)


@dataclass(frozen=True)
class SplitDnnlActivations(Choices, RegionPass):
    """Splits off the activation at the end of a chain if that is faster.

    Without the activation, a 3x3 convolution may use Winograd's algorithm.

    Options:
        winograd, convolution, layout, activation: as the backend's options of these names.

    ```mlir
    %1 = dnnl.convolution %x, %w {post_ops = [#dnnl.eltwise<swish, 1.0>]} : …
    ```
    becomes
    ```mlir
    %0 = dnnl.convolution %x, %w : …
    %1 = dnnl.activation %0 {algorithm = "swish"} : …
    ```
    """

    name = "split-dnnl-activations"

    def change(self, region: FuncOp) -> None:
        costs = Costs(self)
        with openmp_threads(1):
            for op in in_time(region.body.block.ops):
                activation = _last_activation(op) if isinstance(op, dnnl.PostOpsOp) else None
                if not isinstance(op, dnnl.PostOpsOp) or activation is None:
                    continue
                if isinstance(op, _PRODUCTS) or is_inaccurate(activation, op.output):
                    self._split(op, activation, costs)

    def _split(self, op: dnnl.PostOpsOp, activation: str, costs: Costs) -> None:
        properties = {**op.properties, "post_ops": ArrayAttr(op.post_ops.data[:-1])}
        bare = type(op).create(
            operands=op.operands, result_types=[op.output.type], properties=properties
        )
        result = dnnl.ActivationOp(bare.output, algorithm=activation, result_types=[op.output.type])
        cost = costs.best(bare, dnnl.layout_of)
        if not self._pays(cost.milliseconds + costs.decided(result), op, activation, costs):
            result.erase()
            bare.erase()
            return
        decide(bare, cost)
        replace_located(op, bare, result)

    def _pays(self, split: float, op: dnnl.PostOpsOp, activation: str, costs: Costs) -> bool:
        """True if the split form with a total time of `split` is faster than `op` with the
        activation.
        """
        if is_inaccurate(activation, op.output):
            return True
        if self.activation != MEASURED:
            return self.activation == "loop"
        return split <= ASSUMED.split_margin * costs.op(op, dnnl.layout_of)


def _last_activation(op: dnnl.PostOpsOp) -> str | None:
    if tensor_type(op.output).element_type not in (f32, bf16):
        return None
    last = op.post_ops.data[-1] if op.post_ops else None
    if not isinstance(last, dnnl.EltwiseAttr) or last.algorithm.data not in FORMULAS:
        return None
    is_plain = last.algorithm.data != "swish" or last.alpha.value.data == 1.0
    return last.algorithm.data if is_plain else None
