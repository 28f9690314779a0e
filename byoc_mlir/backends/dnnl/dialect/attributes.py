"""Attributes of the `dnnl` dialect: layouts and post-ops."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.dialects.builtin import FloatAttr, StringAttr, f64
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.onednn import constants

BINARY = (*constants.BINARY, "prelu")
"""Algorithms that combine two elements, including a prelu with its slopes."""


@irdl_attr_definition
class LayoutAttr(ParametrizedAttribute):
    """`#dnnl.layout<"aBcd8b">`: the memory layout of a tensor; see `layouts.py`."""

    name = "dnnl.layout"
    layout: StringAttr

    @staticmethod
    def of(layout: str) -> LayoutAttr:
        """Returns the attribute for a layout string."""
        return LayoutAttr(StringAttr(layout))


@irdl_attr_definition
class EltwiseAttr(ParametrizedAttribute):
    """`#dnnl.eltwise<clip, 0.0, 6.0>`: a function of one element and its `alpha` and `beta`.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_eltwise.html
    """

    name = "dnnl.eltwise"
    algorithm: StringAttr
    alpha: FloatAttr
    beta: FloatAttr

    @staticmethod
    def of(algorithm: str, alpha: float = 0.0, beta: float = 0.0) -> EltwiseAttr:
        """Returns the attribute for an algorithm by its oneDNN name."""
        return EltwiseAttr(StringAttr(algorithm), FloatAttr(alpha, f64), FloatAttr(beta, f64))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            algorithm, values = parser.parse_identifier(), [0.0, 0.0]
            for position in range(2):
                if parser.parse_optional_punctuation(",") is None:
                    break
                values[position] = float(parser.parse_number())
        return [StringAttr(algorithm), *(FloatAttr(value, f64) for value in values)]

    def print_parameters(self, printer: Printer) -> None:
        alpha, beta = self.alpha.value.data, self.beta.value.data
        with printer.in_angle_brackets():
            printer.print_string(self.algorithm.data)
            if alpha or beta:
                printer.print_string(f", {alpha!r}, {beta!r}")

    def verify(self) -> None:
        check_name("eltwise algorithm", self.algorithm.data, constants.ELTWISE)


@irdl_attr_definition
class BinaryAttr(ParametrizedAttribute):
    """`#dnnl.binary<add>`: combines each element with the next post-op operand, which
    broadcasts.

    https://oneapi-src.github.io/oneDNN/v3.1/dev_guide_binary.html
    """

    name = "dnnl.binary"
    algorithm: StringAttr

    @staticmethod
    def of(algorithm: str) -> BinaryAttr:
        """Returns the attribute for an algorithm by its oneDNN name."""
        return BinaryAttr(StringAttr(algorithm))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return [StringAttr(parser.parse_identifier())]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.algorithm.data)

    def verify(self) -> None:
        check_name("binary algorithm", self.algorithm.data, BINARY)


@irdl_attr_definition
class SumAttr(ParametrizedAttribute):
    """`#dnnl.sum`: adds the next post-op operand, whose memory the result reuses.

    `#dnnl.sum<0.5>` adds half of it.
    """

    name = "dnnl.sum"
    factor: FloatAttr

    @staticmethod
    def of(factor: float = 1.0) -> SumAttr:
        """Returns the attribute for a factor of the addend."""
        return SumAttr(FloatAttr(factor, f64))

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        if parser.parse_optional_punctuation("<") is None:
            return [FloatAttr(1.0, f64)]
        factor = float(parser.parse_number())
        parser.parse_punctuation(">")
        return [FloatAttr(factor, f64)]

    def print_parameters(self, printer: Printer) -> None:
        if self.factor.value.data != 1.0:
            with printer.in_angle_brackets():
                printer.print_string(repr(self.factor.value.data))


def check_name(what: str, name: str, accepted: Collection[str]) -> None:
    """Refuses a name that is not accepted.

    Raises:
        VerifyException: the name is not accepted; the message lists the accepted names.
    """
    if name not in accepted:
        raise VerifyException(f"{what} is '{name}', accepted are {', '.join(accepted)}")
