"""Builder of linalg on tensors, used by every family of `convert-relay-to-linalg`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.dialects.utils import split_dynamic_index_list
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import Rewriter
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects.dynamic_buffers import SizeOp
from byoc_mlir.dialects.relay import ConstantOp, RelayOp
from byoc_mlir.dialects.relay.base import (
    DYNAMIC,
    Tensor,
    check_tensor_type,
    relay_name,
    sizes_of,
    tensor_of,
    tensor_type,
    type_sizes,
)
from byoc_mlir.dialects.relay.shape import surely_same
from byoc_mlir.dims import Dim, Size
from byoc_mlir.kernels.ops import i32_array
from byoc_mlir.lowering.relay_to_linalg.computed_types import Kind, signless
from byoc_mlir.lowering.relay_to_linalg.scalars import Scalars

_V: TypeAlias = SSAValue
Body: TypeAlias = (
    Callable[[Scalars], _V]
    | Callable[[Scalars, _V], _V]
    | Callable[[Scalars, _V, _V], _V]
    | Callable[[Scalars, _V, _V, _V], _V]
    | Callable[[Scalars, _V, _V, _V, _V], _V]
    | Callable[[Scalars, _V, _V, _V, _V, _V], _V]
)
"""Function `body(scalars, *elements) -> element`; a reduction's last element is the accumulator."""

Lowering = Callable[[Any, "LinalgBuilder"], Sequence[SSAValue]]
"""Function `lowering(op, builder) -> the values that replace the op's results`."""

Lowerings = Mapping[type[RelayOp], Lowering]

Slice: TypeAlias = tensor.ExtractSliceOp | tensor.InsertSliceOp

PARALLEL = IteratorTypeAttr(IteratorType.PARALLEL)
REDUCTION = IteratorTypeAttr(IteratorType.REDUCTION)


@dataclass(frozen=True)
class Read:
    """Input of a `linalg.generic`: the tensor and its indexing map."""

    value: SSAValue
    map: Sequence[AffineExpr]


def dim(position: int) -> AffineExpr:
    """Returns `d<position>`."""
    return AffineDimExpr(position)


def dims(positions: Iterable[int]) -> tuple[AffineExpr, ...]:
    """Returns several dimensions, in order."""
    return tuple(AffineDimExpr(position) for position in positions)


def broadcast(value: SSAValue, shape: Sequence[Size]) -> Read:
    """Returns `value` with the indexing map that broadcasts it to `shape`, as numpy does."""
    sizes = sizes_of(value)
    first = len(shape) - len(sizes)
    exprs = tuple(
        AffineConstantExpr(0) if shape[axis] != 1 and is_one(size) else AffineDimExpr(axis)
        for axis, size in enumerate(sizes, start=first)
    )
    return Read(value, exprs)


def is_one(size: Size) -> bool:
    """True if a size is 1, known or by a guard, so that the only element is broadcast."""
    return surely_same(size, 1)


