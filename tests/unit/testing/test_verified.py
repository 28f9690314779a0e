"""Verification of kinds of ops: it finds the mistakes that verifying all ops finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import onnx.parser
import pytest
from helpers.verified import verify_module
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr, i32, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.frontend import import_model
from byoc_mlir.lowering.add_entry_points import AddEntryPoints
from byoc_mlir.lowering.host_pipeline import llvm_passes, loop_passes, run_passes

MODEL = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["": 18]>
    small (float[3, 5] x) => (float[3] y) <int64[1] axes = {1}> {
        e = Exp (x)
        y = ReduceSum <keepdims = 0> (e, axes)
    }
""")

replace_type = Rewriter.replace_value_with_new_type


def _in_loops() -> ModuleOp:
    module = import_model(MODEL).module
    run_passes(Context(), module, loop_passes(threads=0))
    return module


def _lowered() -> ModuleOp:
    module = _in_loops()
    entry_points = AddEntryPoints(0, outputs=1, flush_denormals=False)
    run_passes(Context(), module, (entry_points, *llvm_passes(threads=False)))
    return module


def _is_wrong(verify: Callable[[], None]) -> bool:
    try:
        verify()
    except (VerifyException, ValueError):
        return True
    return False


def _mistakes(op: Operation, others: Sequence[SSAValue]) -> Iterator[str]:
    """Yields the name of each mistake that it makes in an op, and reverts the mistake."""
    for name, held in list(op.properties.items()):
        for wrong in (UnitAttr(), IntegerAttr(7, i64)):
            op.properties[name] = wrong
            yield f"{op.name}: {name} is {wrong}"
        del op.properties[name]
        yield f"{op.name}: no {name}"
        op.properties[name] = held
    for index, operand in enumerate(op.operands):
        for other in others:
            op.operands[index] = other
            yield f"{op.name}: operand {index} is {other.type}"
        op.operands[index] = operand


def _wrong_results(op: Operation, types: Sequence[Attribute]) -> Iterator[str]:
    for index, result in enumerate(op.results):
        for wrong in types:
            replace_type(op.results[index], wrong)
            yield f"{op.name}: result {index} is {wrong}"
        replace_type(op.results[index], result.type)


@pytest.mark.parametrize("made", [_in_loops, _lowered])
def test_every_mistake_is_found(made: Callable[[], ModuleOp]) -> None:
    module = made()
    verify_module(module)
    values = list({str(one.type): one for op in module.walk() for one in op.results}.values())[:4]
    types = [value.type for value in values]
    # The last op of a kind stands behind those that are right.
    kinds = {op.name: op for op in module.walk() if not op.regions}.values()
    mistakes = (
        *((op, _mistakes(op, values)) for op in kinds),
        *((op, _wrong_results(op, types)) for op in kinds),
    )
    found = 0
    for op, made_of_it in mistakes:
        around = op.parent_op()
        assert around is not None
        for mistake in made_of_it:
            is_wrong = _is_wrong(around.verify)
            assert _is_wrong(partial(verify_module, around)) == is_wrong, mistake
            found += is_wrong
    assert found > 50
    verify_module(module)


def _function() -> tuple[ModuleOp, FuncOp]:
    function = FuncOp("f", ([], []))
    constants = [arith.ConstantOp(IntegerAttr(1, i32)) for _ in range(3)]
    function.body.block.add_ops([*constants, ReturnOp()])
    return ModuleOp([function]), function


def test_a_value_that_is_gone() -> None:
    module, function = _function()
    first, second, third, _ = function.body.block.ops
    sums = [arith.AddiOp(first.results[0], one.results[0]) for one in (second, third)]
    function.body.block.insert_ops_after(sums, third)
    verify_module(module)
    third.detach()
    third.erase(safe_erase=False)
    with pytest.raises(ValueError, match="Erased SSA value"):
        verify_module(module)


def test_an_op_that_ends_no_block() -> None:
    module, function = _function()
    last = function.body.block.last_op
    assert last is not None
    last.detach()
    with pytest.raises(VerifyException, match="is not a terminator"):
        verify_module(module)
