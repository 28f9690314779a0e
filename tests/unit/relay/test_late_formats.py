"""Assembly formats are parsed when they are used."""

from __future__ import annotations

from io import StringIO

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, IntegerType, i32
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import PyRDLOpDefinitionError
from xdsl.utils.test_value import create_ssa_value

from byoc_mlir.dialects.late_formats import formats_parsed_late


def _class_of(text: str) -> type[IRDLOperation]:
    @irdl_op_definition
    class TwiceOp(IRDLOperation):
        name = "late.twice"
        operand = operand_def(IntegerType)
        result = result_def(IntegerType)
        assembly_format = text

    return TwiceOp


_FORMAT = "$operand `:` type($operand) `to` type($result) attr-dict"


def test_ops_are_printed_and_parsed() -> None:
    with formats_parsed_late():
        made = _class_of(_FORMAT)
    written = StringIO()
    Printer(written).print_op(made.create(operands=[create_ssa_value(i32)], result_types=[i32]))
    assert written.getvalue() == "%0 = late.twice %1 : i32 to i32"
    context = Context()
    context.load_op(made)
    text = "%1 = late.twice %0 : i32 to i32"
    source = f'%0 = "builtin.unrealized_conversion_cast"() : () -> i32\n{text}'
    context.load_dialect(Builtin)
    module = Parser(context, source).parse_module()
    assert text in str(module)


def test_errors_come_late_only_inside() -> None:
    with formats_parsed_late(), formats_parsed_late():
        _class_of("$nothing")
    with pytest.raises(PyRDLOpDefinitionError):
        _class_of("$nothing")
