"""Emission of the call of an integer GEMM's kernel, with its arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, llvm
from xdsl.dialects.builtin import (
    TensorType,
    UnrealizedConversionCastOp,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import (
    Tensor,
    sizes_of,
    tensor_of,
    tensor_type,
    type_sizes,
)
from byoc_mlir.dialects.relay.constant import derived_array, known_array
from byoc_mlir.dialects.relay.element_types import ui8
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.kernels.builder import POINTER
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.kernels.integer_gemm.centring import SIGN
from byoc_mlir.kernels.integer_gemm.code import define_units
from byoc_mlir.kernels.integer_gemm.integer_gemm import IntegerGemm
from byoc_mlir.kernels.integer_gemm.unit import IntegerUnit
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.lowering.integer_products.chain import (
    Array,
    IntegerGemmChain,
    IntegerMatmul,
    is_signed,
)
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Read, dim, dims
from byoc_mlir.lowering.relay_to_linalg.computed_types import Kind
from byoc_mlir.lowering.relay_to_linalg.kernel import Kernel
from byoc_mlir.lowering.relay_to_linalg.scalars import Scalars, resize


def gemms_of(
    product: IntegerMatmul, chain: IntegerGemmChain, unit: IntegerUnit
) -> tuple[IntegerGemm, ...]:
    """Returns the kernel's GEMMs for a matmul or convolution with its chain.

    There is one for each form of packing that fits the weights.
    """
    images, lines, pixels = product.image
    (top, left), (bottom, right) = product.padding.begins, product.padding.ends
    return IntegerGemm(
        unit.for_outputs(product.outputs),
        images,
        top + lines + bottom,
        left + pixels + right,
        product.channels,
        product.outputs,
        product.window,
        product.strides,
        product.dilation,
        chain.epilogue,
    ).forms(product.weights)


@dataclass(frozen=True)
class ProductWriter:
    """Builder of a kernel's call for a matmul or convolution with its chain, inserted before the
    chain's last op.
    """

    product: IntegerMatmul
    chain: IntegerGemmChain
    gemm: IntegerGemm
    module: ModuleBuilder
    """Module that receives the kernels' code."""

    def write(self) -> SSAValue:
        """Returns the value that replaces the result of the chain's last op."""
        b, gemm = LinalgBuilder(self.chain.ops[-1]), self.gemm
        inputs = [
            self._left(b, gemm),
            b.emit(ConstantOp.of("packed_weight", self._packed(gemm))),
            self._start(b, gemm),
        ]
        inputs += [
            self._columns(b, gemm, numbers, np.dtype(np.float32))
            for numbers in (self.chain.scale, self.chain.offset)
            if numbers is not None
        ]
        return self._as_result(b, self._call(b, gemm, inputs))

    def _packed(self, gemm: IntegerGemm) -> Array:
        weights = self.product.weights
        how = ("integer_gemm", gemm.unit, gemm.shift, weights.shape, weights.strides)
        return derived_array(how, [self.product.constant], lambda: gemm.pack(weights).reshape(-1))

    def _left(self, b: LinalgBuilder, gemm: IntegerGemm) -> SSAValue:
        """Emits operand A: pixels in NHWC, with channels and image padded."""
        it = self.product
        element = ui8 if gemm.unit.takes_bytes else i16
        images, lines, pixels = it.image
        channels = gemm.left_channels
        is_filled = channels == it.channels and not it.padding.is_any
        is_converted = element != tensor_type(it.data).element_type
        if it.channel_axis == -1 and is_filled and not is_converted:
            return it.data
        shape = (images, lines, pixels, it.channels)
        numbers = self._pixels(b, tensor_of(element, shape))
        if is_filled:
            return numbers
        whole = tensor_of(element, [images, gemm.lines, gemm.pixels, channels])
        background = b.generic(
            [Read(it.zero_point, ())], whole, self._left_number, kind=Kind.SIGNED
        )
        return b.insert(numbers, background, [0, *it.padding.begins, 0])

    def _pixels(self, b: LinalgBuilder, type_: Tensor) -> SSAValue:
        it = self.product
        images, lines, pixels, channels = type_sizes(type_)
        if it.channel_axis == -1:
            data, map_ = b.reshape(it.data, type_sizes(type_)), dims(range(4))
        else:
            data, map_ = b.reshape(it.data, (images, channels, lines, pixels)), dims((0, 3, 1, 2))
        reads = [Read(data, map_), Read(it.zero_point, ())]
        if type_.element_type == i16:
            return b.generic(reads, type_, self._centred)
        return b.generic(reads[:1], type_, self._left_number)

    def _left_number(self, s: Scalars, x: SSAValue) -> SSAValue:
        """Converts an element of A to unsigned int8; padding of `i16` becomes 0."""
        if not self._takes_bytes:
            return s.constant(0, i16)
        return s.emit(arith.XOrIOp(x, s.constant(-SIGN, i8))) if self._is_signed else x

    def _centred(self, s: Scalars, x: SSAValue, zero_point: SSAValue) -> SSAValue:
        x, zero_point = (
            resize(s, number, i16, unsigned=not self._is_signed) for number in (x, zero_point)
        )
        return s.sub(x, zero_point)

    @property
    def _takes_bytes(self) -> bool:
        return self.gemm.unit.takes_bytes

    @property
    def _is_signed(self) -> bool:
        return is_signed(self.product.data)

    def _start(self, b: LinalgBuilder, gemm: IntegerGemm) -> SSAValue:
        """Emits the initial sums: the bias minus the contribution of the data's zero point."""
        it, shift = self.product, SIGN if self._is_signed else 0
        if not gemm.unit.takes_bytes:
            return self._columns(b, gemm, self._bias, np.dtype(np.int32))
        sums = _filled(it.weights.sum((0, 1, 2), np.int64), gemm.columns, np.dtype(np.int64))
        zero_point, bias = known_array(it.zero_point), self._bias
        if zero_point is not None and isinstance(bias, np.ndarray):
            start = _filled(bias, gemm.columns, sums.dtype) - (int(zero_point) + shift) * sums
            return b.constant(start.astype(np.int32), "start")
        type_ = TensorType(i32, [gemm.columns])
        element = tensor_type(it.zero_point).element_type

        def corrected(s: Scalars, zero: SSAValue, total: SSAValue, bias: SSAValue) -> SSAValue:
            zero = s.add(s.cast(zero, element, i32), s.constant(shift, i32))
            return s.sub(bias, s.mul(zero, total))

        columns = b.constant(sums.astype(np.int32), "column_sums")
        values = [it.zero_point, columns, self._columns(b, gemm, bias, np.dtype(np.int32))]
        return b.elementwise(values, type_, corrected, Kind.SIGNED)

    @property
    def _bias(self) -> SSAValue | Array:
        if self.chain.bias is None:
            return np.zeros((), np.int32)
        known = known_array(self.chain.bias)
        return self.chain.bias if known is None else known

    def _columns(
        self,
        b: LinalgBuilder,
        gemm: IntegerGemm,
        numbers: SSAValue | Array,
        dtype: np.dtype[np.int32] | np.dtype[np.float32],
    ) -> SSAValue:
        """Emits per-column values for whole panels, from one value for all outputs or a value for
        each.
        """
        if isinstance(numbers, SSAValue):
            known = known_array(numbers)
            if known is None:
                return _filled_later(b, numbers, gemm.columns)
            numbers = known
        return b.constant(_filled(numbers, gemm.columns, dtype), "columns")

    def _call(self, b: LinalgBuilder, gemm: IntegerGemm, inputs: Sequence[SSAValue]) -> SSAValue:
        """Emits the call; returns the rows of the result."""
        result = tensor_type(self.chain.result)
        output = tensor_of(result.element_type, [gemm.rows, self.product.outputs])
        k = Kernel(self.chain.ops[-1], inputs, [output])
        words = gemm.parameters()
        parameters = k.stack(len(words), i64)
        for place, word in enumerate(words):
            parameters[place] = word
        given = [buffer.memref for buffer in k.inputs]
        # an operand that a kernel does not read may be any buffer
        given += [given[-1]] * (_MOST_INPUTS - len(given))
        multiplying = gemm.planned_products / ASSUMED.integer_products
        cycles = max(multiplying, gemm.right_bytes / ASSUMED.streamed_bytes)
        with k.loops([gemm.units], cycles / hint(gemm.units)) as (unit,):
            begin = k.index(unit)
            buffers = [parameters.memref, *given, k.outputs[0].memref]
            arguments = [
                *(k.emit(UnrealizedConversionCastOp.get([one], [POINTER])) for one in buffers),
                *(number.to(i64).value for number in (begin, begin + 1)),
            ]
            self._call_variants(k, gemm, arguments)
        return k.finish(b)[0]

    def _call_variants(self, k: Kernel, gemm: IntegerGemm, arguments: Sequence[SSAValue]) -> None:
        """Emits a call of the code for the largest tile that fits the number of rows."""
        calls = [(each, define_units(self.module, each)) for each in gemm.variants]
        if isinstance(gemm.rows, int):
            ((_, symbol),) = calls
            k.add(llvm.CallOp(symbol, *arguments))
            return
        rows, most = k.index(gemm.rows), gemm.rows + 1
        for variant, symbol in calls:
            with k.when((rows >= variant.rows) & (rows < most)):
                k.add(llvm.CallOp(symbol, *arguments))
            most = variant.rows

    def _as_result(self, b: LinalgBuilder, rows: SSAValue) -> SSAValue:
        it, type_ = self.product, tensor_type(self.chain.result)
        if it.channel_axis == -1:
            return b.reshape(rows, type_sizes(type_))
        batch, channels, *sizes = type_sizes(type_)
        pixels = math.prod(sizes)
        images = b.reshape(rows, (batch, pixels, channels))
        planes = tensor_of(type_.element_type, [batch, channels, pixels])
        map_: Sequence[AffineExpr] = (dim(0), dim(2), dim(1))
        turned = b.generic([Read(images, map_)], planes, lambda s, x: x)
        return b.reshape(turned, type_sizes(type_))


_MOST_INPUTS = 6
"""Operands of a kernel: A, B, initial values, scales, offsets and residual."""


def _filled(numbers: Array, columns: int, dtype: np.dtype[np.generic]) -> Array:
    """Returns values for all columns: one value repeated, or one value per column, padded with
    zeros.
    """
    if numbers.size == 1:
        return np.full(columns, numbers.reshape(()), dtype)
    filled = np.zeros(columns, dtype)
    filled[: numbers.size] = numbers.reshape(-1)
    return filled


def _filled_later(b: LinalgBuilder, numbers: SSAValue, columns: int) -> SSAValue:
    """Emits the computation of `_filled` for values that are known only at run time."""
    type_ = TensorType(tensor_type(numbers).element_type, [columns])
    if math.prod(sizes_of(numbers)) == 1:
        return b.elementwise([b.reshape(numbers, ())], type_, lambda s, x: x)
    vector = b.reshape(numbers, (math.prod(sizes_of(numbers)),))
    return b.insert(vector, b.filled(0, type_), [0])
