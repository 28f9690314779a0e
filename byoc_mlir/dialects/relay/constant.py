"""Constants: small ones inline, large ones as a handle to bytes outside the IR."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from itertools import count
from mmap import mmap
from typing import Any, Self, cast
from weakref import WeakValueDictionary

import numpy as np
from xdsl.dialects.builtin import BytesAttr, DenseIntOrFPElementsAttr
from xdsl.ir import Attribute, Data, SSAValue
from xdsl.irdl import irdl_attr_definition, irdl_op_definition, prop_def, traits_def
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import ConstantLike
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import OneResultOp, Tensor, tensor_of
from byoc_mlir.dialects.relay.element_types import numpy_dtype, relay_type
from byoc_mlir.errors import MissingWeightsError
from byoc_mlir.tensors import Array, aligned

INLINE_ELEMENTS = 16
"""Maximum number of elements of a constant that is written into the IR, for readability."""


_ARRAYS: WeakValueDictionary[str, Array] = WeakValueDictionary()
"""Arrays behind all handles, by digest."""

_DERIVED: WeakValueDictionary[Hashable, Array] = WeakValueDictionary()
"""Arrays derived from others, by derivation and sources."""

_DIGESTS: dict[int, str] = {}
"""Digests of arrays, by the identity of the array."""

_BORROWED: dict[int, str] = {}
"""Prefixes that make digests of borrowed arrays unique, by the identity of the array."""

_borrowed_so_far = count()


@dataclass(frozen=True)
class Weight:
    """Handle to a constant's bytes: a readable name, the hash of the content, and the content.

    Two handles are equal if name and digest are equal, whether or not the content is loaded.
    """

    name: str
    digest: str
    array: Array | None = field(default=None, compare=False, repr=False)

    @property
    def data(self) -> Array:
        """Returns the array.

        Raises:
            MissingWeightsError: the module was read without the store that holds it.
        """
        if self.array is None:
            raise MissingWeightsError(
                f"the bytes of weight '{self.name}' ({self.digest}) are not loaded; keep the"
                " .safetensors file next to the .mlir file, under the same name, and load that"
            )
        return self.array

    @staticmethod
    def of(name: str, array: Array) -> Weight:
        """Returns the handle for `array`, which must not be changed afterwards.

        Arrays of equal content share one array, as long as any handle lives; an array is hashed
        once. A borrowed array is equal only to itself. An array mapped from a file, which others
        may change, is not used for other models.
        """
        array = np.asarray(array, order="C")
        known = _DIGESTS.get(id(array))
        if known is None:
            owner = _owner(array)
            digest = content_digest(array, owner)
            if not owner:
                share = _ARRAYS.get if _is_mapped(array) else _ARRAYS.setdefault
                array = share(digest, array)
            known = _DIGESTS[id(array)] = digest
            weakref.finalize(array, _DIGESTS.pop, id(array), None).atexit = False
        return Weight(name, known, array)


def borrow(array: Array) -> None:
    """Declares that the caller owns an array's memory and may change it later.

    Handles for it, and for its views, differ from handles for equal content. So derived arrays are
    not shared with other owners.
    """
    if id(array) not in _BORROWED:
        _BORROWED[id(array)] = f"borrowed {next(_borrowed_so_far)} "
        weakref.finalize(array, _BORROWED.pop, id(array), None).atexit = False


def is_borrowed(array: Array) -> bool:
    """True if the caller owns an array's memory."""
    return bool(_owner(array))


def _owner(array: Array) -> str:
    return _BORROWED.get(id(array)) or _BORROWED.get(id(array.base)) or ""


def _is_mapped(array: Array) -> bool:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = cast(Any, base).base
    return isinstance(base, memoryview) and isinstance(base.obj, mmap)


def held_bytes() -> int:
    """Returns the total size of the arrays behind handles that any IR or program still uses."""
    arrays = [reference() for reference in _ARRAYS.valuerefs()]  # other threads add some meanwhile
    return sum(array.nbytes for array in arrays if array is not None)


def derived_array(how: Hashable, sources: Sequence[Array], make: Callable[[], Array]) -> Array:
    """Returns the result of `make`, computed from `sources`, and caches it as long as it is in use.

    So a model that is compiled for another shape shares derived weights, mostly weights packed for
    kernels. The result is aligned to a cache line.

    Args:
        how: key that distinguishes `make` from other functions of the same arrays.
        sources: arrays that must not change afterwards; the result must not change either.
    """
    key = (how, *(Weight.of("source", source).digest for source in sources))
    known = _DERIVED.get(key)
    if known is None:
        known = _DERIVED[key] = Weight.of("derived", aligned(make())).data
    return known


def content_digest(array: Array, owner: str = "") -> str:
    """Returns the key of an array in a store: SHA-256 over dtype, shape and bytes, 32 hex digits.

    Args:
        owner: key of the array's owner; equal arrays of different owners have different digests.
    """
    # types that numpy does not know itself are all alike to `str`
    kind = array.dtype.name if array.dtype.kind == "V" else array.dtype.str
    digest = hashlib.sha256(f"{owner}{kind}{array.shape}".encode())
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()[:32]


@irdl_attr_definition
class WeightAttr(Data[Weight]):
    """Attribute `#relay.weight<"fc1.weight", "0f3c…">`, without the bytes; see `Weight`."""

    name = "relay.weight"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Weight:
        with parser.in_angle_brackets():
            name = parser.parse_str_literal()
            parser.parse_punctuation(",")
            return Weight(name, parser.parse_str_literal())

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string_literal(self.data.name)
            printer.print_string(", ")
            printer.print_string_literal(self.data.digest)


