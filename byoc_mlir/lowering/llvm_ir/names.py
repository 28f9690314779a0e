"""Names in one function during its translation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import llvm
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from byoc_mlir.dialects import llvm_ext
from byoc_mlir.errors import CompilationError
from byoc_mlir.lowering.llvm_ir.constants import constant_text, quoted, type_text

Edge = tuple[Block, Sequence[SSAValue]]


_LITERALS = frozenset(
    {llvm.ConstantOp, llvm.AddressOfOp, llvm.ZeroOp, llvm.UndefOp, llvm_ext.PoisonOp}
)


class FunctionNames:
    """Names of values and blocks, and the values that each edge passes.

    A constant has no instruction, so its name is its text. If a block has two edges to the same
    destination with different arguments, the second edge gets its own block: a phi node cannot
    distinguish them.
    """

    def __init__(self, body: Region) -> None:
        self._names: dict[SSAValue, str] = {}
        self._types: dict[int, str] = {}
        """Texts of types by the type's `id`, since its hash would visit all nested types."""
        self._labels: dict[Block, str] = {}
        self._edge_labels: dict[Operation, list[str]] = {}
        self.incoming: dict[Block, list[tuple[str, Sequence[SSAValue]]]] = {}
        self.edge_blocks: list[tuple[str, Block]] = []
        for number, block in enumerate(body.blocks):
            self._labels[block] = f"b{number}"
            self.incoming[block] = []
            self._name_all(block.args)
        for block in body.blocks:
            for op in block.ops:
                self._name_results(op)
            self._connect(block)

    def __getitem__(self, value: SSAValue) -> str:
        return self._names[value]

    def typed(self, value: SSAValue) -> str:
        """Returns a value, preceded by its type."""
        return f"{self.type_of(value)} {self._names[value]}"

    def type_of(self, value: SSAValue) -> str:
        """Returns the type of a value."""
        type_ = value.type
        text = self._types.get(id(type_))
        if text is None:
            text = self._types[id(type_)] = type_text(type_)
        return text

    def typed_list(self, values: Iterable[SSAValue]) -> str:
        """Returns several values, each preceded by its type."""
        return ", ".join([self.typed(value) for value in values])

    def label(self, block: Block) -> str:
        """Returns the label of a block."""
        return self._labels[block]

    def edges(self, terminator: Operation) -> Sequence[str]:
        """Returns the label for each edge of a terminator, in the order of `edges_of`."""
        return self._edge_labels[terminator]

    def _name_all(self, values: Iterable[SSAValue]) -> None:
        for value in values:
            self._names[value] = f"%v{len(self._names)}"

    def _name_results(self, op: Operation) -> None:
        text = literal(op)
        if text is None:
            self._name_all(op.results)
        else:
            self._names[op.results[0]] = text

    def _connect(self, block: Block) -> None:
        terminator = block.last_op
        if terminator is None or not terminator.has_trait(IsTerminator):
            raise CompilationError("llvm-ir: a block does not end in a terminator")
        labels: list[str] = []
        taken: dict[Block, Sequence[SSAValue]] = {}
        for destination, args in edges_of(terminator):
            if len(args) != len(destination.args):
                raise CompilationError(
                    f"llvm-ir: {terminator.name} passes {len(args)} value(s) to a block with "
                    f"{len(destination.args)} argument(s)"
                )
            source, label = self._labels[block], self._labels[destination]
            if list(taken.setdefault(destination, args)) != list(args):
                source = label = self._edge_block(destination)
            labels.append(label)
            self.incoming[destination].append((source, args))
        self._edge_labels[terminator] = labels

    def _edge_block(self, destination: Block) -> str:
        label = f"e{len(self.edge_blocks)}"
        self.edge_blocks.append((label, destination))
        return label


def edges_of(terminator: Operation) -> Sequence[Edge]:
    """Returns the destinations of a terminator, each with the arguments passed to it."""
    match terminator:
        case llvm.BrOp():
            return [(terminator.successor, terminator.arguments)]
        case llvm.CondBrOp():
            return [
                (terminator.then_block, terminator.then_arguments),
                (terminator.else_block, terminator.else_arguments),
            ]
        case llvm_ext.SwitchOp():
            default = (terminator.default_destination, terminator.default_operands)
            return [default, *((block, args) for _, block, args in terminator.cases())]
        case _:
            return []


def literal(op: Operation) -> str | None:
    """Returns the text of an op that is a constant in LLVM, or None."""
    if type(op) not in _LITERALS:
        return None
    match op:
        case llvm.ConstantOp():
            return constant_text(op.value, op.result.type)
        case llvm.AddressOfOp():
            return symbol(op.global_name.string_value())
        case llvm.ZeroOp():
            return "null" if isinstance(op.res.type, llvm.LLVMPointerType) else "zeroinitializer"
        case llvm.UndefOp():
            return "undef"
        case llvm_ext.PoisonOp():
            return "poison"
        case _:
            return None


def symbol(name: str) -> str:
    """Returns a global name in LLVM assembly."""
    return f"@{name}" if name.isidentifier() and name.isascii() else f"@{quoted(name.encode())}"
