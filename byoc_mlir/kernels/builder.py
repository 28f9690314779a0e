"""Writing functions of the `llvm` dialect: arithmetic, memory, calls, loops, early returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerType,
    f32,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from byoc_mlir.kernels import ops
from byoc_mlir.kernels.ops import POINTER, Index
from byoc_mlir.kernels.parallel import PARALLEL_FOR

if TYPE_CHECKING:
    from byoc_mlir.kernels.module_builder import ModuleBuilder

VOID = llvm.LLVMVoidType()

_READ, _DATA = 0, 1
"""What `llvm.prefetch` is told."""


class FunctionBuilder:
    """Appends ops to a function. Values are SSA values; slots are 8 bytes wide."""

    def __init__(self, module: ModuleBuilder, entry: Block):
        self.module, self.block = module, entry
        self._entry = entry
        self._constants: dict[Attribute, SSAValue] = {}
        self._if_used: list[tuple[Operation, Operation]] = []

    @property
    def parameters(self) -> tuple[SSAValue, ...]:
        """The function's parameters."""
        return tuple(self._entry.args)

    def insert(self, op: Operation) -> SSAValue:
        """Appends an op and returns its one result."""
        self.block.add_op(op)
        return op.results[0]

    def append(self, op: Operation) -> None:
        """Appends an op without results."""
        self.block.add_op(op)

    def sign_extend(self, value: SSAValue) -> SSAValue:
        """A signed integer as one of 64 bits."""
        return self.insert(llvm.SExtOp(value, i64))

    def integer(self, value: int, type_: IntegerType = i64) -> SSAValue:
        """A constant."""
        return self.constant(ops.integer_attribute(value, type_), type_)

    def real(self, value: float) -> SSAValue:
        """A constant of `f32`."""
        return self.constant(FloatAttr(value, f32), f32)

    def constant(self, value: Attribute, type_: Attribute) -> SSAValue:
        """A constant of any type: one op for all uses, at the start of the function; `finish` takes
        it away where there are none.
        """
        if value not in self._constants:
            op = llvm.ConstantOp.create(properties={"value": value}, result_types=[type_])
            first = self._entry.first_op
            if first is None:
                self._entry.add_op(op)
            else:
                self._entry.insert_op_before(op, first)
            self._constants[value] = op.results[0]
        return self._constants[value]

    def null(self) -> SSAValue:
        """The null pointer."""
        return self.insert(llvm.ZeroOp(result_types=[POINTER]))

    def address(self, symbol: str) -> SSAValue:
        """The address of a global."""
        return self.insert(ops.address(symbol))

    def slot(self, base: SSAValue, index: int | SSAValue) -> SSAValue:
        """The address of a slot of an array."""
        return self.insert(ops.offset(base, index, i64, inbounds=False))

    def offset(self, base: SSAValue, byte: SSAValue) -> SSAValue:
        """An address some bytes further on."""
        return self.insert(ops.offset(base, byte, i8, inbounds=False))

    def gep(self, base: SSAValue, index: Index, element: Attribute = f32) -> SSAValue:
        """The address of an element of an array."""
        return self.insert(ops.offset(base, index, element, inbounds=False))

    def prefetch(self, address: SSAValue, cache: int = 1) -> None:
        """Brings what will be read soon to a cache, the first one or the second, and those behind
        it.
        """
        locality = 4 - cache  # LLVM counts from the memory on
        hints = [self.integer(value, i32) for value in (_READ, locality, _DATA)]
        self.append(llvm.CallIntrinsicOp("llvm.prefetch.p0", [address, *hints], []))

    def load(
        self, address: SSAValue, type_: Attribute = i64, alignment: int | None = None
    ) -> SSAValue:
        """What stands at an address; without `alignment`, at one of the type's natural ones."""
        return self.insert(ops.load(address, type_, alignment))

    def load_number(self, address: SSAValue, element: Attribute) -> SSAValue:
        """The `f32` of what stands at an address, a number of it or of fewer bits."""
        value = self.load(address, element)
        return value if element == f32 else self.insert(llvm.FPExtOp(value, f32))

    def store_number(self, value: SSAValue, address: SSAValue, element: Attribute) -> None:
        """Writes an `f32` as a number of it or, rounded, of fewer bits."""
        if element != f32:
            value = self.insert(llvm.FPTruncOp(value, element))
        self.store(value, address)

    def pointer(self, base: SSAValue, index: int | SSAValue) -> SSAValue:
        """The pointer in a slot."""
        return self.load(self.slot(base, index), POINTER)

    def word(self, base: SSAValue, index: int | SSAValue, type_: Attribute = i64) -> SSAValue:
        """The number in a slot, its low bytes when the type is narrow."""
        return self.load(self.slot(base, index), type_)

    def word_if_used(self, base: SSAValue, index: int) -> SSAValue:
        """The number in a slot; `finish` takes its load away where nothing uses it."""
        slot = ops.offset(base, index, i64, inbounds=False)
        number = ops.load(slot.results[0], i64)
        self.block.add_ops((slot, number))
        self._if_used.append((slot, number))
        return number.results[0]

    def store(self, value: SSAValue, address: SSAValue, alignment: int | None = None) -> None:
        """Writes a value to an address; without `alignment`, to one of the type's natural ones."""
        self.block.add_op(ops.store(value, address, alignment))

    def stack_slot(self) -> SSAValue:
        """The address of a slot on the stack."""
        return self.stack_slots(1)

    def stack_slots(self, count: int) -> SSAValue:
        """The address of consecutive slots on the stack, zero at first where there is one."""
        address = self.insert(llvm.AllocaOp(self.integer(count), i64))
        if count == 1:
            self.store(self.null(), address)
        return address

    def select(self, condition: SSAValue, one: SSAValue, other: SSAValue) -> SSAValue:
        """One value or the other."""
        return self.insert(ops.select(condition, one, other))

    def least(self, one: SSAValue, other: SSAValue) -> SSAValue:
        """The smaller of two integers with a sign."""
        return self.select(self.compare("slt", one, other), one, other)

    def binary(self, op: type[Operation], lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """An arithmetic op on integers."""
        return self.insert(ops.integer_arithmetic(op, lhs, rhs))

    def add(self, lhs: SSAValue, rhs: Index) -> SSAValue:
        """`lhs + rhs` of `i64`."""
        return lhs if rhs == 0 else self.binary(llvm.AddOp, lhs, self._index(rhs))

    def subtract(self, lhs: SSAValue, rhs: Index) -> SSAValue:
        """`lhs - rhs` of `i64`."""
        return lhs if rhs == 0 else self.binary(llvm.SubOp, lhs, self._index(rhs))

    def multiply(self, lhs: SSAValue, rhs: Index) -> SSAValue:
        """`lhs * rhs` of `i64`."""
        return lhs if rhs == 1 else self.binary(llvm.MulOp, lhs, self._index(rhs))

    def divide(self, lhs: SSAValue, rhs: Index) -> SSAValue:
        """`lhs / rhs` of `i64`, rounded towards zero."""
        return lhs if rhs == 1 else self.binary(llvm.SDivOp, lhs, self._index(rhs))

    def divmod(self, lhs: SSAValue, rhs: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Quotient and remainder of `i64`."""
        return self.divide(lhs, rhs), self.binary(llvm.SRemOp, lhs, rhs)

    def share(
        self, total: SSAValue, member: SSAValue, members: SSAValue
    ) -> tuple[SSAValue, SSAValue]:
        """Where a member's share of `[0, total)` begins and ends, when members share equally."""
        begin = self.divide(self.multiply(total, member), members)
        end = self.divide(self.multiply(total, self.add(member, 1)), members)
        return begin, end

    def _index(self, value: Index) -> SSAValue:
        return self.integer(value) if isinstance(value, int) else value

    def compare(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """An `i1`."""
        return self.insert(ops.compare(predicate, lhs, rhs))

    def call(self, name: str, *arguments: SSAValue, result: Attribute = i32) -> SSAValue:
        """Calls a function and returns what it returns, which is not nothing."""
        self.module.declare(name, [argument.type for argument in arguments], result)
        return self.insert(ops.call(ops.symbol_reference(name), arguments, result))

    def do(self, name: str, *arguments: SSAValue) -> None:
        """Calls a function that returns nothing."""
        self.module.declare(name, [argument.type for argument in arguments], VOID)
        self.block.add_op(ops.call(ops.symbol_reference(name), arguments, None))

    def do_at(self, address: SSAValue, *arguments: SSAValue) -> None:
        """Calls the function at an address, which returns nothing."""
        self.block.add_op(ops.call_at(address, arguments))

    def call_intrinsic(
        self, name: str, arguments: Sequence[SSAValue], result: Attribute
    ) -> SSAValue:
        """Calls one of LLVM's functions and returns what it gives."""
        return self.insert(ops.intrinsic(name, arguments, result))

    def check(self, status: SSAValue) -> None:
        """Returns from the function with the status unless it is 0."""
        failed = self.compare("ne", status, self.integer(0, i32))
        stop, on = self._new_block(), self._new_block()
        self.block.add_op(ops.branch_if(failed, (stop, ()), (on, ())))
        stop.add_op(ops.return_(status))
        self.block = on

    def parallel_for(
        self, body: str, data: SSAValue, total: SSAValue, threads: SSAValue | None = None
    ) -> None:
        """Calls the function `body(data, begin, end)` on ranges that make up `[0, total)`.

        Args:
            body: its symbol.
            data: a pointer.
            total: an `i64`.
            threads: the most that there may be, an `i32`; left out: all of the run.
        """
        if not self.module.has_threads:
            self.do(body, data, self.integer(0), total)
            return
        most = self.integer(0, i32) if threads is None else threads
        self.module.define_parallel_for()
        self.do(PARALLEL_FOR, self.address(body), data, total, most)

    def thread_number(self) -> SSAValue:
        """The number of the thread that runs this, among those of a parallel loop."""
        if not self.module.has_threads:
            return self.integer(0)
        return self.sign_extend(self.call("omp_get_thread_num"))

    def loop(self, count: SSAValue, body: Callable[[SSAValue], None], *, copies: int = 1) -> None:
        """Runs `body` for each index below `count`."""

        def once(index: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            body(index)
            return ()

        self.fold(count, (), once, copies=copies)

    def fold(
        self,
        count: SSAValue,
        initial: Sequence[SSAValue],
        body: Callable[[SSAValue, Sequence[SSAValue]], Sequence[SSAValue]],
        *,
        copies: int = 1,
        before: Callable[[SSAValue], None] | None = None,
    ) -> Sequence[SSAValue]:
        """What `body` makes of some values, once for each index below `count`.

        Args:
            copies: how often the body is written, one behind the other: there are fewer jumps.
            before: what is done before the first of them.
        """
        types = [value.type for value in initial]
        head, after = self._new_block(i64, *types), self._new_block(*types)
        self.block.add_op(ops.branch(head, [self.integer(0), *initial]))
        self.block = head
        first, *values = head.args
        for copy in range(copies):
            index = self.add(first, copy) if copy else first
            is_left, inside = self.compare("slt", index, count), self._new_block()
            self.block.add_op(ops.branch_if(is_left, (inside, ()), (after, values)))
            self.block = inside
            if before is not None and not copy:
                before(index)
            values = body(index, values)
        self.block.add_op(ops.branch(head, [self.add(first, copies), *values]))
        self.block = after
        return after.args

    def when(self, condition: SSAValue, body: Callable[[], None]) -> None:
        """Runs `body` only if the condition holds."""
        inside, after = self._new_block(), self._new_block()
        self.block.add_op(ops.branch_if(condition, (inside, ()), (after, ())))
        self.block = inside
        body()
        self.block.add_op(ops.branch(after, ()))
        self.block = after

    def branch(
        self,
        condition: SSAValue,
        one: Callable[[], Sequence[SSAValue]],
        other: Callable[[], Sequence[SSAValue]],
        *types: Attribute,
    ) -> Sequence[SSAValue]:
        """The values of one computation or of the other."""
        first, second, after = self._new_block(), self._new_block(), self._new_block(*types)
        self.block.add_op(ops.branch_if(condition, (first, ()), (second, ())))
        for block, compute in ((first, one), (second, other)):
            self.block = block
            values = compute()
            self.block.add_op(ops.branch(after, values))
        self.block = after
        return after.args

    def finish(self, status: SSAValue | None = None) -> None:
        """Returns, and ends the function."""
        self.block.add_op(ops.return_(status))
        for slot, number in self._if_used:
            if number.results[0].first_use is None:
                for op in (number, slot):
                    op.detach()
                    op.erase()
        for constant in self._constants.values():
            if constant.first_use is None:
                assert isinstance(constant.owner, Operation)
                constant.owner.detach()
                constant.owner.erase()

    def _new_block(self, *types: Attribute) -> Block:
        block = Block(arg_types=types)
        region = self._entry.parent_region()
        assert region is not None
        region.add_block(block)
        return block
