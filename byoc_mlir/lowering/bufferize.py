"""The pass `bufferize`."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import NoReturn

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i32,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.abi import ALIASES, COMPILER, HOST_SPACE, INPUTS, KERNEL, WEIGHT, weight_symbol
from byoc_mlir.dialects import host
from byoc_mlir.dialects.device_ops import (
    CopyOp,
    TransferOp,
    argument_spaces,
    in_space,
    region_spaces,
    result_spaces,
)
from byoc_mlir.dialects.dynamic_buffers import (
    AllocOp,
    SizeOp,
    dense_buffer,
    row_major,
)
from byoc_mlir.dialects.relay import ConstantOp, Weight, WeightAttr
from byoc_mlir.dialects.relay.base import Ints, Tensor, sizes_of, tensor_of, tensor_type, type_sizes
from byoc_mlir.dialects.relay.control import ControlOp
from byoc_mlir.dialects.relay.shape import is_symbolic, known_shape
from byoc_mlir.dialects.relay.symbols import asking_of
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.borders import border
from byoc_mlir.lowering.buffer_types import buffer_in, buffer_signature
from byoc_mlir.lowering.buffer_view import BufferView, element_of, reinterpreted
from byoc_mlir.lowering.buffers import StoragePlan, plan_storage
from byoc_mlir.lowering.control_flow import lower_control
from byoc_mlir.lowering.relay_to_linalg.builder import PARALLEL
from byoc_mlir.lowering.to_llvm.types import byte_width

_ALLOC_PROPERTIES = {
    "alignment": IntegerAttr(64, i64),
    "operandSegmentSizes": DenseArrayBase.from_list(i32, [0, 0]),
}


class Bufferize(ModulePass):
    """Turns tensors into memrefs, and results of functions into trailing arguments.

    An op writes in place if its operand has no later use and the indexing maps allow it. Slices and
    reshapes become views. A returned tensor is computed in the memory of the result, or copied
    there if it must be in other memory. If a large tensor is filled and another one is inserted
    into it, only the border is filled.  Constants become globals without content; the handles of
    their content stay on them as `byoc.weight`.

    ```mlir
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %e = tensor.empty() : tensor<4xf32>
      %0 = linalg.generic … ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) …
      func.return %0 : tensor<4xf32>
    }
    // becomes
    func.func @main(%x: memref<4xf32>, %out: memref<4xf32>) {
      linalg.generic … ins(%x : memref<4xf32>) outs(%out : memref<4xf32>) …
      func.return
    }
    ```
    """

    name = "bufferize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        globals_: dict[str, memref.GlobalOp] = {}
        regions = region_spaces(op)
        for function in op.ops:
            if not isinstance(function, func.FuncOp) or KERNEL in function.attributes:
                continue
            if function.body.blocks and COMPILER not in function.attributes:
                with asking_of(op):
                    _Bufferizer(function, globals_, regions).run()
            if regions and COMPILER in function.attributes:
                count = len(function.function_type.inputs)
                function.attributes[INPUTS] = IntegerAttr(count, i64)
            function.properties["function_type"] = buffer_signature(function)
            for names in ("arg_attrs", "res_attrs"):  # of tensors; passes add arguments later
                function.properties.pop(names, None)
        first = op.body.block.first_op
        if first is not None:
            op.body.block.insert_ops_before(list(globals_.values()), first)


class _Bufferizer:
    def __init__(
        self,
        function: func.FuncOp,
        globals_: dict[str, memref.GlobalOp],
        regions: Mapping[str, str],
    ):
        self._function = function
        self._globals = globals_
        self._regions = regions
        self._old = function.body.block
        types = map(buffer_in, self._old.arg_types, argument_spaces(function))
        self._new = Block(arg_types=list(types))
        self._storage_plan: StoragePlan = plan_storage(self._old)
        self._views: dict[SSAValue, BufferView] = {}
        self._values: dict[BufferView, SSAValue] = {}
        self._outputs: list[SSAValue] = []
        self._constants: dict[str, SSAValue] = {}
        self._location = function.location

    def run(self) -> None:
        """Replaces the function's body by ops on buffers."""
        for old, new in zip(self._old.args, self._new.args, strict=True):
            new.name_hint = old.name_hint
            self._views[old] = BufferView.whole(new)
        outputs = self._function.function_type.outputs
        for type_ in map(buffer_in, outputs, result_spaces(self._function)):
            self._outputs.append(self._new.insert_arg(type_, len(self._new.args)))
            self._outputs[-1].name_hint = "out"
        for op in in_time(self._old.ops):
            self._location = op.location
            self._convert(op)
        if self._storage_plan.aliases:
            self._function.attributes[ALIASES] = self._described_aliases()
        old_region = self._function.body
        old_region.detach_block(self._old)
        old_region.add_block(self._new)
        self._old.erase(safe_erase=False)

    def _described_aliases(self) -> ArrayAttr[Ints]:
        return ArrayAttr(
            DenseArrayBase.from_list(i64, [output, argument.index])
            for result, argument in self._storage_plan.aliases.items()
            if (output := self._storage_plan.storage[result].output) is not None
        )

    def _convert(self, op: Operation) -> None:
        match op:
            case ConstantOp():
                self._views[op.output] = BufferView.whole(self._constant(op))
            case tensor.EmptyOp() | arith.ConstantOp() | SizeOp():
                pass  # made where they are used; types name sizes
            case linalg.GenericOp():
                if op not in self._storage_plan.backgrounds:
                    self._convert_generic(op)
            case tensor.ExtractSliceOp():
                self._views[op.result] = self._view(op.source).slice(op)
            case tensor.InsertSliceOp():
                self._convert_insert(op)
            case tensor.ReshapeOp():
                self._convert_reshape(op)
            case func.CallOp():
                self._convert_call(op)
            case CopyOp():
                self._convert_copy(op)
            case host.KernelOp():
                self._convert_kernel(op)
            case ControlOp():
                self._convert_control(op)
            case host.CheckOp():
                found = self._dense(self._view(op.found))
                self._add(host.CheckOp(found, op.what, op.least, op.most))
            case func.ReturnOp():
                self._convert_return(op)
            case _:
                self._refuse(op)

    def _refuse(self, op: Operation | Block) -> NoReturn:
        name = op.name if isinstance(op, Operation) else "a block argument"
        raise PassFailedException(
            f"{name} at {self._location} cannot be bufferized; convert-tensors-to-relay and"
            " convert-relay-to-linalg make linalg.generic of what they know"
        )

    def _add(self, op: Operation) -> Operation:
        op.location = self._location
        self._new.add_op(op)
        return op

    def _allocate(self, type_: Tensor, space: str = HOST_SPACE) -> SSAValue:
        sizes = type_sizes(type_)
        buffer = in_space(dense_buffer(type_.element_type, sizes), space)
        if is_symbolic(sizes):
            return self._add(AllocOp(buffer)).results[0]
        alloc = memref.AllocOp.create(result_types=[buffer], properties=_ALLOC_PROPERTIES)
        return self._add(alloc).results[0]

    def _constant(self, op: ConstantOp) -> SSAValue:
        weight = op.weight
        symbol = weight_symbol(weight.digest)
        if symbol not in self._constants:
            type_ = dense_buffer(op.type.element_type, known_shape(op.type))
            self._globals.setdefault(symbol, _external(symbol, type_, weight))
            get = self._add(memref.GetGlobalOp(symbol, type_))
            get.results[0].name_hint = op.output.name_hint
            self._constants[symbol] = get.results[0]
        return self._constants[symbol]

    def _view(self, value: SSAValue) -> BufferView:
        if value not in self._views:
            if not isinstance(value.owner, tensor.EmptyOp):
                self._refuse(value.owner)
            self._views[value] = BufferView.whole(self._allocate(tensor_type(value)))
        return self._views[value]

    def _memref_of(self, view: BufferView) -> SSAValue:
        """Returns the memref of a view; a view of a view is taken from the buffer itself."""
        if view.is_whole:
            return view.root
        if view not in self._values:
            self._values[view] = self._add(reinterpreted(view)).results[0]
        return self._values[view]

    def _destination(self, result: SSAValue, space: str = HOST_SPACE) -> BufferView:
        """Returns new memory for a result, or the argument that returns it."""
        type_ = tensor_type(result)
        storage = self._storage_plan.storage[result]
        if storage.output is None:
            return BufferView.whole(self._allocate(type_, space))
        return BufferView.whole(self._outputs[storage.output]).reshaped(type_sizes(type_))

    def _place(self, result: SSAValue, space: str = HOST_SPACE) -> BufferView:
        source = self._storage_plan.in_place.get(result)
        view = self._destination(result, space) if source is None else self._view(source)
        self._views[result] = view
        return view

    def _convert_generic(self, op: linalg.GenericOp) -> None:
        count = len(op.operands) - len(op.results)
        inputs = [self._memref_of(self._view(value)) for value in op.operands[:count]]
        outputs: list[SSAValue] = []
        for result, initial in zip(op.results, op.operands[count:], strict=True):
            view = self._place(result)
            self._fill(result, initial)
            outputs.append(self._memref_of(view))
        body = op.detach_region(op.body)
        self._add(
            linalg.GenericOp.create(
                operands=[*inputs, *outputs], properties=op.properties, regions=[body]
            )
        )

    def _fill(self, result: SSAValue, initial: SSAValue) -> None:
        """Copies the initial value of a result into its memory, unless it is undefined or there."""
        is_undefined = isinstance(initial.owner, tensor.EmptyOp)
        if is_undefined or result in self._storage_plan.in_place:
            return
        source, target = self._view(initial), self._view(result)
        if result in self._storage_plan.aliases:
            self._add(host.CopyApartOp(source.root, target.root, self._elements(source)))
        else:
            self._copy(source, target)

    def _elements(self, view: BufferView) -> SSAValue | None:
        """Returns the number of elements of a view with symbolic dimensions, else None."""
        count = prod(view.shape)
        if isinstance(count, int):
            return None
        size = SizeOp(count)
        self._add(size)
        return size.value

    def _copy(self, source: BufferView, target: BufferView) -> None:
        element = element_of(source.root)
        block = Block(arg_types=[element, element])
        block.add_op(linalg.YieldOp(block.args[0]))
        rank = len(source.shape)
        identity = AffineMapAttr(AffineMap.identity(rank))
        self._add(
            linalg.GenericOp(
                [self._memref_of(source)],
                [self._memref_of(target)],
                Region(block),
                [identity, identity],
                [PARALLEL] * rank,
                [],
                StringAttr("copy"),
            )
        )

    def _convert_insert(self, op: tensor.InsertSliceOp) -> None:
        target = self._place(op.result)
        if op.dest.owner in self._storage_plan.backgrounds:
            for offsets, sizes in border(op):
                self._write(op.dest, target.part(offsets, sizes))
        else:
            self._fill(op.result, op.dest)
        self._copy(self._view(op.source), target.slice(op))

    def _write(self, background: SSAValue, view: BufferView) -> None:
        """Fills a view with the value with which the op of `background` fills a whole tensor."""
        fill = background.owner
        assert isinstance(fill, linalg.GenericOp)
        rank = len(view.shape)
        self._add(
            linalg.GenericOp.create(
                operands=[self._memref_of(view)],
                properties=fill.properties
                | {"indexing_maps": ArrayAttr([AffineMapAttr(AffineMap.identity(rank))])},
                regions=[fill.body.clone()],
            )
        )

    def _convert_reshape(self, op: tensor.ReshapeOp) -> None:
        source = self._view(op.source)
        if op in self._storage_plan.copied:
            dense = BufferView.whole(self._allocate(tensor_type(op.source)))
            self._copy(source, dense)
            source = dense
        self._views[op.result] = source.reshaped(sizes_of(op.result))

    def _convert_call(self, op: func.CallOp) -> None:
        space = self._regions.get(op.callee.root_reference.data, HOST_SPACE)
        arguments = [self._dense(self._view(value)) for value in op.arguments]
        results = [self._memref_of(self._place(result, space)) for result in op.results]
        self._add(func.CallOp(op.callee, [*arguments, *results], []))

    def _convert_copy(self, op: CopyOp) -> None:
        source = self._dense(self._view(op.value))
        result = self._memref_of(self._place(op.result, op.target.data))
        self._add(TransferOp(source, result))

    def _convert_kernel(self, op: host.KernelOp) -> None:
        arguments = [self._dense(self._view(value)) for value in op.inputs]
        results = [self._memref_of(self._place(result)) for result in op.outputs]
        if op.initial is not None:
            self._fill(op.outputs[0], op.initial)
        body = op.detach_region(op.body)
        made = host.KernelOp(op.kernel_name.data, [*arguments, *results], [], body)
        made.prefer_no_gather = op.prefer_no_gather
        self._add(made)

    def _convert_control(self, op: ControlOp) -> None:
        arguments = [self._dense(self._view(value)) for value in op.operands]
        results = [self._memref_of(self._place(result)) for result in op.results]
        for made in lower_control(op, arguments, results, self._allocate):
            self._add(made)

    def _dense(self, view: BufferView) -> SSAValue:
        """Returns the memref of a view that starts a buffer without gaps, or of a dense copy."""
        if view.offset == 0 and view.strides == row_major(view.shape):
            return self._memref_of(view)
        dense = BufferView.whole(self._allocate(tensor_of(element_of(view.root), view.shape)))
        self._copy(view, dense)
        return dense.root

    def _convert_return(self, op: func.ReturnOp) -> None:
        for value, output in zip(op.arguments, self._outputs, strict=True):
            view = self._view(value)
            if view.root is not output:
                self._copy(view, BufferView.whole(output))
        self._add(func.ReturnOp())


def _external(symbol: str, type_: MemRefType, weight: Weight) -> memref.GlobalOp:
    global_ = memref.GlobalOp.get(
        StringAttr(symbol),
        type_,
        UnitAttr(),
        StringAttr("public"),
        UnitAttr(),
        IntegerAttr(byte_width(type_.element_type), i64),  # the array's owner keeps the memory
    )
    global_.attributes[WEIGHT] = WeightAttr(weight)
    return global_
