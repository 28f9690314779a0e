"""The pass `plan-dnnl-layouts`: one layout for every value of a region, chosen jointly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.choices import Choices
from byoc_mlir.backends.dnnl.costs.costs import IMPOSSIBLE, Costs
from byoc_mlir.backends.dnnl.library import layouts
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass
from byoc_mlir.backends.dnnl.primitives.layout_choices import (
    is_planned,
    kinds,
    laid_out_operands,
    layout_of_kind,
    layouts_in,
    plain_layout,
    read_as,
    sources,
)
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import shape_of, tensor_type
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.onednn.engine import openmp_threads

_AS_PLACED = (dnnl.MatmulOp, dnnl.PermuteOp, dnnl.ReorderOp)
"""Ops whose layouts are fixed before those of other ops are planned."""

_SWEEPS = 4

Choice = dict[SSAValue, str]
"""Layout of every value of the region."""


@dataclass(frozen=True)
class PlanDnnlLayouts(Choices, RegionPass):
    """Chooses the layout of every value.

    The pass minimises the measured time of the primitives in their candidate layouts and of the
    reorders between them. Inputs and outputs of a region are row-major; constants are packed at
    load time into the layout that their primitive requests.

    Options:
        winograd, convolution, layout, activation: as the backend's options of these names.

    ```mlir
    %1 = dnnl.convolution %x, %w … : (tensor<1x64x8x8xf32>, …) -> tensor<1x64x8x8xf32>
    func.return %1 : tensor<1x64x8x8xf32>
    ```
    becomes
    ```mlir
    %0 = dnnl.reorder %x : (tensor<1x64x8x8xf32>) -> tensor<1x64x8x8xf32, #dnnl.layout<"aBcd8b">>
    %1 = dnnl.convolution %0, %w … -> tensor<1x64x8x8xf32, #dnnl.layout<"aBcd8b">>
    %2 = dnnl.reorder %1 : (…) -> tensor<1x64x8x8xf32>
    func.return %2 : tensor<1x64x8x8xf32>
    ```
    """

    name = "plan-dnnl-layouts"

    def change(self, region: FuncOp) -> None:
        with openmp_threads(1):
            planner = _LayoutSearch(region, Costs(self), kinds(self))
            planner.write(planner.best())


@dataclass(frozen=True)
class _LayoutChange:
    """Op that reads its source in one layout and writes its result in another."""

    milliseconds: float
    read: tuple[str, ...]
    """Layouts of the operands whose layout can be chosen."""


class _LayoutSearch:
    """Search for the cheapest layouts; it caches costs, which the search needs repeatedly."""

    def __init__(self, func: FuncOp, costs: Costs, kinds: Sequence[str]):
        self._costs = costs
        block = func.body.block
        self._ops = [op for op in block.ops if not isinstance(op, ConstantOp)]
        self._operands = {op: laid_out_operands(op) for op in self._ops}
        self._planned = {op for op in self._ops if is_planned(op)}
        self._free = [op.results[0] for op in self._ops if op in self._planned]
        self._kinds = kinds if self._free else ()
        self._layouts = {
            value: [*dict.fromkeys(layout_of_kind(kind, value) for kind in self._kinds)]
            for value in self._free
        }
        self._touched = {value: self._ops_that_touch(value) for value in self._free}
        self._before = {
            one: dnnl.layout_of(one) for some in self._operands.values() for one in some
        }
        self._ways: dict[tuple[Operation, str, str], _LayoutChange] = {}
        self._reorders: dict[tuple[Attribute, str, str], float] = {}
        self._op_costs: dict[tuple[Operation, str, tuple[str, ...]], tuple[float, str]] = {}

    def _ops_that_touch(self, value: SSAValue) -> list[Operation]:
        """Returns the ops that write or read a value; their cost depends on its layout."""
        around = {value.owner, *(use.operation for use in value.uses)}
        return [op for op in self._ops if op in around]

    def best(self) -> Choice:
        """Returns the cheapest result of several local searches; each starts from the same layout
        for all values.
        """
        choices = [self._improved(kind) for kind in self._kinds]
        return min(choices, key=self._total, default={})

    def _improved(self, kind: str) -> Choice:
        choice: Choice = {value: layout_of_kind(kind, value) for value in self._free}
        for value in self._free:
            owner = value.owner
            assert isinstance(owner, Operation)
            if self._at(choice, owner)[0] >= IMPOSSIBLE:
                choice[value] = plain_layout(value)
        for _ in range(_SWEEPS):
            if not self._sweep(choice):
                break
        return choice

    def _sweep(self, choice: Choice) -> bool:
        """Tries every other layout for each value in order, and keeps improvements.

        Returns True if there was one.
        """
        changed = False
        for value in self._free:
            touched = self._touched[value]
            kept = choice[value]
            best = sum(self._at(choice, op)[0] for op in touched)
            for layout in self._layouts[value]:
                choice[value] = layout
                cost = sum(self._at(choice, op)[0] for op in touched)
                if cost < best * ASSUMED.layout_margin:
                    best, kept, changed = cost, layout, True
            choice[value] = kept
        return changed

    def _total(self, choice: Choice) -> float:
        return sum(self._at(choice, op)[0] for op in self._ops)

    def _at(self, choice: Choice, op: Operation) -> tuple[float, str]:
        """Returns the cost of an op including reorders of its operands.

        Also returns the layout in which the op then reads its source.
        """
        operands = self._operands[op]
        produced = tuple(choice.get(one) or self._before[one] for one in operands)
        wanted = choice[op.results[0]] if op in self._planned else ""
        key = (op, wanted, produced)
        if key not in self._op_costs:
            self._op_costs[key] = min(self._offers(op, produced, wanted))
        return self._op_costs[key]

    def _offers(
        self, op: Operation, produced: Sequence[str], wanted: str
    ) -> Iterator[tuple[float, str]]:
        """Yields the costs of an op with the layouts in which it may read its source."""
        operands = self._operands[op]
        if op not in self._planned:
            asked = [self._asked(op, operand) for operand in operands]
            yield self._reordered(operands, produced, asked), ""
            return
        for source in sources(op, wanted):
            way = self._way(op, source, wanted)
            yield way.milliseconds + self._reordered(operands, produced, way.read), source

    def _asked(self, op: Operation, operand: SSAValue) -> str:
        """Returns the layout in which an op without layout choice reads an operand."""
        if isinstance(op, _AS_PLACED):
            return self._before.get(operand) or dnnl.layout_of(operand)
        return plain_layout(operand)

    def _way(self, op: Operation, source: str, wanted: str) -> _LayoutChange:
        key = (op, source, wanted)
        if key not in self._ways:
            milliseconds = self._costs.op(op, layouts_in(op, source, wanted))
            read = tuple(read_as(op, one, source, wanted) for one in self._operands[op])
            self._ways[key] = _LayoutChange(milliseconds, read)
        return self._ways[key]

    def _reordered(
        self, values: Sequence[SSAValue], old: Sequence[str], new: Sequence[str]
    ) -> float:
        """Returns the cost of reordering values from old to new layouts."""
        return sum(map(self._reorder, values, old, new))

    def _reorder(self, value: SSAValue, old: str, new: str) -> float:
        key = (value.type, old, new)
        if key not in self._reorders:
            self._reorders[key] = self._costs.reorder(value, old, new)
        return self._reorders[key]

    def write(self, choice: Choice) -> None:
        """Sets the chosen layouts in the types, and adds reorders where they differ."""
        copies: dict[tuple[SSAValue, str], SSAValue] = {}
        reads = {op: self._at(choice, op)[1] for op in self._ops}
        for op in self._ops:
            free = is_planned(op)
            wanted = choice[op.results[0]] if free else ""
            laid_out = set(laid_out_operands(op))
            wishes = [
                (
                    index,
                    operand,
                    read_as(op, operand, reads[op], wanted) if free else self._asked(op, operand),
                )
                for index, operand in enumerate(op.operands)
                if operand in laid_out
            ]
            for index, operand, layout in wishes:
                op.operands[index] = self._in_layout(operand, layout, op, copies)
            if free:
                result = op.results[0]
                type_ = dnnl.with_layout(tensor_type(result), wanted)
                Rewriter.replace_value_with_new_type(result, type_)

    def _in_layout(
        self,
        value: SSAValue,
        layout: str,
        user: Operation,
        copies: dict[tuple[SSAValue, str], SSAValue],
    ) -> SSAValue:
        old = dnnl.layout_of(value)
        if old == layout:
            return value
        if (value, layout) not in copies:
            type_ = dnnl.with_layout(tensor_type(value), layout)
            moves = not layouts.same_bytes(shape_of(value), old, layout)
            op = (dnnl.ReorderOp if moves else dnnl.ViewOp)(value, result_types=[type_])
            op.location = user.location
            block = user.parent_block()
            assert block is not None
            block.insert_op_before(op, user)
            copies[value, layout] = op.results[0]
        return copies[value, layout]
