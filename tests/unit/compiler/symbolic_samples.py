"""Samples of ops with one symbolic size, lowered by the host compiler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.irdl import VarOperandDef
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.relay import ConstantOp, SymbolOp
from byoc_mlir.dialects.relay.element_types import relay_type
from byoc_mlir.dialects.relay.shape import asking, is_symbolic, tensor_of
from byoc_mlir.dims import Shapes, Size, SymbolInfo, symbol
from byoc_mlir.errors import CompilationError, UndecidedSizeError
from byoc_mlir.lowering.host_pipeline import loop_passes, run_passes
from byoc_mlir.lowering.integer_products.lower_integer_products import LowerIntegerProducts
from byoc_mlir.testing.conformance.graph import OPS, CaseBuilder
from byoc_mlir.testing.samples.relay_ops.sample import Sample
from byoc_mlir.testing.samples.relay_ops.table import samples_of
from byoc_mlir.transforms.decompose_qnn import DecomposeQnn

_NO_OP = (UndecidedSizeError, VerifyException, TypeError)
"""Errors on creating an op whose operands cannot have symbolic sizes."""


def takes_sizes(name: str) -> bool | None:
    """True if the host lowers an op with a symbolic size; `None` if no sample can have one."""
    tried = False
    for sample in samples_of(name):
        for axis, number in enumerate(sample.data):
            info = SymbolInfo("n", hint=max(2, number))
            with asking(Shapes([info])):
                module = _module(name, sample, axis, info)
                if module is None:
                    continue
                tried = True
                if _is_lowered(module):
                    return True
    return False if tried else None


def _module(name: str, sample: Sample, axis: int, info: SymbolInfo) -> ModuleOp | None:
    """Returns the op of a sample with a symbolic size; `None` if it cannot have one."""
    data: tuple[Any, ...] = (*sample.data[:axis], symbol("n"), *sample.data[axis + 1 :])
    kind: Any = OPS[name]
    block, random = Block(), CaseBuilder()
    try:
        shapes: list[tuple[Size, ...]] = [data, *sample.rest(data)]
        operands = list(_operands(shapes, sample, block, random))
        is_variadic = any(
            type(each) is VarOperandDef for _, each in kind.get_irdl_definition().operands
        )
        op = kind(*([operands] if is_variadic else operands), **sample.attributes)
    except _NO_OP:
        return None
    block.add_op(op)
    block.add_op(func.ReturnOp(*op.results))
    types = (list(block.arg_types), list(op.result_types))
    return ModuleOp([SymbolOp.of(info), func.FuncOp("main", types, Region(block))])


def _operands(
    shapes: list[tuple[Size, ...]], sample: Sample, block: Block, random: CaseBuilder
) -> Iterator[SSAValue]:
    for index, shape in enumerate(shapes):
        dtype = sample.dtype_of(index)
        if not sample.is_constant(index) or is_symbolic(shape):
            type_ = tensor_of(relay_type(np.dtype(dtype)), shape)
            yield block.insert_arg(type_, len(block.args))
        else:
            array = random.array(tuple(map(int, shape)), dtype, sample.range_of(index))
            constant = ConstantOp.of(f"constant_{index}", array)
            block.add_op(constant)
            yield constant.output


def _is_lowered(module: ModuleOp) -> bool:
    try:
        passes = (LowerIntegerProducts(), DecomposeQnn(), *loop_passes(threads=0))
        run_passes(make_context(), module, passes)
    except (UndecidedSizeError, CompilationError):
        return False
    return True
