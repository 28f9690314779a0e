"""Estimated times of convolutions."""

from __future__ import annotations

import pytest
from measured import measured
from xdsl.parser import Parser

from byoc_mlir.backends.dnnl.costs.costs import Costs
from byoc_mlir.backends.dnnl.dialect import DNNL, ConvolutionOp, layout_of
from byoc_mlir.calibration import Calibration, using
from byoc_mlir.dialects import make_context
from byoc_mlir.onednn.engine import openmp_threads

CONVOLUTION = """
func.func private @r(%x: tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>)
    -> tensor<1x16x8x8xf32, #dnnl.layout<"acdb">> {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<16x16x3x3xf32>
  %0 = dnnl.convolution %x, %w {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1]}
      : (tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>, tensor<16x16x3x3xf32>)
      -> tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>
  func.return %0 : tensor<1x16x8x8xf32, #dnnl.layout<"acdb">>
}
"""
WEIGHT_BYTES = 4 * 16 * 16 * 3 * 3


def _direct(weight_bytes: float, threads: int) -> float:
    """Returns the milliseconds of the library's code at a rate of `weight_bytes` per
    millisecond."""
    known = {"products": 1e6, "transformed_bytes": 1e6, "weight_bytes": weight_bytes}
    context = make_context()
    context.load_dialect(DNNL)
    module = Parser(context, CONVOLUTION).parse_module()
    (op,) = (op for op in module.walk() if isinstance(op, ConvolutionOp))
    calibration = Calibration(measured(convolutions=known), may_measure=False)
    with using(calibration), openmp_threads(threads):
        (direct,) = (one for one in Costs().offers(op, layout_of) if one.algorithm == "direct")
    return direct.milliseconds


@pytest.mark.parametrize("threads", [1, 2])
def test_the_librarys_convolutions_read_their_weights_from_memory(threads: int) -> None:
    """Checks that weights are read from memory in the estimate, though measurements find them in
    caches.
    """
    slow, fast = (_direct(weight_bytes, threads) for weight_bytes in (1e3, 1e9))
    assert slow - fast == pytest.approx(WEIGHT_BYTES / 1e3 / threads, rel=1e-3)
