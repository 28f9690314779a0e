"""xDSL's parser, extended for the text that upstream prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from xdsl.dialects.builtin import (
    AnyFloat,
    ComplexType,
    IndexType,
    IntegerType,
    ModuleOp,
)
from xdsl.ir import Operation, Region
from xdsl.parser import AttrParser, Parser
from xdsl.parser.core import ForwardDeclaredValue

from byoc_mlir.dialects.llvm_ext import from_upstream


class IRParser(Parser):
    """Parser that accepts `linalg.generic`'s results in parentheses, and the location that xDSL
    prints before the regions of `scf.while`; it records the ops' lines.
    """

    lines: dict[Operation, int] | None = None
    """Lines of the parsed ops; recorded if a caller sets it to an empty dictionary."""

    def parse_module(self, allow_implicit_module: bool = True) -> ModuleOp:
        module = super().parse_module(allow_implicit_module)
        for op in module.walk():  # xDSL defines such values after it has made the op
            if any(isinstance(operand, ForwardDeclaredValue) for operand in op.operands):
                self.raise_error(f"{op.name} reads a value of its own region")
        from_upstream(module)
        return module

    def parse_operation(self) -> Operation:
        if self.lines is None:
            return super().parse_operation()
        line = self._current_token.span.get_location().line
        op = super().parse_operation()
        self.lines[op] = line
        return op

    def parse_region(self, arguments: Iterable[Parser.Argument] | None = None) -> Region:
        if self._parser_state.dialect_stack[-1:] == ["scf"]:
            self.parse_optional_location()
        return super().parse_region(arguments)

    def _parse_tensor_literal_element(self) -> Parser._TensorLiteralElement:
        if self._current_token.text[:2] not in ("0x", "0X"):
            return super()._parse_tensor_literal_element()
        element = super()._parse_tensor_literal_element()
        return _Bits(element.is_negative, element.value, element.span)

    def parse_comma_separated_list(
        self, delimiter: Parser.Delimiter, parse: Callable[[], Any], context_msg: str = ""
    ) -> list[Any]:
        is_open = delimiter is Parser.Delimiter.NONE and parse == self.parse_attribute
        if is_open and self._parser_state.dialect_stack[-1:] == ["linalg"]:
            results = self.parse_optional_comma_separated_list(
                Parser.Delimiter.PAREN, self.parse_type
            )
            if results is not None:
                return results
        return super().parse_comma_separated_list(delimiter, parse, context_msg)


class _Bits(Parser._TensorLiteralElement):  # pyright: ignore[reportPrivateUsage]
    """Hexadecimal element of a dense attribute; of a float, it has the bits."""

    def to_type(self, parser: AttrParser, type: AnyFloat | IntegerType | IndexType | ComplexType):
        if not isinstance(type, AnyFloat):
            return super().to_type(parser, type)
        bits = self.to_int(parser, allow_negative=False)
        if bits >> type.bitwidth:
            parser.raise_error(f"{bits:#x} has more bits than {type}", at_position=self.span)
        return type.unpack(bits.to_bytes(type.compile_time_size, "little"), 1)[0]
