"""The pass `lower-integer-products`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dialects.relay.symbols import asking_of
from byoc_mlir.kernels.integer_gemm.integer_gemm import IntegerGemm
from byoc_mlir.kernels.integer_gemm.unit import IntegerUnit
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.integer_products.chain import chain_of, product_of
from byoc_mlir.lowering.integer_products.emit import ProductWriter, gemms_of
from byoc_mlir.lowering.relay_to_linalg.builder import erase_chain
from byoc_mlir.runtime.system.cpu import target_cpu


@dataclass(frozen=True)
class LowerIntegerProducts(ModulePass):
    """Rewrites quantised GEMMs and convolutions with constant weights to calls of integer
    kernels.

    A kernel fuses a bias and the conversion of the sums to int8 or `f32`. Grouped convolutions, and
    GEMMs of two computed operands, are not rewritten.

    Options:
        lanes: lanes of a vector of `i32`; 0 for the processor's number.
        vnni: use VNNI's int8 dot products of packed 4-byte groups; ignored for 0 lanes.
        words: format of packed groups without VNNI: `pairs` of `i16`, `widened` (int8, widened to
            such pairs), or `overlapping` (packed 4-byte groups). By default, the machine
            calibration determines the fastest format for the number of rows. If `lanes` is given,
            `overlapping` must be requested explicitly.

    ```mlir
    %0 = relay.qnn.dense %x, %w, %x_zero, %w_zero : … -> tensor<3x8xi32>
    %1 = relay.qnn.requantize %0, %scale, %c0, %y_scale, %y_zero : … -> tensor<3x8xui8>
    // becomes
    %1 = host.kernel "requantize" %x, %packed, %start, %ratio : … -> tensor<3x8xui8> {
    ^bb0(…):
      func.call @byoc_integer_gemm_3_bytes_2x16_bytes(%parameters, %0, %1, …, %begin, %end)
    }
    ```
    """

    name = "lower-integer-products"

    lanes: int = 0
    vnni: bool = False
    words: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        module, unit = ModuleBuilder(op), self._unit()
        with asking_of(op):
            for block in host_blocks(op):
                self._lower(block, unit, module)

    def _lower(self, block: Block, unit: IntegerUnit, module: ModuleBuilder) -> None:
        for op in in_time(block.ops):
            product = product_of(op)
            if product is None:
                continue
            chain = chain_of(product)
            gemm = self._chosen(gemms_of(product, chain, unit))
            result = ProductWriter(product, chain, gemm, module).write()
            result.name_hint = chain.result.name_hint
            chain.result.replace_all_uses_with(result)
            erase_chain(chain.ops)

    def _chosen(self, forms: Sequence[IntegerGemm]) -> IntegerGemm:
        wanted = [one for one in forms if self.words in (None, one.unit.words)] or forms
        if len(wanted) == 1:  # nothing has to be measured
            return wanted[0]
        return min(wanted, key=lambda one: one.milliseconds(hint(one.rows)))

    def _unit(self) -> IntegerUnit:
        if self.lanes:
            registers, saturates = 2 * max(self.lanes, 8), self.words == "overlapping"
            return IntegerUnit(self.lanes, registers, self.vnni, saturates=saturates)
        return IntegerUnit.of(target_cpu().features)
