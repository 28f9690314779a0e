"""Checks of values while a model runs: their numbers, and what they compute."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.builder import Builder
from xdsl.dialects import arith, func, llvm, memref
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerType,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.ir import SSAValue

from byoc_mlir.abi import CHECKS, FOUND_SLOT, SLOT_BYTES
from byoc_mlir.dialects.host import CheckOp
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.kernels.ops import offset


class RunChecks:
    """The checks of the host functions of a module, which get numbers from 1."""

    def __init__(self, functions: Iterable[func.FuncOp]):
        checks = [op for one in functions for op in one.walk() if isinstance(op, CheckOp)]
        self._numbers = {check: number for number, check in enumerate(checks, start=1)}

    def describe(self, module: ModuleOp) -> None:
        """Writes on the module what is checked, where anything is."""
        if self._numbers:
            module.attributes[CHECKS] = ArrayAttr(map(_description, self._numbers))

    def status(self, builder: Builder, check: CheckOp, context: SSAValue) -> SSAValue:
        """0, or the number of the check if its value is refused; that is left in the context."""
        found = builder.insert(memref.LoadOp.get(check.found, [])).res
        slot = builder.insert(offset(context, FOUND_SLOT * SLOT_BYTES, i64)).result
        builder.insert(llvm.StoreOp(found, slot))
        least, most = (
            _number(builder, limit.value.data, i64) for limit in (check.least, check.most)
        )
        is_enough = builder.insert(arith.CmpiOp(found, least, "sge"))
        is_little = builder.insert(arith.CmpiOp(found, most, "sle"))
        is_within = builder.insert(arith.AndIOp(is_enough, is_little))
        good, bad = (_number(builder, status, i64) for status in (0, self._numbers[check]))
        return builder.insert(arith.SelectOp(is_within, good, bad)).result


def _description(check: CheckOp) -> DictionaryAttr:
    return DictionaryAttr(
        {
            "node": StringAttr(", ".join(node_names(check))),
            "what": check.what,
            "least": check.least,
            "most": check.most,
        }
    )


def _number(builder: Builder, value: int, type_: IntegerType) -> SSAValue:
    return builder.insert(arith.ConstantOp.from_int_and_width(value, type_)).result
