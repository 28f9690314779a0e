"""The `byoc` dialect: composites, and annotations around the ops that a backend runs.

An outlined region is a `func.func` with the attribute `byoc.compiler`, the backend's name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.abi import COMPILER, KERNEL
from byoc_mlir.dialects.device_ops import CopyOp, TransferOp, WaitOp

REASON = "byoc.reason"
"""Attribute of an op: the reason why it is on the host."""

TIMES = "byoc.times"
"""Attribute of an outlined region, or of ops sent back from one: times in both places."""

REFUSED = "byoc.refused"
"""Attribute of an op: composites whose pattern matched and whose check refused, with reasons."""

WEIGHT_GROWTH = "byoc.weight_growth"
"""Attribute of a function: bytes that packed convolution weights may take per byte of weights."""


def region_compiler(func: Operation) -> str | None:
    """Returns the backend that an outlined region belongs to; `None` for other ops."""
    compiler = func.attributes.get(COMPILER)
    return compiler.data if isinstance(func, FuncOp) and isinstance(compiler, StringAttr) else None


def weight_growth(func: Operation) -> float:
    """Returns a function's `byoc.weight_growth`; infinity (no limit) without the attribute."""
    said = func.attributes.get(WEIGHT_GROWTH)
    return said.value.data if isinstance(said, FloatAttr) else math.inf


def refusals(op: Operation) -> list[str]:
    """Returns the composites that refused an op, one text per reason: `dnnl.conv2d_bias,
    dnnl.conv2d_sum: …`.
    """
    refused = op.attributes.get(REFUSED)
    if not isinstance(refused, ArrayAttr):
        return []
    names: dict[str, list[str]] = {}
    for item in refused:
        if isinstance(item, StringAttr):
            name, _, reason = item.data.partition(": ")
            names.setdefault(reason, []).append(name)
    return [f"{', '.join(listed)}: {reason}" for reason, listed in names.items()]


@irdl_op_definition
class YieldOp(IRDLOperation):
    """End of a composite's body, with the values of its results."""

    name = "byoc.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict ($values^ `:` type($values))?"

    def __init__(self, values: Sequence[SSAValue]):
        super().__init__(operands=[values])


def host_blocks(module: ModuleOp) -> Iterator[Block]:
    """Yields the blocks of all functions of the module that do not belong to a backend, and are no
    kernels.
    """
    for op in module.body.block.ops:
        if isinstance(op, FuncOp) and region_compiler(op) is None and KERNEL not in op.attributes:
            yield from op.body.blocks