class LinalgBuilder:
    """Builder that inserts ops before `op`, at its location."""

    def __init__(self, op: Operation):
        block = op.parent
        assert block is not None
        self._block = block
        self._op = op
        self.name = relay_name(op).rpartition(".")[2]

    def emit(self, op: Operation) -> SSAValue:
        """Inserts an op and returns its result."""
        self.add(op)
        return op.results[0]

    def add(self, op: Operation) -> None:
        """Inserts an op."""
        op.location = self._op.location
        self._block.insert_op_before(op, self._op)

    def define(self, name: str, function: Callable[[], FuncOp]) -> None:
        """Adds the function that `function` returns to the module, unless the module has it."""
        module = self._op.get_toplevel_object()
        assert isinstance(module, ModuleOp)
        if SymbolTable.lookup_symbol(module, name) is None:
            module.body.block.add_op(function())

    def constant(self, array: np.ndarray[Any, np.dtype[Any]], name: str) -> SSAValue:
        """Inserts a constant tensor."""
        return self.emit(ConstantOp.of(name, array))

    def empty(self, type_: Tensor) -> SSAValue:
        """Inserts a tensor with undefined elements.

        Raises:
            LimitExceededError: the tensor exceeds the size limit, as a padded image may.
        """
        if DYNAMIC in type_sizes(type_):
            raise PassFailedException(
                f"{self._op.name} at {self._op.location}: {type_} has a dimension that is not known"
            )
        check_tensor_type(type_, f"what {self._op.name} needs")
        return self.emit(tensor.EmptyOp.create(result_types=[type_]))

    def generic(
        self,
        reads: Sequence[Read],
        type_: Tensor,
        body: Body,
        *,
        kind: Kind | None = None,
        name: str | None = None,
    ) -> SSAValue:
        """Inserts a `linalg.generic` that computes a new tensor of `type_`, element by element.

        `kind` is the kind of arithmetic of the body; by default, the first input's kind.
        """
        rank = len(type_.shape)
        first = reads[0].value if reads else None
        element = type_.element_type if first is None else tensor_type(first).element_type
        block = _block([*(tensor_type(read.value).element_type for read in reads)], type_)
        scalars = Scalars(block, kind or Kind.of(element))
        elements = [scalars.unwrap(arg) for arg in block.args[:-1]]
        _finish(scalars, body(scalars, *elements), type_)
        return self._generic(
            reads, self.empty(type_), dims(range(rank)), block, [PARALLEL] * rank, name
        )

    def reduce(
        self,
        reads: Sequence[Read],
        start: SSAValue,
        output: Sequence[AffineExpr],
        reduced: Sequence[int],
        rank: int,
        body: Body,
    ) -> SSAValue:
        """Inserts a reduction of all input elements into `start`, over the loop dimensions in
        `reduced`.

        The body gets the input elements and the accumulator.
        """
        type_ = tensor_type(start)
        block = _block([tensor_type(read.value).element_type for read in reads], type_)
        scalars = Scalars(block, Kind.of(type_.element_type), reassociate=True)
        elements = [scalars.unwrap(arg) for arg in block.args]
        _finish(scalars, body(scalars, *elements), type_)
        kinds = [REDUCTION if axis in reduced else PARALLEL for axis in range(rank)]
        return self._generic(reads, start, output, block, kinds)

    def _generic(
        self,
        reads: Sequence[Read],
        destination: SSAValue,
        output: Sequence[AffineExpr],
        block: Block,
        kinds: Sequence[Attribute],
        name: str | None = None,
    ) -> SSAValue:
        maps = [AffineMap(len(kinds), 0, tuple(read.map)) for read in reads]
        maps.append(AffineMap(len(kinds), 0, tuple(output)))
        return self.emit(
            linalg.GenericOp.create(  # the constructor takes five times as long
                operands=[*(read.value for read in reads), destination],
                result_types=[destination.type],
                properties={
                    "indexing_maps": ArrayAttr(AffineMapAttr(map_) for map_ in maps),
                    "iterator_types": ArrayAttr(kinds),
                    "doc": StringAttr(name or self.name),
                    "operandSegmentSizes": i32_array(len(reads), 1),
                },
                regions=[Region(block)],
            )
        )

    def filled(self, value: float, type_: Tensor) -> SSAValue:
        """Inserts a tensor with `value` everywhere."""
        element = signless(type_.element_type)
        return self.generic([], type_, lambda s: s.constant(value, element), name="fill")

    def elementwise(
        self, values: Sequence[SSAValue], type_: Tensor, body: Body, kind: Kind | None = None
    ) -> SSAValue:
        """Inserts an op that applies `body` to each element of the broadcast `values`."""
        shape = type_sizes(type_)
        reads = [broadcast(value, shape) for value in values]
        return self.generic(reads, type_, body, kind=kind)

    def cast(self, value: SSAValue, element_type: Attribute) -> SSAValue:
        """Inserts the conversion of a tensor to another element type."""
        type_ = tensor_type(value)
        source = type_.element_type
        if source == element_type:
            return value
        return self.elementwise(
            [value],
            tensor_of(element_type, type_sizes(type_)),
            lambda s, x: s.cast(x, source, element_type),
        )

    def reshape(self, value: SSAValue, shape: Sequence[Size]) -> SSAValue:
        """Inserts a row-major reshape; it never copies a dense tensor."""
        type_ = tensor_type(value)
        if type_sizes(type_) == tuple(shape):
            return value
        result = tensor_of(type_.element_type, shape)
        sizes_type = TensorType(i64, [len(shape)])
        sizes = DenseIntOrFPElementsAttr.from_list(sizes_type, list(result.get_shape()))
        return self.emit(
            tensor.ReshapeOp(value, self.emit(arith.ConstantOp(sizes, sizes_type)), result)
        )

    def extract(
        self,
        value: SSAValue,
        offsets: Sequence[Size],
        sizes: Sequence[Size],
        strides: Sequence[int] | None = None,
    ) -> SSAValue:
        """Inserts the extraction of the slice with these offsets, sizes and positive strides."""
        type_ = tensor_type(value)
        if type_sizes(type_) == tuple(sizes):
            return value
        result = tensor_of(type_.element_type, sizes)
        steps = strides or [1] * len(sizes)  # strides of one element are ignored
        strides = [1 if size in (0, 1) else step for size, step in zip(sizes, steps, strict=True)]
        starts, extents = self._indices(offsets), self._indices(sizes)
        return self.emit(tensor.ExtractSliceOp(value, starts, extents, strides, result))

    def insert(
        self,
        value: SSAValue,
        destination: SSAValue,
        offsets: Sequence[Size],
        strides: Sequence[int] | None = None,
    ) -> SSAValue:
        """Inserts the insertion of `value` into `destination` at the offsets."""
        sizes = sizes_of(value)
        if not strides and sizes_of(destination) == sizes:
            return value
        starts, extents = self._indices(offsets), self._indices(sizes)
        static_starts, dynamic_starts = split_dynamic_index_list(starts, DYNAMIC)
        static_sizes, dynamic_sizes = split_dynamic_index_list(extents, DYNAMIC)
        return self.emit(
            tensor.InsertSliceOp.get(
                value,
                destination,
                static_sizes,
                static_starts,
                strides,
                dynamic_starts,
                dynamic_sizes,
            )
        )

    def _indices(self, sizes: Sequence[Size]) -> list[SSAValue | int]:
        """Returns the sizes, with SSA values for symbolic sizes."""
        return [self.emit(SizeOp(size)) if isinstance(size, Dim) else size for size in sizes]


