"""Base of all `relay` ops: construction from Python values, type inference, readable syntax."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self, TypeAlias, cast

from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    TensorType,
    f32,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, OpResult, SSAValue, SSAValues
from xdsl.irdl import (
    AttrConstraint,
    AttrSizedOperandSegments,
    BaseAttr,
    IRDLOperation,
    OptOperandDef,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.element_types import HALVES, numpy_dtype, ui8
from byoc_mlir.dialects.relay.properties import PyValue, check_properties, str_prop, to_attribute
from byoc_mlir.dialects.relay.shape import (
    DYNAMIC,
    ShapeAttr,
    SizeAttr,
    Tensor,
    agreeing,
    asked,
    asking,
    check_encoding,
    rank_of,
    shape_of,
    sizes_of,
    tensor_of,
    tensor_type,
    type_sizes,
)
from byoc_mlir.dialects.relay.symbols import facts_of, module_of
from byoc_mlir.dialects.relay.syntax import parse_properties, print_properties
from byoc_mlir.dims import Dim, Size
from byoc_mlir.errors import UndecidedSizeError
from byoc_mlir.limits import check_tensor, check_time

__all__ = [
    "DYNAMIC",
    "Tensor",
    "rank_of",
    "shape_of",
    "sizes_of",
    "str_prop",
    "tensor_of",
    "tensor_type",
    "type_sizes",
]

Ints: TypeAlias = DenseArrayBase[Any]
Operand: TypeAlias = SSAValue | Operation
Sizes: TypeAlias = Ints | ShapeAttr
OneSize: TypeAlias = IntegerAttr | SizeAttr


def relay_name(op: Operation) -> str:
    """Returns the op's name in Relay: `nn.conv2d` for `relay.nn.conv2d`."""
    return op.name.removeprefix("relay.")


def int_prop(default: int | None = None) -> IntegerAttr:
    """Defines an `i64` property, printed as `axis = 1`."""
    return prop_def(
        IntegerAttr.constr(i64), default_value=None if default is None else to_attribute(default)
    )


def ints_prop() -> Ints:
    """Defines an array of `i64` as property, printed as `strides = [1, 1]`."""
    return prop_def(DenseArrayBase.constr(i64))


def sizes_prop() -> Sizes:
    """Defines an array of sizes as property: `newshape = [2, 3]`, or `#relay.shape<[n, 3]>`."""
    return prop_def(DenseArrayBase.constr(i64) | BaseAttr(ShapeAttr))


def size_prop(default: int | None = None) -> OneSize:
    """Defines a size as property: `k = 3`, or `k = #relay.size<n>`."""
    return prop_def(
        IntegerAttr.constr(i64) | BaseAttr(SizeAttr),
        default_value=None if default is None else to_attribute(default),
    )


def float_prop(default: float | None = None) -> FloatAttr:
    """Defines an `f64` property, printed as `epsilon = 1e-05`."""
    return prop_def(
        FloatAttr.constr(f64), default_value=None if default is None else to_attribute(default)
    )


def bool_prop(default: bool | None = None) -> BoolAttr:
    """Defines an `i1` property, printed as `ceil_mode = true`."""
    constraint = cast(AttrConstraint[BoolAttr], IntegerAttr.constr(i1))
    return prop_def(constraint, default_value=None if default is None else to_attribute(default))


def out_dtype_prop() -> Attribute | None:
    """Defines the element type of a matmul's result as property; by default the operands' type."""
    return opt_prop_def(Attribute)


def product_element(op: RelayOp, operands: Attribute, out_dtype: Attribute | None) -> Attribute:
    """Returns the element type of a matmul's result.

    Raises:
        VerifyException: operands of this type cannot have that result.
    """
    if out_dtype is None:
        return operands
    if out_dtype != f32 or operands not in HALVES:
        raise VerifyException(
            f"{op.name}: out_dtype is {out_dtype} for operands of {operands}; accepted is f32 for"
            " f16 and bf16"
        )
    return out_dtype


def ints(attribute: Sizes) -> tuple[int, ...]:
    """Returns an array property as Python integers.

    Raises:
        UndecidedSizeError: a size is symbolic.
    """
    if isinstance(attribute, ShapeAttr):
        raise UndecidedSizeError(
            f"{attribute} is symbolic, where numbers are needed; specialise-dims makes it numbers"
        )
    return tuple(attribute.get_values())


def size_list(attribute: Sizes) -> tuple[Size, ...]:
    """Returns the sizes of an array property, numbers and `Dim`s."""
    return attribute.data if isinstance(attribute, ShapeAttr) else ints(attribute)


def one_size(attribute: OneSize) -> Size:
    """Returns the size in a property."""
    return attribute.data if isinstance(attribute, SizeAttr) else attribute.value.data


def check_not_negative(sizes: Sequence[Size]) -> None:
    """Refuses the shape of a result with a negative size.

    Raises:
        VerifyException: a size is negative.
    """
    if any(isinstance(size, int) and size < 0 for size in sizes):
        raise VerifyException(f"a result of shape {list(sizes)}, sizes must be 0 and more")


