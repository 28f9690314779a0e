"""Control flow: ops whose branches and bodies are functions of the module.

Such a function uses only its arguments, which include captured values. Only one op calls it, except
the function of `relay.call`, which other such ops of the same block may call.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import FunctionType, SymbolRefAttr, TensorType, i1, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    prop_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.abi import BINDS
from byoc_mlir.dialects.relay.base import (
    RelayOp,
    int_prop,
    one_size,
    size_prop,
    sizes_of,
    tensor_of,
    tensor_type,
)
from byoc_mlir.dialects.relay.shape import at_most
from byoc_mlir.dialects.relay.symbols import bound_symbol
from byoc_mlir.dims import Size

CONDITION = TensorType(i1, [])
NUMBER = TensorType(i64, [])

FEWEST_ITERATIONS = 2
"""Smallest known trip count of a loop; shorter loops are unrolled at import."""


class ControlOp(RelayOp):
    """Base of the ops that call functions; not folded, as their run time is not bounded."""

    IS_FOLDED: ClassVar = False

    outputs = var_result_def(TensorType)

    def infer_types(self) -> Sequence[Attribute]:
        """Returns the declared result types, which the functions determine."""
        return self.result_types

    def functions(self) -> tuple[FuncOp, ...]:
        """Returns the functions that the op may call.

        Raises:
            VerifyException: the module lacks one of the functions.
        """
        return tuple(map(self._function, self.symbols()))

    @abstractmethod
    def symbols(self) -> tuple[SymbolRefAttr, ...]:
        """Returns the names of the functions that the op may call."""

    @abstractmethod
    def signature(self) -> FunctionType:
        """Returns the type that each of the functions must have."""

    def check_operands(self) -> None:
        """Checks operands and properties, as far as they do not depend on the functions.

        Raises:
            VerifyException: operands and properties do not fit together.
        """

    def verify_(self) -> None:
        self.check_operands()
        if not _has_symbols(self):
            return
        expected = self.signature()
        for function in self.functions():
            if function.function_type != expected:
                raise VerifyException(
                    f"{self.name}: @{function.sym_name.data} has type {function.function_type},"
                    f" expected {expected}"
                )

    def _function(self, symbol: SymbolRefAttr) -> FuncOp:
        function = SymbolTable.lookup_symbol(self, symbol)
        if not isinstance(function, FuncOp):
            raise VerifyException(f"{self.name}: there is no function {symbol}")
        return function

    def _check_scalar(self, value: SSAValue, what: str, type_: Attribute) -> None:
        if value.type != type_:
            raise VerifyException(f"{self.name}: {what} must be {type_}, found {value.type}")


def _has_symbols(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None and not parent.has_trait(SymbolTable):
        parent = parent.parent_op()
    return parent is not None


@irdl_op_definition
class IfOp(ControlOp):
    """`condition [], arguments… -> results…`: calls one of two functions with the arguments.

    ```mlir
    %0 = relay.if %c, %x {then_branch = @double, else_branch = @square}
        : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
    ```
    """

    name = "relay.if"
    condition = operand_def(TensorType)
    arguments = var_operand_def(TensorType)
    then_branch = prop_def(SymbolRefAttr)
    else_branch = prop_def(SymbolRefAttr)

    def symbols(self) -> tuple[SymbolRefAttr, ...]:
        return (self.then_branch, self.else_branch)

    def signature(self) -> FunctionType:
        return FunctionType.from_lists(self.arguments.types, self.result_types)

    def check_operands(self) -> None:
        self._check_scalar(self.condition, "the condition", CONDITION)


class BodyOp(ControlOp):
    """Base of the ops that call one function, whose type is that of the op itself unless a subclass
    has another signature.
    """

    body = prop_def(SymbolRefAttr)

    def symbols(self) -> tuple[SymbolRefAttr, ...]:
        return (self.body,)

    def signature(self) -> FunctionType:
        return FunctionType.from_lists(self.operand_types, self.result_types)


@irdl_op_definition
class BindOp(BodyOp):
    """`number [], arguments… -> results…`: calls a function with a size that is known at run time.

    The function binds a symbol of the module to the number, which must be in the symbol's range.
    Types in the function use the symbol, except the types of its arguments and results.

    ```mlir
    relay.symbol @keys {min = 1, max = 64, hint = 32}
    %0 = relay.bind %n, %x {body = @first} : (tensor<i64>, tensor<64xf32>) -> tensor<f32>
    func.func private @first(%n: tensor<i64>, %x: tensor<64xf32>) -> tensor<f32>
        attributes {byoc.binds = "keys"}
    ```
    """

    name = "relay.bind"
    number = operand_def(TensorType)
    arguments = var_operand_def(TensorType)

    def bound(self) -> str:
        """Returns the symbol that the function binds.

        Raises:
            VerifyException: the function binds none.
        """
        (function,) = self.functions()
        name = bound_symbol(function)
        if name is None:
            raise VerifyException(
                f"{self.name}: @{function.sym_name.data} binds no symbol; expected {BINDS}"
            )
        return name

    def check_operands(self) -> None:
        self._check_scalar(self.number, "the number", NUMBER)

    def verify_(self) -> None:
        super().verify_()
        if _has_symbols(self):
            self.bound()


@irdl_op_definition
class CallOp(BodyOp):
    """`arguments… -> results…`: calls a function.

    ```mlir
    %0 = relay.call %x {body = @layer} : (tensor<4xf32>) -> tensor<4xf32>
    ```
    """

    name = "relay.call"
    arguments = var_operand_def(TensorType)


class LoopOp(BodyOp):
    """Base of the loops.

    The first `carried` values are passed from one iteration to the next, other values are the same
    for all iterations.
    """

    carried = int_prop()
    values = var_operand_def(TensorType)

    @property
    def initial(self) -> Sequence[SSAValue]:
        """Returns the values that are carried into the first iteration."""
        return self.values[: self.carried.value.data]

    @property
    def invariant(self) -> Sequence[SSAValue]:
        """Returns the values that are the same for all iterations."""
        return self.values[self.carried.value.data :]

    @property
    def stacked(self) -> Sequence[SSAValue]:
        """Returns the results that have a row for each iteration."""
        return self.results[self.carried.value.data :]

    def results_of_body(self) -> list[Attribute]:
        """Returns the types of the carried values, and of the rows."""
        rows = [
            tensor_of(tensor_type(result).element_type, sizes_of(result)[1:])
            for result in self.stacked
        ]
        return [*(value.type for value in self.initial), *rows]

    def check_rows(self, count: Size, what: str) -> None:
        """Checks that stacked results have `count` rows.

        Raises:
            VerifyException: a stacked result has another number of rows.
        """
        for result in self.stacked:
            if sizes_of(result)[:1] != (count,):
                raise VerifyException(
                    f"{self.name}: a stacked result has type {result.type}, its first dimension"
                    f" must be {what}, {count}"
                )

    def check_operands(self) -> None:
        carried, values = self.carried.value.data, len(self.values)
        if not 0 <= carried <= min(values, len(self.results)):
            raise VerifyException(
                f"{self.name}: carried is {carried}, accepted are 0 to"
                f" {min(values, len(self.results))}, as there are {values} values and"
                f" {len(self.results)} results"
            )
        for number, value in enumerate(self.initial):
            if value.type != self.results[number].type:
                raise VerifyException(
                    f"{self.name}: result #{number} has type {self.results[number].type}, the"
                    f" carried value has {value.type}"
                )


@irdl_op_definition
class ForOp(LoopOp):
    """`values… -> carried…, stacked [count, …]…`: a loop with a known or symbolic trip count.

    The body takes the iteration number, the carried values and the loop-invariant values; it
    returns the carried values, and the iteration's rows of the stacked results.

    ```mlir
    %0:2 = relay.for %s, %x {body = @step, count = 3, carried = 1}
        : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<3x4xf32>)
    func.func private @step(%i: tensor<i64>, %s: tensor<4xf32>, %x: tensor<4xf32>)
        -> (tensor<4xf32>, tensor<4xf32>)
    ```
    """

    name = "relay.for"
    count = size_prop()

    def signature(self) -> FunctionType:
        return FunctionType.from_lists([NUMBER, *self.values.types], self.results_of_body())

    def check_operands(self) -> None:
        super().check_operands()
        count = one_size(self.count)
        if not at_most(0, count):
            raise VerifyException(f"{self.name}: count is {count}, accepted is 0 and more")
        self.check_rows(count, "the count")


@irdl_op_definition
class WhileOp(LoopOp):
    """`limit [], condition [], values… -> carried…, stacked [most, …]…`: a loop while `condition`.

    It has at most `limit` iterations, and no more than `most`. The body takes the iteration number,
    the carried values and the loop-invariant values; it returns the condition of the next
    iteration, the carried values, and the iteration's rows of the stacked results. Rows of
    iterations that did not run are undefined.

    ```mlir
    %0 = relay.while %limit, %go, %s {body = @step, carried = 1}
        : (tensor<i64>, tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
    func.func private @step(%i: tensor<i64>, %s: tensor<4xf32>) -> (tensor<i1>, tensor<4xf32>)
    ```
    """

    name = "relay.while"
    limit = operand_def(TensorType)
    condition = operand_def(TensorType)

    def signature(self) -> FunctionType:
        return FunctionType.from_lists(
            [NUMBER, *self.values.types], [CONDITION, *self.results_of_body()]
        )

    @property
    def most(self) -> int | None:
        """Returns the number of rows of stacked results; `None` without stacked results.

        Raises:
            VerifyException: the number of rows is symbolic.
        """
        if not self.stacked:
            return None
        (most,) = sizes_of(self.stacked[0])[:1] or (None,)
        if not isinstance(most, int):
            raise VerifyException(
                f"{self.name}: a stacked result has type {self.stacked[0].type}, its first"
                " dimension must be a number"
            )
        return most

    def check_operands(self) -> None:
        super().check_operands()
        self._check_scalar(self.limit, "the limit", NUMBER)
        self._check_scalar(self.condition, "the condition", CONDITION)
        if self.most is not None:
            self.check_rows(self.most, "the same for all of them")