@irdl_op_definition
class ConstantOp(OneResultOp):
    """Constant tensor.

    ```mlir
    %w = relay.constant #relay.weight<"fc1.weight", "0f3c…"> : tensor<64x128xf32>
    %two = relay.constant dense<2.0> : tensor<f32>
    ```
    """

    name = "relay.constant"
    value = prop_def(WeightAttr | DenseIntOrFPElementsAttr)
    traits = traits_def(ConstantLike())

    @classmethod
    def of(cls, name: str, array: Array) -> ConstantOp:
        """Returns a constant that holds `array`, inline if small, else by handle; makes `array`
        read-only.
        """
        type_ = tensor_of(relay_type(array.dtype), array.shape)
        if array.size <= INLINE_ELEMENTS and _can_be_inline(array):
            return cls.inline(array, type_)
        return cls(value=WeightAttr(Weight.of(name, array)), result_types=[type_])

    @classmethod
    def inline(cls, array: Array, type_: Tensor) -> ConstantOp:
        """Returns a constant whose values are written into the IR."""
        data = np.ascontiguousarray(array).tobytes()
        value = DenseIntOrFPElementsAttr(cast(Any, type_), BytesAttr(data))
        return cls(value=value, result_types=[type_])

    def erase_if_unused(self) -> None:
        """Removes a constant without users, and frees its content.

        The op object is in a reference cycle, so it lives until the next garbage collection.
        """
        if self.parent is not None and self.output.first_use is None:
            self.parent.erase_op(self)
            self.properties.clear()

    @property
    def type(self) -> Tensor:
        """Returns the type of the constant, shape and element type."""
        return self.output.type

    @property
    def array(self) -> Array:
        """Returns the values as a read-only numpy array.

        Raises:
            MissingWeightsError: the module was read without the store that holds them.
        """
        if isinstance(self.value, WeightAttr):
            return self.value.data.data
        return _inline_array(self.value, self.type)

    @property
    def is_borrowed(self) -> bool:
        """True if the constant's array is loaded, and the caller owns its memory."""
        array = self.weight.array if isinstance(self.value, WeightAttr) else None
        return array is not None and is_borrowed(array)

    @property
    def weight(self) -> Weight:
        """Returns the handle of the constant's content; for an inline constant, a new one."""
        if isinstance(self.value, WeightAttr):
            return self.value.data
        return Weight.of("inline", self.array)

    def infer_types(self) -> Sequence[Attribute]:
        if isinstance(self.value, DenseIntOrFPElementsAttr):
            return (self.value.get_type(),)
        return (self.output.type,)

    def verify_(self) -> None:
        super().verify_()
        if not self.type.has_static_shape():
            raise VerifyException(f"{self.name}: a constant has a static shape, found {self.type}")
        if isinstance(self.value, WeightAttr) and self.value.data.array is not None:
            array = self.value.data.array
            if array.shape != self.type.get_shape() or array.dtype != numpy_dtype(
                self.type.element_type
            ):
                raise VerifyException(
                    f"{self.name}: weight '{self.value.data.name}' is {array.dtype}"
                    f"{list(array.shape)}, the constant is {self.type}"
                )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        value = parser.parse_attribute()
        if isinstance(value, DenseIntOrFPElementsAttr):
            return cls.create(properties={"value": value}, result_types=[value.get_type()])
        parser.parse_punctuation(":")
        return cls.create(properties={"value": value}, result_types=[parser.parse_type()])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.value)
        if isinstance(self.value, WeightAttr):
            printer.print_string(" : ")
            printer.print_attribute(self.output.type)


def _can_be_inline(array: Array) -> bool:
    if array.size == 0 or array.dtype.kind not in "iuf":
        return False
    if array.dtype.kind != "f":
        return True
    # xDSL 0.74 takes a list of 0.0 and -0.0 for one repeated value
    mixes_zeros = array.size > 1 and bool((np.signbit(array) & (array == 0)).any())
    return not mixes_zeros and all(_is_printed_in_decimal(value) for value in array.reshape(-1))


def _is_printed_in_decimal(value: np.floating[Any]) -> bool:
    # in a dense list xDSL 0.74 prints other numbers as hex, and reads that back as an integer
    if not np.isfinite(value):
        return False
    digits = {4: 9, 8: 17}.get(value.dtype.itemsize)
    if digits is None:
        return True
    is_short = value.dtype.type(f"{value:.5e}") == value
    return bool(is_short) or "." in f"{value:.{digits}g}"


def _inline_array(value: DenseIntOrFPElementsAttr, type_: Tensor) -> Array:
    flat = np.frombuffer(value.data.data, dtype=numpy_dtype(type_.element_type))
    return (
        np.broadcast_to(flat.reshape(()), type_.get_shape())
        if flat.size == 1
        else flat.reshape(type_.get_shape())
    )


def widened(constant: ConstantOp) -> ConstantOp:
    """Returns a constant of 16-bit floats as `f32`, with the same name and location."""
    array = constant.array
    content = derived_array("widened", [array], lambda: array.astype(np.float32))
    wide = ConstantOp.of(constant.weight.name, content)
    wide.location = constant.location
    return wide


def known_array(value: SSAValue) -> Array | None:
    """Returns the array of a constant, or `None` for a computed value."""
    return value.owner.array if isinstance(value.owner, ConstantOp) else None
