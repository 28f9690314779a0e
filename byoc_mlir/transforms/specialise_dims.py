"""The pass `specialise-dims`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay import ConstantOp, GuardOp, RelayOp, SymbolOp
from byoc_mlir.dialects.relay.base import (
    DYNAMIC,
    check_not_negative,
    check_tensor_type,
    one_size,
    sizes_of,
    tensor_type,
)
from byoc_mlir.dialects.relay.control import FEWEST_ITERATIONS, ForOp
from byoc_mlir.dialects.relay.evaluate import can_be_folded, evaluate_op
from byoc_mlir.dialects.relay.numbers import property_with, type_with
from byoc_mlir.dialects.relay.shape import ShapeAttr, SizeAttr, asking, is_symbolic
from byoc_mlir.dialects.relay.size import CONSTANT_NAME, ArangeOp, SizesOp
from byoc_mlir.dialects.relay.symbols import facts_of
from byoc_mlir.dims import Facts
from byoc_mlir.errors import UndecidedSizeError
from byoc_mlir.limits import check_time
from byoc_mlir.tensors import Array


@dataclass(frozen=True)
class SpecialiseDims(ModulePass):
    """Replaces symbolic dimensions by numbers, except symbols that functions bind.

    ```mlir
    relay.symbol @n {hint = 8}
    func.func @main(%x: tensor<?x2xf32, #relay.shape<[n, 2]>>) …
      %0 = relay.reshape %x {newshape = #relay.shape<[2*n]>} : …
    // becomes, with specialise-dims{n=4}
    func.func @main(%x: tensor<4x2xf32>) …
      %0 = relay.reshape %x {newshape = [8]} : (tensor<4x2xf32>) -> tensor<8xf32>
    ```

    Ops that compute sizes fold to constants. Each symbol is an option of the pass.
    """

    name = "specialise-dims"

    sizes: tuple[tuple[str, int], ...] = ()

    @classmethod
    def from_spec(cls, spec: ArgSpec) -> Self:
        sizes: list[tuple[str, int]] = []
        for name, values in spec.parameters.items():
            if len(values) != 1 or not isinstance(values[0], int):
                raise ValueError(f"{cls.name}: '{name}' is {values}, accepted is one integer")
            sizes.append((name, values[0]))
        return cls(tuple(sizes))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        try:
            new = specialised(op, dict(self.sizes))
        except UndecidedSizeError as error:
            raise PassFailedException(f"{self.name}: {error}") from error
        op.detach_region(op.body)
        op.add_region(new.detach_region(new.body))


def specialised(module: ModuleOp, sizes: Mapping[str, int]) -> ModuleOp:
    """Returns a copy of the module with numbers in place of its symbols.

    Raises:
        UndecidedSizeError: a symbol has no size or one outside of its bounds, or a guard does not
            hold.
        VerifyException: an op is not valid for these sizes.
    """
    check_sizes(module, sizes)
    bound = facts_of(module).bound
    symbols = [SymbolOp.of(info) for info in bound.values()]
    kept = [op for op in module.body.block.ops if not isinstance(op, SymbolOp | GuardOp)]
    with asking(Facts(bound=bound.values())):
        ops = [
            _FunctionCopier(sizes).of(op) if isinstance(op, func.FuncOp) else op.clone()
            for op in kept
        ]
    return ModuleOp([*symbols, *ops], dict(module.attributes))


def check_sizes(module: ModuleOp, sizes: Mapping[str, int]) -> None:
    """Checks that sizes fit the module's symbols and guards.

    Raises:
        UndecidedSizeError: a size is missing, unknown or out of bounds, or a guard does not hold.
    """
    facts = facts_of(module)
    if sizes.keys() != facts.symbols.keys():
        found, wanted = (", ".join(sorted(names)) or "none" for names in (sizes, facts.symbols))
        raise UndecidedSizeError(f"sizes are given for {found}; the module's symbols are {wanted}")
    for info in facts.symbols.values():
        low, high = info.range
        if not low <= sizes[info.name] <= high:
            raise UndecidedSizeError(
                f"'{info.name}' is {sizes[info.name]}, accepted is a size in [{low}, {high}]"
            )
    for op in module.body.block.ops:
        if isinstance(op, GuardOp) and not op.guard.holds(sizes):
            asked = ", ".join(node_names(op)) or "the module"
            raise UndecidedSizeError(f"{asked} needs {op.guard}, which does not hold for {sizes}")


class _FunctionCopier:
    """Copier of one function: copies ops in order, and inserts constants before their first
    users.
    """

    def __init__(self, sizes: Mapping[str, int]):
        self._sizes = sizes
        self._block = Block()
        self._values: dict[SSAValue, SSAValue] = {}
        self._constants: dict[SSAValue, ConstantOp] = {}
        """Constants that replace results which follow from sizes alone, inserted or not."""

    def of(self, function: func.FuncOp) -> func.FuncOp:
        """Returns the copy."""
        if function.is_declaration:
            return function.clone()
        source = function.body.block
        for argument in source.args:
            types = type_with(argument.type, self._sizes)
            copy = self._block.insert_arg(types, len(self._block.args))
            copy.name_hint = argument.name_hint
            self._values[argument] = copy
            if isinstance(copy.type, TensorType):
                check_tensor_type(tensor_type(copy), f"input '{copy.name_hint}'")
        for op in source.ops:
            check_time()
            self._take(op)
        new = func.FuncOp.build(
            properties=dict(function.properties),
            attributes=dict(function.attributes),
            regions=[Region(self._block)],
        )
        new.location = function.location
        new.update_function_type()
        return new

    def _take(self, op: Operation) -> None:
        if isinstance(op, ConstantOp):
            self._constants[op.output] = op.clone()
        elif not self._folded(op):
            copy = self._copy(op, [self._operand(value) for value in op.operands])
            self._block.add_op(copy)
            self._values.update(zip(op.results, copy.results, strict=True))

    def _operand(self, value: SSAValue) -> SSAValue:
        constant = self._constants.get(value)
        if constant is None:
            return self._values[value]
        if constant.parent is None:
            self._block.add_op(constant)
        return constant.output

    def _folded(self, op: Operation) -> bool:
        """Folds an op whose operands are constant, as the importer does; returns `True` if it
        did.
        """
        known = [self._constants.get(operand) for operand in op.operands]
        constants = [constant for constant in known if constant is not None]
        makes_sizes = isinstance(op, SizesOp | ArangeOp)
        if not isinstance(op, RelayOp) or len(constants) < len(known):
            return False
        if not constants and not makes_sizes:
            return False
        trial = self._copy(op, [constant.output for constant in constants])
        assert isinstance(trial, RelayOp)
        arrays = [constant.array for constant in constants]
        if _is_symbolic(trial) or not (makes_sizes or can_be_folded(trial, arrays)):
            trial.drop_all_references()
            return False
        results = evaluate_op(trial, arrays)
        trial.drop_all_references()
        self._know(op, results)
        return True

    def _know(self, op: Operation, arrays: Sequence[Array]) -> None:
        named = op.attributes.get(CONSTANT_NAME)
        for number, (result, array) in enumerate(zip(op.results, arrays, strict=True)):
            name = _name(named, number) or result.name_hint or "size"
            constant = ConstantOp.of(name, array)
            constant.location = op.location
            constant.output.name_hint = result.name_hint
            self._constants[result] = constant

    def _copy(self, op: Operation, operands: Sequence[SSAValue]) -> Operation:
        if op.regions:
            raise UndecidedSizeError(f"{op.name} has regions, whose sizes cannot be made numbers")
        copy = type(op).create(
            operands=operands,
            result_types=[type_with(type_, self._sizes) for type_ in op.result_types],
            properties={
                name: property_with(value, self._sizes) for name, value in op.properties.items()
            },
            attributes={k: value for k, value in op.attributes.items() if k != CONSTANT_NAME},
        )
        copy.location = op.location
        for result in copy.results:
            if isinstance(result.type, TensorType):
                check_not_negative([size for size in sizes_of(result) if size != DYNAMIC])
                check_tensor_type(tensor_type(result), f"a result of {op.name}")
        for old, new in zip(op.results, copy.results, strict=True):
            new.name_hint = old.name_hint
        if isinstance(copy, RelayOp):
            copy.verify_()
        if isinstance(copy, ForOp) and copy.properties != op.properties:
            _check_repeats(copy)
        return copy


def _is_symbolic(op: RelayOp) -> bool:
    """True if the op has a symbol that a function binds."""
    has_sizes = any(isinstance(value, ShapeAttr | SizeAttr) for value in op.properties.values())
    return has_sizes or any(is_symbolic(sizes_of(result)) for result in op.results)


def _check_repeats(loop: ForOp) -> None:
    count = one_size(loop.count)
    if isinstance(count, int) and count < FEWEST_ITERATIONS:
        raise UndecidedSizeError(
            f"{loop.name} has {count} iterations; importing the model for these sizes unrolls it"
        )


def _name(names: Attribute | None, number: int) -> str:
    name = names.data[number] if isinstance(names, ArrayAttr) else None
    return name.data if isinstance(name, StringAttr) else ""