@irdl_op_definition
class CompositeOp(IRDLOperation):
    """Ops that a backend runs as one unit, matched by one of its patterns.

    The body uses only its arguments. `partitioned_from_pattern` names the variant of the pattern
    that matched: the names of the ops in the body, operands first, each with a `_`.

    ```mlir
    %r = byoc.composite "dnnl.conv2d_relu" from "nn.conv2d_nn.relu_"
        (%a = %x : tensor<…>, %b = %w : tensor<…>) -> tensor<…> {
      %0 = relay.nn.conv2d %a, %b : (tensor<…>, tensor<…>) -> tensor<…>
      %1 = relay.nn.relu %0 : (tensor<…>) -> tensor<…>
      byoc.yield %1 : tensor<…>
    }
    ```
    """

    name = "byoc.composite"
    composite_name = prop_def(StringAttr)
    partitioned_from_pattern = prop_def(StringAttr)
    inputs = var_operand_def()
    outputs = var_result_def()
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), Pure())

    def __init__(
        self,
        composite_name: str,
        partitioned_from_pattern: str,
        inputs: Sequence[SSAValue],
        result_types: Sequence[Attribute],
        body: Region,
    ):
        super().__init__(
            operands=[inputs],
            result_types=[result_types],
            properties={
                "composite_name": StringAttr(composite_name),
                "partitioned_from_pattern": StringAttr(partitioned_from_pattern),
            },
            regions=[body],
        )

    @property
    def compiler(self) -> str:
        """Returns the backend that the composite is for: its name up to the first dot."""
        return self.composite_name.data.partition(".")[0]

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        """Returns the values of the body that the results take."""
        last = self.body.block.last_op
        assert isinstance(last, YieldOp)
        return tuple(last.values)

    def ops(self) -> Iterable[Operation]:
        """Returns the ops of the body, without the yield."""
        return (op for op in self.body.block.ops if not isinstance(op, YieldOp))

    def verify_(self) -> None:
        backend, dot, own = self.composite_name.data.partition(".")
        if not (backend and dot and own):
            raise VerifyException(
                f"composite name '{self.composite_name.data}' must be a backend's name, a dot and"
                " a name of its own"
            )
        block = self.body.block
        if not self.outputs:
            raise VerifyException("a composite has at least one result")
        if not isinstance(block.last_op, YieldOp):
            raise VerifyException("the body of a composite ends in byoc.yield")
        _check_types("argument", block.arg_types, "operand", self.inputs.types)
        _check_types("yielded value", block.last_op.values.types, "result", self.outputs.types)
        for op in self.ops():
            if op.regions or isinstance(op, CompilerBeginOp | CompilerEndOp):
                raise VerifyException(f"the body of a composite holds plain ops, found {op.name}")

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        composite_name = parser.parse_str_literal("the composite's name")
        parser.parse_keyword("from")
        origin = parser.parse_str_literal("the names of the matched ops")
        bindings = parser.parse_comma_separated_list(
            Parser.Delimiter.PAREN, lambda: _parse_binding(parser)
        )
        parser.parse_punctuation("->")
        if parser.parse_optional_punctuation("(") is None:
            result_types = [parser.parse_type()]
        else:
            result_types = parser.parse_comma_separated_list(
                Parser.Delimiter.NONE, parser.parse_type
            )
            parser.parse_punctuation(")")
        attributes = parser.parse_optional_attr_dict_with_keyword()
        body = parser.parse_region([argument for argument, _ in bindings])
        op = cls(composite_name, origin, [value for _, value in bindings], result_types, body)
        if attributes is not None:
            op.attributes.update(attributes.data)
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(self.composite_name.data)
        printer.print_string(" from ")
        printer.print_string_literal(self.partitioned_from_pattern.data)
        printer.print_string(" ")
        with printer.in_parens():
            pairs = list(zip(self.body.block.args, self.inputs, strict=True))
            printer.print_list(pairs, lambda pair: _print_binding(printer, *pair))
        printer.print_string(" -> ")
        if len(self.outputs) == 1:
            printer.print_attribute(self.outputs[0].type)
        else:
            with printer.in_parens():
                printer.print_list(self.outputs.types, printer.print_attribute)
        if self.attributes:
            printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


class CompilerMarkOp(IRDLOperation):
    """Mark at the border of the ops that the backend `compiler` runs; its result equals its operand
    `value`.
    """

    T: ClassVar = VarConstraint("T", AnyAttr())

    compiler = prop_def(StringAttr)
    value = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$value `for` $compiler attr-dict `:` type($value)"

    def __init__(self, value: SSAValue, compiler: str):
        # Made by the thousand: this skips the general constructor's sorting of operands.
        Operation.__init__(
            self,
            operands=[value],
            result_types=[value.type],
            properties={"compiler": StringAttr(compiler)},
        )

    def verify_(self) -> None:
        if not self.compiler.data:
            raise VerifyException("the compiler's name is empty")


@irdl_op_definition
class CompilerBeginOp(CompilerMarkOp):
    """Entry of a value into a region: `%1 = byoc.compiler_begin %x for "dnnl" : tensor<…>`."""

    name = "byoc.compiler_begin"


@irdl_op_definition
class CompilerEndOp(CompilerMarkOp):
    """Exit of a value from a region: `%2 = byoc.compiler_end %1 for "dnnl" : tensor<…>`."""

    name = "byoc.compiler_end"


def _check_types(
    inner_name: str, inner: Sequence[Attribute], outer_name: str, outer: Sequence[Attribute]
) -> None:
    if len(inner) != len(outer):
        raise VerifyException(
            f"the body has {len(inner)} {inner_name}s, the composite {len(outer)} {outer_name}s"
        )
    for index, (one, two) in enumerate(zip(inner, outer, strict=True)):
        if one != two:
            raise VerifyException(
                f"{inner_name} #{index} has type {one}, {outer_name} #{index} has type {two}"
            )


def _parse_binding(parser: Parser) -> tuple[Parser.Argument, SSAValue]:
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    operand = parser.parse_unresolved_operand()
    parser.parse_punctuation(":")
    type_ = parser.parse_type()
    return argument.resolve(type_), parser.resolve_operand(operand, type_)


def _print_binding(printer: Printer, argument: SSAValue, value: SSAValue) -> None:
    printer.print_ssa_value(argument)
    printer.print_string(" = ")
    printer.print_ssa_value(value)
    printer.print_string(" : ")
    printer.print_attribute(value.type)


BYOC = Dialect(
    "byoc", [CompositeOp, CompilerBeginOp, CompilerEndOp, CopyOp, TransferOp, WaitOp, YieldOp]
)
