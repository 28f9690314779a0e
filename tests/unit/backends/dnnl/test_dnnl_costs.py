"""Estimated latencies of primitives."""

from __future__ import annotations

from typing import TypeVar

import pytest
from measured import measured
from xdsl.dialects.builtin import ArrayAttr, TensorType, f32
from xdsl.ir import Block, Operation
from xdsl.parser import Parser

from byoc_mlir.backends.dnnl.costs.costs import Costs
from byoc_mlir.backends.dnnl.costs.estimates import estimated_milliseconds, work_of
from byoc_mlir.backends.dnnl.dialect import (
    DNNL,
    ConvolutionOp,
    EltwiseAttr,
    QuantizedConvolutionOp,
    SoftmaxOp,
    layout_of,
)
from byoc_mlir.backends.dnnl.dialect.recurrent import LstmOp
from byoc_mlir.backends.dnnl.primitives.descriptions import DescribedPrimitive
from byoc_mlir.backends.dnnl.primitives.of_ops import primitive
from byoc_mlir.calibration import Calibration, using
from byoc_mlir.dialects import make_context
from byoc_mlir.onednn.engine import openmp_threads

OpT = TypeVar("OpT", bound=Operation)

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


DEPTHWISE_OF_BYTES = """
func.func private @r(%x: tensor<1x32x112x112xui8, #dnnl.layout<"acdb">>, %b: tensor<32xf32>,
                     %s: tensor<32xf32>)
    -> tensor<1x32x112x112xui8, #dnnl.layout<"acdb">> {
  %w = relay.constant #relay.weight<"w", "00000000000000000000000000000001"> : tensor<32x1x3x3xi8>
  %z = relay.constant dense<0> : tensor<1xi32>
  %0 = dnnl.quantized_convolution %x, %w, %b, %s, %z, %z
      {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1], groups = 32, element = ui8}
      : (tensor<1x32x112x112xui8, #dnnl.layout<"acdb">>, tensor<32x1x3x3xi8>, tensor<32xf32>,
         tensor<32xf32>, tensor<1xi32>, tensor<1xi32>)
      -> tensor<1x32x112x112xui8, #dnnl.layout<"acdb">>
  func.return %0 : tensor<1x32x112x112xui8, #dnnl.layout<"acdb">>
}
"""


SOFTMAX = """
func.func private @r(%x: tensor<8x512xf32>) -> tensor<8x512xf32> {
  %0 = dnnl.softmax %x {axis = 1 : i64} : (tensor<8x512xf32>) -> tensor<8x512xf32>
  func.return %0 : tensor<8x512xf32>
}
"""


def _convolution() -> ConvolutionOp:
    return _only(ConvolutionOp, CONVOLUTION)


def _only(kind: type[OpT], text: str) -> OpT:
    """Returns the only op of a type in a text."""
    context = make_context()
    context.load_dialect(DNNL)
    (op,) = (op for op in Parser(context, text).parse_module().walk() if isinstance(op, kind))
    return op


def _direct(weight_bytes: float, threads: int) -> float:
    """Returns the milliseconds of the library's code at a rate of `weight_bytes` per
    millisecond."""
    known = {"products": 1e6, "transformed_bytes": 1e6, "weight_bytes": weight_bytes}
    op = _convolution()
    calibration = Calibration(measured(convolutions=known), is_fixed=True)
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


def _described(op: ConvolutionOp) -> DescribedPrimitive:
    described = primitive(op, layout_of)
    assert described is not None
    return described


def _estimated(implementation: str, threads: int = 1, lanes: int = 8) -> float:
    with using(Calibration(is_fixed=True)):
        return estimated_milliseconds(_described(_convolution()), implementation, threads, lanes)


@pytest.mark.parametrize(
    ("slow", "fast"),
    [
        ("ref:any", "x64:gemm:jit"),
        ("x64:gemm:jit", "jit:avx2"),
        ("jit:sse41", "jit:avx2"),
        ("brdgmm_dw:avx2", "jit_dw:avx2"),
        ("brgconv:avx2", "brgconv:avx2_amx"),
        ("jit:avx512_core", "jit_1x1:avx512_core"),
        ("brgconv:avx512_core", "brgconv_1x1:avx512_core"),
    ],
)
def test_implementations_differ_by_their_names(slow: str, fast: str) -> None:
    assert _estimated(slow) > _estimated(fast)


def test_shorter_vectors_are_slower_on_processors_with_longer_ones() -> None:
    assert _estimated("jit:avx2", lanes=16) > 1.3 * _estimated("jit:avx512_core", lanes=16)


def test_a_depthwise_convolution_of_bytes_is_slower_than_one_of_floats() -> None:
    """Checks that the built-in kernel takes it, whose speed is measured."""
    op = _only(QuantizedConvolutionOp, DEPTHWISE_OF_BYTES)
    with using(Calibration(is_fixed=True)), openmp_threads(1):
        assert Costs().best(op, layout_of).algorithm == "integer_depthwise"


def test_threads_share_the_work() -> None:
    assert _estimated("ref:any", threads=2) == pytest.approx(_estimated("ref:any") / 2)


def test_activations_as_post_ops_take_time() -> None:
    plain, activated = _convolution(), _convolution()
    activated.post_ops = ArrayAttr([EltwiseAttr.of("swish", 1.0)])
    with using(Calibration(is_fixed=True)):
        bare, fused = (
            estimated_milliseconds(_described(op), "jit:avx2", 1, 8) for op in (plain, activated)
        )
    assert fused > bare


def test_a_softmax_takes_the_time_of_its_exponentials() -> None:
    """Checks that the bytes which it moves do not count."""

    def estimated(swish: float) -> float:
        known = measured(activations={"swish": swish}, convolutions={"transformed_bytes": 1e12})
        described = primitive(_only(SoftmaxOp, SOFTMAX), layout_of)
        assert described is not None
        with using(Calibration(known, is_fixed=True)):
            return estimated_milliseconds(described, "jit:avx2", 1, 8)

    assert estimated(1e3) - estimated(2e3) == pytest.approx(8 * 512 / (0.6 * 2e3))


@pytest.mark.parametrize(("steps", "batch"), [(5, 2), (5, 16), (9, 2)])
def test_a_recurrent_layer_multiplies_at_each_step_for_each_entry(steps: int, batch: int) -> None:
    block = Block(
        arg_types=[
            TensorType(f32, shape)
            for shape in ([steps, batch, 3], [1, 1, 3, 4, 8], [1, 1, 8, 4, 8], [1, 1, 4, 8])
        ]
    )
    described = primitive(LstmOp(block.args), layout_of)
    assert described is not None
    assert work_of(described) == steps * batch * (3 + 8) * 4 * 8
