"""Lowerings to `llvm` of the ops for AMX, whose registers LLVM allocates and configures."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i8, i16, i64
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.dialects import host
from byoc_mlir.dialects.llvm_ext import X86AmxType
from byoc_mlir.lowering.to_llvm.emitter import Emitter, Lowerings
from byoc_mlir.lowering.to_llvm.memref import element_address, memref_type, offset_address
from byoc_mlir.runtime.system.cpu import MATRICES_REQUEST

_ROWS = 16
_ROW_BYTES = 64
"""Bytes of a row of a register: four steps of 16 units, 64 steps of a row of data, or 16 sums."""


def _request(_: host.RequestMatricesOp, emitter: Emitter) -> Sequence[SSAValue]:
    emitter.call("syscall", [emitter.constant(number) for number in MATRICES_REQUEST], i64)
    return ()


def _multiply(op: host.MultiplyMatricesOp, emitter: Emitter) -> Sequence[SSAValue]:
    steps, vectors = op.steps.value.data, op.vectors.value.data
    data_bytes, code_bytes = emitter.constant(steps), emitter.constant(_ROW_BYTES)
    sum_bytes = emitter.constant(vectors * _ROW_BYTES)
    data = element_address(op.data, memref_type(op.data), [op.data_index], emitter)
    codes = element_address(op.codes, memref_type(op.codes), [op.codes_index], emitter)
    sums = element_address(op.sums, memref_type(op.sums), [op.sums_index], emitter)
    totals = [_emit(emitter, "tilezero", _ROWS, _ROW_BYTES) for _ in range(vectors)]
    width = min(steps, _ROW_BYTES)
    for step in range(0, steps, width):
        start = offset_address(data, i8, step, emitter)
        rows = _emit(emitter, "tileloadd64", _ROWS, width, start, data_bytes)
        for number, total in enumerate(totals):
            start = offset_address(codes, i8, (number * steps + step) * _ROWS, emitter)
            columns = _emit(emitter, "tileloadd64", width // 4, _ROW_BYTES, start, code_bytes)
            totals[number] = _emit(
                *(emitter, "tdpbsud", _ROWS, _ROW_BYTES, width, total, rows, columns)
            )
    for number, total in enumerate(totals):
        start = offset_address(sums, i8, number * _ROW_BYTES, emitter)
        operands = _operands(emitter, _ROWS, _ROW_BYTES, start, sum_bytes, total)
        emitter.add(llvm.CallIntrinsicOp("llvm.x86.tilestored64.internal", operands, []))
    return ()


def _emit(emitter: Emitter, instruction: str, *operands: int | SSAValue) -> SSAValue:
    """Emits an instruction with a matrix as its result; numbers are sizes."""
    result: Sequence[Attribute] = [X86AmxType()]
    name = f"llvm.x86.{instruction}.internal"
    return emitter.emit(llvm.CallIntrinsicOp(name, _operands(emitter, *operands), result))


def _operands(emitter: Emitter, *operands: int | SSAValue) -> list[SSAValue]:
    return [emitter.constant(one, i16) if isinstance(one, int) else one for one in operands]


LOWERINGS: Lowerings = {
    host.MultiplyMatricesOp: _multiply,
    host.RequestMatricesOp: _request,
}
