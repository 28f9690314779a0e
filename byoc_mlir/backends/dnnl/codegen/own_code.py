"""Ops that code of our own computes instead of one of oneDNN's primitives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.dnnl.codegen.activation_kernels import add_activation
from byoc_mlir.backends.dnnl.codegen.implicit_gemm_loops import add_implicit_gemm
from byoc_mlir.backends.dnnl.codegen.llvm_builder import ModuleBuilder
from byoc_mlir.backends.dnnl.codegen.winograd_kernels import add_winograd
from byoc_mlir.backends.dnnl.descriptions import Operand, Types
from byoc_mlir.backends.dnnl.dialect import ActivationOp, ConvolutionOp, layout_of
from byoc_mlir.backends.dnnl.enums import Arg
from byoc_mlir.backends.dnnl.implicit_gemm import NAME as IMPLICIT_GEMM
from byoc_mlir.backends.dnnl.implicit_gemm import ImplicitGemm
from byoc_mlir.backends.dnnl.implicit_gemm import candidate as implicit_gemm
from byoc_mlir.backends.dnnl.winograd import ALGORITHMS, Winograd
from byoc_mlir.backends.dnnl.winograd import planned as planned_winograd
from byoc_mlir.dialects.relay import Weight

_ELEMENT_BYTES = 4


@dataclass(frozen=True)
class Generated:
    """A function `i32 (arguments, table)` and the words of its table."""

    add: Callable[[ModuleBuilder], str]
    """Adds it to a module, unless it is there. Returns its symbol."""
    words: tuple[int, ...]


@dataclass(frozen=True)
class OwnCode:
    """What computes an op: its arguments are the scratchpad, the weights, then the operands."""

    op: Operation
    implementation: str
    """What the report calls it."""
    code: Generated
    operands: tuple[Operand, ...]
    is_serial: bool
    scratchpad_bytes: int = 0
    weights: Weight | None = None


def own_code(op: Operation, *, threads: int, is_serial: bool) -> OwnCode | None:
    """What computes an op on so many threads; `None` where a primitive does."""
    if isinstance(op, ActivationOp):
        return _activation(op, is_serial)
    if not isinstance(op, ConvolutionOp):
        return None
    if op.algorithm.data in ALGORITHMS:
        winograd = planned_winograd(op, layout_of)
        assert winograd is not None
        return _winograd(winograd, threads, is_serial)
    if op.algorithm.data == IMPLICIT_GEMM:
        found = implicit_gemm(op, layout_of)
        assert found is not None
        return _implicit_gemm(found, is_serial)
    return None


def _activation(op: ActivationOp, is_serial: bool) -> OwnCode:
    operand = Types(layout_of).operand(Arg.DST, op.output)
    elements = operand.descriptor.byte_size // _ELEMENT_BYTES  # with padding, which stays 0
    code = Generated(partial(add_activation, algorithm=op.algorithm.data), (elements,))
    return OwnCode(op, f"loop:{op.algorithm.data}", code, (operand,), is_serial)


def _winograd(found: Winograd, threads: int, is_serial: bool) -> OwnCode:
    op, residual, blocks = found.op, found.epilogue.residual, found.blocks(threads)
    add = partial(
        add_winograd,
        algorithm=found.algorithm,
        bias=op.bias is not None,
        residual=residual is not None,
    )
    return OwnCode(
        op,
        f"winograd:{found.algorithm.name}",
        Generated(add, tuple(found.words(blocks))),
        _operands(op, residual),
        is_serial,
        blocks.byte_size,
        found.weights(),
    )


def _implicit_gemm(found: ImplicitGemm, is_serial: bool) -> OwnCode:
    op, residual = found.op, found.epilogue.residual
    add = partial(add_implicit_gemm, variant=found.variant, bias=op.bias is not None)
    return OwnCode(
        op,
        IMPLICIT_GEMM,
        Generated(add, tuple(found.words())),
        _operands(op, residual),
        is_serial,
        weights=found.weights(),
    )


def _operands(op: ConvolutionOp, residual: SSAValue | None) -> tuple[Operand, ...]:
    types = Types(layout_of)
    given = (
        (Arg.SRC, op.arguments[0]),
        (Arg.DST, op.output),
        (Arg.BIAS, op.bias),
        (Arg.SRC_1, residual),
    )
    return tuple(types.operand(argument, value) for argument, value in given if value is not None)
