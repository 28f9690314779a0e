"""Assignment of memory to the tensors of a function: the analysis behind `bufferize`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import func, tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects import host
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import sizes_of
from byoc_mlir.lowering.borders import is_background
from byoc_mlir.lowering.relay_to_linalg.builder import static_ints


@dataclass(eq=False)
class Storage:
    """Piece of memory that holds several tensors, one after the other."""

    owned: bool
    """True if the function may write to the memory: it belongs neither to an argument nor to a
    constant."""
    last_use: int
    """Position of the last op that reads the current content."""
    output: int | None = None
    """Number of the function's result to which the memory belongs, if any."""


@dataclass(frozen=True)
class StoragePlan:
    """Result of `plan_storage` for a block.

    `storage` maps a tensor to its memory. `in_place` maps a result to the operand whose memory, and
    view of that memory, it reuses. A reshape in `copied` needs a dense copy of its operand.
    """

    storage: dict[SSAValue, Storage]
    in_place: dict[SSAValue, SSAValue]
    copied: frozenset[Operation]
    backgrounds: frozenset[Operation]
    """Fills of which only the border is written, since another tensor is inserted."""
    aliases: dict[SSAValue, BlockArgument]
    """Argument whose memory a returned tensor may share, by the tensor."""


class _StoragePlanner:
    def __init__(self, block: Block):
        self._ops = tuple(block.ops)
        self._last_use = _last_uses(self._ops)
        self._storage: dict[SSAValue, Storage] = {}
        for arg in block.args:
            self._storage[arg] = Storage(False, len(self._ops))
        self._in_place: dict[SSAValue, SSAValue] = {}
        self._copied: set[Operation] = set()
        self._backgrounds: set[Operation] = set()
        self._made: dict[SSAValue, int] = {}
        self._strided: set[SSAValue] = set()
        self._partial: set[SSAValue] = set()
        self._renewed: dict[SSAValue, SSAValue] = {}
        """Initial values of kernels' results that have no other use, by the result."""

    def plan(self) -> StoragePlan:
        for position, op in enumerate(self._ops):
            self._place(op, position)
        return StoragePlan(
            self._storage,
            self._in_place,
            frozenset(self._copied),
            frozenset(self._backgrounds),
            self._aliases(),
        )

    def _place(self, op: Operation, position: int) -> None:
        self._made.update(dict.fromkeys(op.results, position))
        match op:
            case (
                tensor.ExtractSliceOp(source=whole, result=part)
                | tensor.InsertSliceOp(dest=whole, source=part)
            ) if len(sizes_of(whole)) != len(sizes_of(part)):
                raise PassFailedException(
                    f"{op.name} at {op.location} changes the rank from {whole.type} to {part.type};"
                    " accepted are slices of the same rank, and tensor.reshape"
                )
            case ConstantOp():
                self._storage[op.output] = Storage(False, len(self._ops))
            case linalg.GenericOp() if is_background(op):
                self._backgrounds.add(op)
            case linalg.GenericOp():
                self._place_generic(op, position)
            case host.KernelOp() if op.initial is not None:
                self._place_kernel(op, position)
            case tensor.InsertSliceOp() if op.dest.owner in self._backgrounds:
                self._own(op.result)
            case tensor.InsertSliceOp():
                self._place_over(op.result, op.dest, position)
            case tensor.ExtractSliceOp():
                self._alias(op.result, op.source)
                self._partial.add(op.result)
                if not is_dense_slice(op):
                    self._strided.add(op.result)
            case tensor.ReshapeOp():
                self._place_reshape(op)
            case func.ReturnOp():
                self._place_results(op)
            case _:
                for result in op.results:
                    self._own(result)

    def _own(self, value: SSAValue) -> None:
        self._storage[value] = Storage(True, self._last_use.get(value, -1))

    def _alias(self, value: SSAValue, source: SSAValue) -> None:
        self._storage[value] = self._storage[source]
        for marked in (self._strided, self._partial):
            if source in marked:
                marked.add(value)

    def _take_over(self, value: SSAValue, source: SSAValue) -> None:
        self._alias(value, source)
        self._in_place[value] = source
        storage = self._storage[value]
        storage.last_use = max(storage.last_use, self._last_use.get(value, -1))

    def _dies(self, value: SSAValue, position: int) -> bool:
        storage = self._storage[value]
        return storage.owned and storage.last_use <= position

    def _place_over(self, result: SSAValue, destination: SSAValue, position: int) -> None:
        """Assigns memory to a result that is an updated copy of `destination`.

        The result takes over the memory of `destination` if this is the last use of it.
        """
        undefined = isinstance(destination.owner, tensor.EmptyOp)
        if not undefined and self._dies(destination, position):
            self._take_over(result, destination)
        else:
            self._own(result)

    def _place_kernel(self, op: host.KernelOp, position: int) -> None:
        """Assigns memory to a kernel's results; the first result is the changed initial value."""
        initial, (first, *others) = op.arguments[0], op.outputs
        storage = self._storage[initial]
        if any(self._storage[value] is storage for value in op.inputs):
            self._own(first)
        else:
            self._place_over(first, initial, position)
        if self._last_use[initial] == position and first not in self._in_place:
            self._renewed[first] = initial
        for result in others:
            self._own(result)

    def _place_reshape(self, op: tensor.ReshapeOp) -> None:
        if op.source in self._strided:
            self._copied.add(op)
            self._own(op.result)
        else:
            self._alias(op.result, op.source)

    def _place_generic(self, op: linalg.GenericOp, position: int) -> None:
        outputs = op.operands[len(op.operands) - len(op.results) :]
        for number, (result, destination) in enumerate(zip(op.results, outputs, strict=True)):
            if not isinstance(destination.owner, tensor.EmptyOp):
                self._place_over(result, destination, position)
                continue
            source = self._replaceable(op, number, position)
            if source is None:
                self._own(result)
            else:
                self._take_over(result, source)

    def _replaceable(self, op: linalg.GenericOp, number: int, position: int) -> SSAValue | None:
        """Returns the most recently computed input that this output can overwrite."""
        found: list[SSAValue] = []
        maps = [attribute.data for attribute in op.indexing_maps]
        count = len(op.operands) - len(op.results)
        output_map, type_ = maps[count + number], op.operands[count + number].type
        for value, map_ in zip(op.operands[:count], maps, strict=False):
            if value.type != type_ or map_ != output_map:
                continue
            if self._dies(value, position) and self._is_only_reader(op, value, output_map):
                found.append(value)
        return max(found, key=lambda value: self._made.get(value, -1), default=None)

    def _is_only_reader(self, op: linalg.GenericOp, value: SSAValue, output_map: object) -> bool:
        """True if all operands in the memory of `value` are `value` with the output's map."""
        storage = self._storage[value]
        maps = [attribute.data for attribute in op.indexing_maps]
        taken = [self._storage.get(result) for result in op.results]
        return storage not in taken and all(
            self._storage.get(other) is not storage or (other is value and map_ == output_map)
            for other, map_ in zip(op.operands, maps, strict=True)
        )

    def _aliases(self) -> dict[SSAValue, BlockArgument]:
        return {
            result: initial
            for result, initial in self._renewed.items()
            if isinstance(initial, BlockArgument) and self._storage[result].output is not None
        }

    def _place_results(self, op: func.ReturnOp) -> None:
        for number, value in enumerate(op.arguments):
            storage = self._storage[value]
            if storage.owned and storage.output is None and value not in self._partial:
                storage.output = number


def plan_storage(block: Block) -> StoragePlan:
    """Assigns memory to the tensors of a straight-line block."""
    return _StoragePlanner(block).plan()


def is_dense_slice(op: tensor.ExtractSliceOp) -> bool:
    """True if the slice is contiguous: all dimensions after the first partial one are whole."""
    shape, sizes = sizes_of(op.source), sizes_of(op.result)
    if any(stride != 1 for stride in static_ints(op.static_strides)):
        return False
    cut = [axis for axis, (size, full) in enumerate(zip(sizes, shape, strict=True)) if size != full]
    return not cut or all(size == 1 for size in sizes[: cut[-1]])


def _last_uses(ops: Sequence[Operation]) -> dict[SSAValue, int]:
    """Returns the position of each value's last use, including uses of its views."""
    last: dict[SSAValue, int] = {}
    for position in range(len(ops) - 1, -1, -1):
        op = ops[position]
        reach = position
        if isinstance(op, tensor.ExtractSliceOp | tensor.ReshapeOp):
            reach = max(position, last.get(op.results[0], -1))
        for operand in op.operands:
            last[operand] = max(last.get(operand, -1), reach)
    return last
