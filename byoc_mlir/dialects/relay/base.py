"""What all `relay` ops share: construction from Python values, type inference, readable syntax."""

from __future__ import annotations

import math
import struct
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self, TypeAlias, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, OpResult, SSAValue, SSAValues, TypeAttribute
from xdsl.irdl import AttrConstraint, AttrSizedOperandSegments, IRDLOperation, prop_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.limits import check_tensor, check_time

Tensor: TypeAlias = TensorType[Attribute]
Ints: TypeAlias = DenseArrayBase[Any]
Operand: TypeAlias = SSAValue | Operation
PyValue: TypeAlias = Attribute | bool | int | float | str | Sequence[int] | Sequence[str] | None

DYNAMIC = -1


def relay_name(op: Operation) -> str:
    """The op's name in Relay: `nn.conv2d` for `relay.nn.conv2d`."""
    return op.name.removeprefix("relay.")


def int_prop(default: int | None = None) -> IntegerAttr:
    """An `i64` property, printed as `axis = 1`."""
    return prop_def(
        IntegerAttr.constr(i64), default_value=None if default is None else to_attribute(default)
    )


def ints_prop(default: Sequence[int] | None = None) -> Ints:
    """An array of `i64` as property, printed as `strides = [1, 1]`."""
    return prop_def(
        DenseArrayBase.constr(i64), default_value=None if default is None else to_attribute(default)
    )


def float_prop(default: float | None = None) -> FloatAttr:
    """An `f64` property, printed as `epsilon = 1e-05`."""
    return prop_def(
        FloatAttr.constr(f64), default_value=None if default is None else to_attribute(default)
    )


def bool_prop(default: bool | None = None) -> BoolAttr:
    """An `i1` property, printed as `ceil_mode = true`."""
    constraint = cast(AttrConstraint[BoolAttr], IntegerAttr.constr(i1))
    return prop_def(constraint, default_value=None if default is None else to_attribute(default))


def str_prop(default: str | None = None) -> StringAttr:
    """A string property, printed as `layout = "NCHW"`."""
    return prop_def(StringAttr, default_value=None if default is None else StringAttr(default))


def to_attribute(value: PyValue) -> Any:
    """The attribute that stands for a Python value in a `relay` property."""
    if isinstance(value, Attribute):
        return value
    if isinstance(value, bool):
        return BoolAttr.from_bool(value)
    if isinstance(value, int):
        return IntegerAttr(value, i64)
    if isinstance(value, float):
        return FloatAttr(value, f64)
    if isinstance(value, str):
        return StringAttr(value)
    if isinstance(value, Sequence):
        if value and isinstance(value[0], str):
            return ArrayAttr([StringAttr(str(item)) for item in value])
        return DenseArrayBase.from_list(i64, [int(item) for item in value])
    raise TypeError(f"no relay property can hold {value!r}")


def ints(attribute: Ints) -> tuple[int, ...]:
    """The Python integers of an array property."""
    return tuple(attribute.get_values())


