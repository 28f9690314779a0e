"""Syntax of properties of `relay` ops: numbers and lists without their types."""

from __future__ import annotations

import math
import struct
from typing import Any, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute, TypeAttribute
from xdsl.parser import Parser
from xdsl.printer import Printer


def print_properties(printer: Printer, dictionary: dict[str, Attribute]) -> None:
    """Prints ` {axis = 1, strides = [1, 1]}`; nothing if there are none."""
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
        printer.print_string(str(list(cast("DenseArrayBase[Any]", value).get_values())))
    elif isinstance(value, IntegerAttr) and value.type == i64:
        printer.print_string(str(value.value.data))
    elif isinstance(value, FloatAttr) and value.type == f64 and math.isfinite(value.value.data):
        printer.print_string(_decimal(value.value.data))
    else:
        printer.print_attribute(value)


def _decimal(number: float) -> str:
    """Returns the shortest decimal that reads back as `number`, with a point, as MLIR requires."""
    mantissa, exponent, power = repr(number).partition("e")
    return mantissa + ("" if "." in mantissa else ".0") + exponent + power


def parse_properties(parser: Parser) -> dict[str, Attribute]:
    """Parses the output of `print_properties`."""
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
    """Returns the infinity or NaN with a bit pattern, which is how MLIR prints them."""
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