def check_tensor_type(type_: Tensor, what: str) -> None:
    """Refuses a tensor that is too large, if its shape is known.

    Raises:
        LimitExceededError: the tensor is too large.
    """
    if type_.has_static_shape() and not _says_a_size(type_):
        check_tensor(type_.get_shape(), numpy_dtype(type_.element_type).itemsize, what)


def _says_a_size(type_: Tensor) -> bool:
    """True if the type is `0 x n` bytes: such a tensor passes the number `n` to a segment
    (`tensors.size_input`).
    """
    sizes = type_sizes(type_)
    return len(sizes) == 2 and sizes[0] == 0 and type_.element_type == ui8


def check_addressed(op: RelayOp, sizes: Sequence[Size], places: Sequence[Size]) -> None:
    """Checks that the dimensions that an op indexes have elements, if there are indices.

    Args:
        places: the shape of the indices.

    Raises:
        VerifyException: one of `sizes` is 0, and `places` is not empty.
    """
    if 0 in sizes and not any(isinstance(size, Dim) or size == 0 for size in places):
        raise VerifyException(
            f"{op.name}: computed indices in dimensions without elements (sizes {list(sizes)}); no"
            " index is valid there"
        )


def normalize_axis(axis: int, rank: int, what: str = "axis") -> int:
    """Returns `axis` counted from the front.

    Raises:
        VerifyException: `axis` is outside of `[-rank, rank - 1]`.
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

    IS_FOLDED: ClassVar[bool] = True
    """True if an op on constants may be folded at compile time."""

    def __init__(
        self,
        *operands: Operand | Sequence[Operand],
        result_types: Sequence[Attribute] | None = None,
        **properties: PyValue,
    ):
        """Builds the op; result types are inferred unless given, `None` properties are omitted.

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
        definition = self.get_irdl_definition()
        absent = [kind for _, kind in definition.operands[len(groups) :]]
        if len(groups) > len(definition.operands) or not all(
            isinstance(kind, OptOperandDef) for kind in absent
        ):
            names = ", ".join(name for name, _ in definition.operands)
            raise VerifyException(f"{self.name} has the operands {names}; found {len(groups)}")
        groups += [[] for _ in absent]
        if any(isinstance(option, AttrSizedOperandSegments) for option in definition.options):
            sizes = [len(group) for group in groups]
            attributes["operandSegmentSizes"] = DenseArrayBase.from_list(i64, sizes)
        Operation.__init__(
            self,
            operands=[value for group in groups for value in group],
            result_types=result_types or (),
            properties=attributes,
        )
        check_properties(self)
        if result_types is None:
            self.results = SSAValues(
                OpResult(type_, self, index) for index, type_ in enumerate(self._checked_types())
            )

    def _checked_types(self) -> Sequence[Attribute]:
        """Returns the inferred types, after checking that they are not too large."""
        check_time()
        types = self.infer_types()
        for type_ in types:
            if isinstance(type_, TensorType):
                check_tensor_type(cast(Tensor, type_), f"a result of {self.name}")
        return types

    @abstractmethod
    def infer_types(self) -> Sequence[Attribute]:
        """Returns the result types, inferred from the operands' types and the properties.

        Raises:
            VerifyException: operands and properties do not fit together.
        """

    def verify_(self) -> None:
        types = [cast(Tensor, t) for t in (*self.operand_types, *self.result_types) if _is_named(t)]
        if not types:
            return self._check_results()
        module = module_of(self)
        facts = asked() if module is None else facts_of(module)
        for type_ in types:
            check_encoding(type_, facts.ranges)
        try:
            with asking(facts):
                self._check_results()
        except UndecidedSizeError as error:
            raise VerifyException(f"{self.name}: {error}") from error

    def _check_results(self) -> None:
        check_properties(self)
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
        dictionary = parse_properties(parser)
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
        print_properties(printer, {**self._explicit_properties(), **self.attributes})
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)

    def _explicit_properties(self) -> dict[str, Attribute]:
        definitions = self.get_irdl_definition().properties
        return {
            name: value
            for name, value in self.properties.items()
            if name not in definitions or definitions[name].default_value != value
        }


class OneResultOp(RelayOp, ABC):
    """Op with one result, `output`."""

    output = result_def(TensorType)


class DataOp(OneResultOp, ABC):
    """Op on one tensor, `data -> output`."""

    data = operand_def(TensorType)


class AlongAxisOp(RelayOp, ABC):
    """Op with an `axis` of its first operand."""

    axis = int_prop(0)

    @property
    def positive_axis(self) -> int:
        """Returns `axis`, counted from the front."""
        rank = rank_of(self.operands[0])
        return normalize_axis(self.axis.value.data, rank, f"{self.name}: axis")


def _compatible(expected: Attribute, found: Attribute) -> bool:
    if not (isinstance(expected, TensorType) and isinstance(found, TensorType)):
        return expected == found
    expected, found = cast(Tensor, expected), cast(Tensor, found)
    return expected.element_type == found.element_type and agreeing(
        type_sizes(expected), type_sizes(found)
    )


def _is_named(type_: Attribute) -> bool:
    return isinstance(type_, TensorType) and isinstance(cast(Tensor, type_).encoding, ShapeAttr)