def tensor_type(value: SSAValue) -> Tensor:
    """The type of a tensor value; other types are refused.

    Raises:
        VerifyException: the value is not a ranked tensor.
    """
    if not isinstance(value.type, TensorType):
        raise VerifyException(f"expected a ranked tensor, found {value.type}")
    return cast(Tensor, value.type)


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The shape of a tensor value, `DYNAMIC` where a dimension is not known."""
    return tensor_type(value).get_shape()


def check_tensor_type(type_: Tensor, what: str) -> None:
    """Refuses a tensor that is too large, if its shape is known.

    Raises:
        LimitExceededError: it is too large.
    """
    if type_.has_static_shape():
        check_tensor(type_.get_shape(), numpy_dtype(type_.element_type).itemsize, what)


def check_addressed(op: RelayOp, sizes: Sequence[int], places: Sequence[int]) -> None:
    """Checks that the dimensions that an op reads at computed places have elements.

    Raises:
        VerifyException: one of `sizes` is 0, and the shape `places` holds a place.
    """
    if 0 in sizes and all(size > 0 for size in places):
        raise VerifyException(
            f"{op.name}: computed places in dimensions without elements (sizes {list(sizes)}); no"
            " place is valid there"
        )


def normalize_axis(axis: int, rank: int, what: str = "axis") -> int:
    """`axis` counted from the front.

    Raises:
        VerifyException: it is outside of `[-rank, rank - 1]`.
    """
    if not -rank <= axis < rank:
        raise VerifyException(f"{what} is {axis}, accepted range is [{-rank}, {rank - 1}]")
    return axis % rank


class RelayOp(IRDLOperation, ABC):
    """Base of every `relay` op.

    The syntax is the same for all of them; properties at their default are not printed:

    ```mlir
    %1 = relay.nn.conv2d %x, %w {padding = [1, 1, 1, 1]} : (tensor<…>, tensor<…>) -> tensor<…>
    ```
    """

    traits = traits_def(Pure())

    def __init__(
        self,
        *operands: Operand | Sequence[Operand],
        result_types: Sequence[Attribute] | None = None,
        **properties: PyValue,
    ):
        """Builds the op; result types are inferred unless given, `None` properties are left out.

        Args:
            operands: one entry per operand definition, a sequence for a variadic one.
            properties: Python values (`axis=1`, `strides=[2, 2]`) or attributes.
        """
        groups = [
            [SSAValue.get(group)]
            if isinstance(group, SSAValue | Operation)
            else [SSAValue.get(value) for value in group]
            for group in operands
        ]
        attributes = {
            name: to_attribute(value) for name, value in properties.items() if value is not None
        }
        if any(
            isinstance(option, AttrSizedOperandSegments)
            for option in self.get_irdl_definition().options
        ):
            sizes = [len(group) for group in groups]
            attributes["operandSegmentSizes"] = DenseArrayBase.from_list(i64, sizes)
        Operation.__init__(
            self,
            operands=[value for group in groups for value in group],
            result_types=result_types or (),
            properties=attributes,
        )
        if result_types is None:
            self.results = SSAValues(
                OpResult(type_, self, index) for index, type_ in enumerate(self._checked_types())
            )

    def _checked_types(self) -> Sequence[Attribute]:
        """The inferred types, once their tensors are found to be small enough."""
        check_time()
        types = self.infer_types()
        for type_ in types:
            if isinstance(type_, TensorType):
                check_tensor_type(cast(Tensor, type_), f"a result of {self.name}")
        return types

    @abstractmethod
    def infer_types(self) -> Sequence[Attribute]:
        """The result types that follow from the operands' types and the properties.

        Raises:
            VerifyException: operands and properties do not fit together.
        """

    def verify_(self) -> None:
        inferred = self.infer_types()
        if len(inferred) != len(self.results):
            raise VerifyException(
                f"{self.name}: expected {len(inferred)} results, found {len(self.results)}"
            )
        for index, (expected, result) in enumerate(zip(inferred, self.results, strict=True)):
            if not _compatible(expected, result.type):
                raise VerifyException(
                    f"{self.name}: result #{index} has type {result.type}, inferred {expected}"
                )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        start = parser.pos
        operands = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        dictionary = _parse_dictionary(parser)
        parser.parse_punctuation(":")
        function_type = parser.expect(
            parser.parse_optional_function_type, "a function type is expected"
        )
        values = parser.resolve_operands(operands or (), function_type.inputs.data, start)
        known = cls.get_irdl_definition().properties
        return cls.create(
            operands=values,
            result_types=function_type.outputs.data,
            properties={name: value for name, value in dictionary.items() if name in known},
            attributes={name: value for name, value in dictionary.items() if name not in known},
        )

    def print(self, printer: Printer) -> None:
        if self.operands:
            printer.print_string(" ")
            printer.print_list(self.operands, printer.print_ssa_value)
        _print_dictionary(printer, {**self._explicit_properties(), **self.attributes})
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)

    def _explicit_properties(self) -> dict[str, Attribute]:
        definitions = self.get_irdl_definition().properties
        return {
            name: value
            for name, value in self.properties.items()
            if name not in definitions or definitions[name].default_value != value
        }


def _compatible(expected: Attribute, found: Attribute) -> bool:
    if not (isinstance(expected, TensorType) and isinstance(found, TensorType)):
        return expected == found
    expected, found = cast(Tensor, expected), cast(Tensor, found)
    if expected.element_type != found.element_type:
        return False
    dimensions = zip(expected.get_shape(), found.get_shape(), strict=False)
    return len(expected.get_shape()) == len(found.get_shape()) and all(
        a == b or DYNAMIC in (a, b) for a, b in dimensions
    )


def _print_dictionary(printer: Printer, dictionary: dict[str, Attribute]) -> None:
    if not dictionary:
        return
    printer.print_string(" {")
    for position, (name, value) in enumerate(dictionary.items()):
        printer.print_string(", " if position else "")
        printer.print_identifier_or_string_literal(name)
        printer.print_string(" = ")
        _print_value(printer, value)
    printer.print_string("}")


def _print_value(printer: Printer, value: Attribute) -> None:
    if isinstance(value, DenseArrayBase) and value.elt_type == i64:
        printer.print_string(str(list(ints(cast(Ints, value)))))
    elif isinstance(value, IntegerAttr) and value.type == i64:
        printer.print_string(str(value.value.data))
    elif isinstance(value, FloatAttr) and value.type == f64 and math.isfinite(value.value.data):
        printer.print_string(_decimal(value.value.data))
    else:
        printer.print_attribute(value)


def _decimal(number: float) -> str:
    """The shortest decimal that reads back as `number`, with a point, as MLIR wants it."""
    mantissa, exponent, power = repr(number).partition("e")
    return mantissa + ("" if "." in mantissa else ".0") + exponent + power


def _parse_dictionary(parser: Parser) -> dict[str, Attribute]:
    if parser.parse_optional_punctuation("{") is None:
        return {}
    entries: dict[str, Attribute] = {}
    while parser.parse_optional_punctuation("}") is None:
        if entries:
            parser.parse_punctuation(",")
        name = parser.parse_identifier_or_str_literal()
        if name in entries:
            parser.raise_error(f"property '{name}' is given twice")
        parser.parse_punctuation("=")
        entries[name] = _parse_value(parser)
    return entries


def _parse_value(parser: Parser) -> Attribute:
    integers = parser.parse_optional_comma_separated_list(
        parser.Delimiter.SQUARE, lambda: _parse_item(parser)
    )
    if integers is None:
        return _parse_item(parser)
    if all(isinstance(item, IntegerAttr) and item.type == i64 for item in integers):
        items = cast(list[IntegerAttr], integers)
        return DenseArrayBase.from_list(i64, [item.value.data for item in items])
    return ArrayAttr(integers)


def _from_bits(parser: Parser, bits: int) -> float:
    """The number that an infinity's or NaN's bit pattern is; so they are printed."""
    number: float = struct.unpack("<d", struct.pack("<Q", bits % (1 << 64)))[0]
    if math.isfinite(number):
        parser.raise_error("expected a decimal point, or the bit pattern of infinity or NaN")
    return number


def _parse_item(parser: Parser) -> Attribute:
    number = parser.parse_optional_number()
    if number is None:
        return parser.parse_attribute()
    type_: TypeAttribute | None = None
    if parser.parse_optional_punctuation(":"):
        type_ = parser.parse_type()
    if isinstance(number, float):
        return FloatAttr(number, cast(Any, type_ or f64))
    if isinstance(type_, Float64Type):
        return FloatAttr(_from_bits(parser, number), f64)
    return IntegerAttr(number, cast(Any, type_ or i64))