def _block(inputs: Sequence[Attribute], output: Tensor) -> Block:
    return Block(arg_types=[*inputs, output.element_type])


def _finish(scalars: Scalars, value: SSAValue, type_: Tensor) -> None:
    end = linalg.YieldOp.create(operands=[scalars.wrap(value, type_.element_type)])
    scalars.block.add_op(end)


def erase_chain(ops: Sequence[RelayOp]) -> None:
    """Erases ops, each the user of the previous one, and constants that only they used."""
    constants = {value.owner for op in ops for value in op.operands}
    for op in reversed(ops):
        Rewriter.erase_op(op)
    for constant in constants:  # what was packed is not kept twice
        if isinstance(constant, ConstantOp):
            constant.erase_if_unused()


def slice_offsets(op: Slice) -> tuple[Size, ...]:
    """Returns the offsets of a slice."""
    return _with_values(static_ints(op.static_offsets), op.offsets)


def slice_sizes(op: Slice) -> tuple[Size, ...]:
    """Returns the sizes of a slice."""
    return _with_values(static_ints(op.static_sizes), op.sizes)


def _with_values(numbers: Sequence[int], values: Sequence[SSAValue]) -> tuple[Size, ...]:
    """Returns the sizes in a static list, with symbolic sizes from `values`."""
    symbolic = iter(values)
    sizes: list[Size] = []
    for number in numbers:
        if number != DYNAMIC:
            sizes.append(number)
            continue
        owner = next(symbolic).owner
        assert isinstance(owner, SizeOp)
        sizes.append(owner.size)
    return tuple(sizes)


def static_ints(attribute: DenseArrayBase[Any]) -> tuple[int, ...]:
    """Returns the entries of a static offset, size or stride list."""
    return tuple(int(value) for value in cast("Sequence[int]", attribute.get_values()))
