"""Builder of functions in the `llvm` dialect: arithmetic, memory, calls, loops, early returns."""

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

if TYPE_CHECKING:
    from byoc_mlir.kernels.module_builder import ModuleBuilder

VOID = llvm.LLVMVoidType()

_READ, _DATA = 0, 1
"""Operands of `llvm.prefetch`: a read, of the data cache."""


class FunctionBuilder:
    """Builder that appends ops to a function. Values are SSA values; slots are 8 bytes wide."""

    def __init__(self, module: ModuleBuilder, entry: Block):
        self.module, self.block = module, entry
        self._entry = entry
        self._constants: dict[Attribute, SSAValue] = {}
        self._if_used: list[tuple[Operation, Operation]] = []

    @property
    def parameters(self) -> tuple[SSAValue, ...]:
        """Returns the function's parameters."""
        return tuple(self._entry.args)

    def insert(self, op: Operation) -> SSAValue:
        """Appends an op and returns its only result."""
        self.block.add_op(op)
        return op.results[0]

    def append(self, op: Operation) -> None:
        """Appends an op without results."""
        self.block.add_op(op)

    def sign_extend(self, value: SSAValue) -> SSAValue:
        """Extends a signed integer to `i64`."""
        return self.insert(llvm.SExtOp(value, i64))

    def integer(self, value: int, type_: IntegerType = i64) -> SSAValue:
        """Returns an integer constant."""
        return self.constant(ops.integer_attribute(value, type_), type_)

    def real(self, value: float) -> SSAValue:
        """Returns an `f32` constant."""
        return self.constant(FloatAttr(value, f32), f32)

    def constant(self, value: Attribute, type_: Attribute) -> SSAValue:
        """Returns a constant of any type: one op for all uses, at the start of the function.

        `finish` removes constants without uses.
        """
        known = self._constants.get(value)
        if known is not None:
            return known
        op = llvm.ConstantOp.create(properties={"value": value}, result_types=[type_])
        first = self._entry.first_op
        if first is None:
            self._entry.add_op(op)
        else:
            self._entry.insert_op_before(op, first)
        self._constants[value] = op.results[0]
        return op.results[0]

    def null(self) -> SSAValue:
        """Returns a null pointer."""
        return self.insert(llvm.ZeroOp(result_types=[POINTER]))

    def address(self, symbol: str) -> SSAValue:
        """Returns the address of a global."""
        return self.insert(ops.address(symbol))

    def slot(self, base: SSAValue, index: int | SSAValue) -> SSAValue:
        """Returns the address of slot `index` of an array of 8-byte slots."""
        return self.insert(ops.offset(base, index, i64, inbounds=False))

    def offset(self, base: SSAValue, byte: SSAValue) -> SSAValue:
        """Returns the address `byte` bytes after `base`."""
        return self.insert(ops.offset(base, byte, i8, inbounds=False))

    def gep(self, base: SSAValue, index: Index, element: Attribute = f32) -> SSAValue:
        """Returns the address of element `index` of an array."""
        return base if index == 0 else self.insert(ops.offset(base, index, element, inbounds=False))

    def prefetch(self, address: SSAValue, cache: int = 1) -> None:
        """Prefetches an address for reading into cache level `cache` (1 or 2)."""
        locality = 4 - cache  # LLVM counts from the memory on
        hints = [self.integer(value, i32) for value in (_READ, locality, _DATA)]
        self.append(llvm.CallIntrinsicOp("llvm.prefetch.p0", [address, *hints], []))

    def load(
        self, address: SSAValue, type_: Attribute = i64, alignment: int | None = None
    ) -> SSAValue:
        """Loads a value; without `alignment`, the address is aligned as the type requires."""
        return self.insert(ops.load(address, type_, alignment))

    def load_number(self, address: SSAValue, element: Attribute) -> SSAValue:
        """Loads an element of `f32`, or of a narrower float type, as `f32`."""
        value = self.load(address, element)
        return value if element == f32 else self.insert(llvm.FPExtOp(value, f32))

    def store_number(self, value: SSAValue, address: SSAValue, element: Attribute) -> None:
        """Stores an `f32` value as `element`: unchanged, or rounded to a narrower float type."""
        if element != f32:
            value = self.insert(llvm.FPTruncOp(value, element))
        self.store(value, address)

    def pointer(self, base: SSAValue, index: int | SSAValue) -> SSAValue:
        """Loads the pointer in a slot."""
        return self.load(self.slot(base, index), POINTER)

    def word(self, base: SSAValue, index: int | SSAValue, type_: Attribute = i64) -> SSAValue:
        """Loads the value in a slot; if `type_` is narrower than the slot, the slot's low bytes."""
        return self.load(self.slot(base, index), type_)

    def word_if_used(self, base: SSAValue, index: int) -> SSAValue:
        """Loads the `i64` in a slot; `finish` removes the load if nothing uses it."""
        slot = ops.offset(base, index, i64, inbounds=False)
        number = ops.load(slot.results[0], i64)
        self.block.add_ops((slot, number))
        self._if_used.append((slot, number))
        return number.results[0]

    def store(self, value: SSAValue, address: SSAValue, alignment: int | None = None) -> None:
        """Stores a value; without `alignment`, the address is aligned as the type requires."""
        self.block.add_op(ops.store(value, address, alignment))

    def stack_slot(self) -> SSAValue:
        """Allocates a slot on the stack, set to zero; returns its address."""
        address = self.stack_slots(1)
        self.store(self.null(), address)
        return address

    def stack_slots(self, count: int, alignment: int = 8) -> SSAValue:
        """Allocates `count` consecutive slots on the stack, not initialised; returns their
        address.
        """
        return self.insert(llvm.AllocaOp(self.integer(count), i64, alignment=alignment))

    def stack_array(self, values: Sequence[SSAValue]) -> SSAValue:
        """Stores values in consecutive slots on the stack; returns their address."""
        address = self.stack_slots(max(len(values), 1))
        for index, value in enumerate(values):
            self.store(value, self.slot(address, index))
        return address

    def atomic_add(self, address: SSAValue, number: int | SSAValue) -> SSAValue:
        """Adds to an `i64` that other threads change, too; returns its old value."""
        added = self.integer(number) if isinstance(number, int) else number
        return self.insert(ops.atomic_add(address, added))

    def select(self, condition: SSAValue, one: SSAValue, other: SSAValue) -> SSAValue:
        """Returns `one` if `condition` holds, otherwise `other`."""
        return self.insert(ops.select(condition, one, other))

    def least(self, one: SSAValue, other: SSAValue) -> SSAValue:
        """Returns the smaller of two signed integers."""
        return self.select(self.compare("slt", one, other), one, other)

    def binary(self, op: type[Operation], lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Appends an arithmetic op on integers, without flags."""
        return self.insert(ops.integer_arithmetic(op, lhs, rhs))

    def add(self, lhs: SSAValue, rhs: Index) -> SSAValue:
        """Computes `lhs + rhs` of `i64`."""
        return lhs if rhs == 0 else self.binary(llvm.AddOp, lhs, self._index(rhs))

    def subtract(self, lhs: SSAValue, rhs: Index) -> SSAValue:
        """Computes `lhs - rhs` of `i64`."""
        return lhs if rhs == 0 else self.binary(llvm.SubOp, lhs, self._index(rhs))

    def multiply(self, lhs: SSAValue, rhs: Index) -> SSAValue:
        """Computes `lhs * rhs` of `i64`."""
        return lhs if rhs == 1 else self.binary(llvm.MulOp, lhs, self._index(rhs))

    def divide(self, lhs: SSAValue, rhs: Index) -> SSAValue:
        """Computes `lhs / rhs` of `i64`, rounded towards zero."""
        return lhs if rhs == 1 else self.binary(llvm.SDivOp, lhs, self._index(rhs))

    def divmod(self, lhs: SSAValue, rhs: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Computes the quotient and the remainder of `i64`, rounded towards zero."""
        return self.divide(lhs, rhs), self.binary(llvm.SRemOp, lhs, rhs)

    def share(
        self, total: SSAValue, member: SSAValue, members: SSAValue
    ) -> tuple[SSAValue, SSAValue]:
        """Returns begin and end of one member's share, if `[0, total)` is divided equally among
        `members`.
        """
        begin = self.divide(self.multiply(total, member), members)
        end = self.divide(self.multiply(total, self.add(member, 1)), members)
        return begin, end

    def _index(self, value: Index) -> SSAValue:
        return self.integer(value) if isinstance(value, int) else value

    def compare(self, predicate: str, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Compares two integers or pointers, to an `i1`."""
        return self.insert(ops.compare(predicate, lhs, rhs))

    def call(self, name: str, *arguments: SSAValue, result: Attribute = i32) -> SSAValue:
        """Calls a function that has a result, and returns the result."""
        self.module.declare(name, [argument.type for argument in arguments], result)
        return self.insert(ops.call(ops.symbol_reference(name), arguments, result))

    def do(self, name: str, *arguments: SSAValue) -> None:
        """Calls a function without a result."""
        self.module.declare(name, [argument.type for argument in arguments], VOID)
        self.block.add_op(ops.call(ops.symbol_reference(name), arguments, None))

    def do_at(self, address: SSAValue, *arguments: SSAValue) -> None:
        """Calls the function at an address, which has no result."""
        self.block.add_op(ops.call_at(address, arguments))

    def call_intrinsic(
        self, name: str, arguments: Sequence[SSAValue], result: Attribute
    ) -> SSAValue:
        """Calls an LLVM intrinsic and returns its result."""
        return self.insert(ops.intrinsic(name, arguments, result))

    def failed(self, status: SSAValue) -> SSAValue:
        """Returns an `i1` that is true if a status is not 0."""
        return self.compare("ne", status, self.integer(0, i32))

    def check(self, status: SSAValue) -> None:
        """Generates an early return of `status` unless it is 0."""
        failed = self.failed(status)
        stop, on = self._new_block(), self._new_block()
        self.block.add_op(ops.branch_if(failed, (stop, ()), (on, ())))
        stop.add_op(ops.return_(status))
        self.block = on

    def parallel_for(
        self, body: str, data: SSAValue, total: SSAValue, threads: SSAValue | None = None
    ) -> None:
        """Calls the function `body(data, begin, end)` in parallel on ranges that make up `[0,
        total)`.

        Args:
            body: symbol of the function.
            data: pointer that the function gets.
            total: number of iterations, an `i64`.
            threads: maximum number of threads, an `i32`; if omitted, all threads of the run.
        """
        if not self.module.has_threads:
            self.do(body, data, self.integer(0), total)
            return
        most = self.integer(0, i32) if threads is None else threads
        self.do(self.module.define_parallel_for(), self.address(body), data, total, most)

    def thread_number(self) -> SSAValue:
        """Returns the index of the executing thread within the parallel loop's team."""
        if not self.module.has_threads:
            return self.integer(0)
        return self.sign_extend(self.call("omp_get_thread_num"))

    def loop(self, count: SSAValue, body: Callable[[SSAValue], None], *, copies: int = 1) -> None:
        """Generates a loop that runs `body` for each index below `count`.

        `copies` is the unroll factor.
        """

        def once(index: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
            body(index)
            return ()

        self.fold(count, (), once, copies=copies)

    def for_range(self, begin: SSAValue, end: SSAValue, body: Callable[[SSAValue], None]) -> None:
        """Generates a loop that runs `body` for each index from `begin` on that is below `end`."""
        self.loop(self.subtract(end, begin), lambda index: body(self.add(begin, index)))

    def fold(
        self,
        count: SSAValue,
        initial: Sequence[SSAValue],
        body: Callable[[SSAValue, Sequence[SSAValue]], Sequence[SSAValue]],
        *,
        copies: int = 1,
        before: Callable[[SSAValue], None] | None = None,
    ) -> Sequence[SSAValue]:
        """Generates a loop that carries values through `body`; returns the values after the
        loop.

        `body` maps an index below `count` and the carried values to their next values.

        Args:
            copies: unroll factor.
            before: function that generates code before each unrolled group of iterations, given the
                group's first index.
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

    def repeat(
        self,
        initial: Sequence[SSAValue],
        body: Callable[[Sequence[SSAValue]], tuple[SSAValue, Sequence[SSAValue]]],
    ) -> Sequence[SSAValue]:
        """Generates a loop that runs `body` until its condition is false, at least once.

        `body` maps the carried values to a condition and their next values; the last ones are
        returned.
        """
        types = [value.type for value in initial]
        head, after = self._new_block(*types), self._new_block(*types)
        self.block.add_op(ops.branch(head, initial))
        self.block = head
        is_left, values = body(head.args)
        self.block.add_op(ops.branch_if(is_left, (head, values), (after, values)))
        self.block = after
        return after.args

    def when(self, condition: SSAValue, body: Callable[[], object]) -> None:
        """Generates code that runs `body` only if `condition` holds; ignores what it returns."""
        inside, after = self._new_block(), self._new_block()
        self.block.add_op(ops.branch_if(condition, (inside, ()), (after, ())))
        self.block = inside
        body()
        self.block.add_op(ops.branch(after, ()))
        self.block = after

    def branch(
        self,
        condition: SSAValue,
        one: Callable[[], Sequence[SSAValue] | None],
        other: Callable[[], Sequence[SSAValue] | None],
        *types: Attribute,
    ) -> Sequence[SSAValue]:
        """Generates an if-else; returns the values of the branch that runs."""
        first, second, after = self._new_block(), self._new_block(), self._new_block(*types)
        self.block.add_op(ops.branch_if(condition, (first, ()), (second, ())))
        for block, compute in ((first, one), (second, other)):
            self.block = block
            values = compute() or ()
            self.block.add_op(ops.branch(after, values))
        self.block = after
        return after.args

    def finish(self, status: SSAValue | None = None) -> None:
        """Ends the function with a return, and removes constants and loads without uses."""
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
