"""ONNX values during import: known content, or a result in the IR."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
import onnx
from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import Tensor, tensor_type, type_sizes
from byoc_mlir.dialects.relay.element_types import numpy_dtype, relay_type
from byoc_mlir.dialects.relay.shape import is_symbolic
from byoc_mlir.dims import Size
from byoc_mlir.frontend.sizes import Content, SizeTensor
from byoc_mlir.locks import cached_property
from byoc_mlir.tensors import Array, transposed


class NodeRefused(Exception):  # noqa: N818 - it is an answer, not an error
    """Refusal of a node that cannot be imported; the message is the reason, for the user."""


class ValueNeeded(NodeRefused):
    """Refusal of a node that can be imported once the values of some model inputs are known."""

    def __init__(self, reason: str, inputs: frozenset[str]):
        super().__init__(reason)
        self.inputs = inputs


class Value:
    """ONNX value: `constant` holds its content if that is known, else `ssa` is its value in the
    IR.

    `computed` holds content that consists of sizes, some of them symbolic. A value that a loop's
    body computes from the iteration number also has a `formula`. A constant is added to the IR when
    an op first uses it, so that folded constants leave no ops. `location` is the folded node that
    computed a constant; `inputs` are the model inputs on which the value depends.
    A sequence has no content.
    """

    def __init__(
        self,
        name: str,
        content: Content | SSAValue | None,
        location: LocationAttr = UNKNOWN_LOC,
        inputs: frozenset[str] = frozenset(),
        formula: Content | None = None,
    ):
        self.name = name
        self.formula = formula
        self.location = location
        self.inputs = inputs
        self.constant: Array | None = content if isinstance(content, np.ndarray) else None
        self.computed: SizeTensor | None = content if isinstance(content, SizeTensor) else None
        self.ssa: SSAValue | None = content if isinstance(content, SSAValue) else None

    @property
    def full_type(self) -> Tensor:
        """Returns the tensor type: element type and sizes, which may be symbolic."""
        if self.ssa is not None:
            return tensor_type(self.ssa)
        if self.computed is not None:
            return TensorType(relay_type(self.computed.dtype), self.computed.items.shape)
        assert self.constant is not None
        if self.constant.dtype == object:
            raise NodeRefused(f"'{self.name}' is a tensor of strings")
        return TensorType(relay_type(self.constant.dtype), self.constant.shape)

    @property
    def type(self) -> Tensor:
        """Returns the tensor type if all sizes are known.

        Raises:
            ValueNeeded: a size is symbolic.
        """
        _ = self.shape
        return self.full_type

    @property
    def shape(self) -> tuple[int, ...]:
        """Returns the shape if all sizes are known.

        Raises:
            ValueNeeded: a size is symbolic; use `sizes` if the op can be imported with symbols.
        """
        sizes = self.sizes
        if is_symbolic(sizes):
            reason = f"it needs numbers for the sizes of '{self.name}', which are {list(sizes)}"
            raise ValueNeeded(reason, frozenset())
        return cast("tuple[int, ...]", sizes)

    @property
    def sizes(self) -> tuple[Size, ...]:
        """Returns the sizes of the dimensions: numbers, and `Dim`s if they depend on inputs."""
        return type_sizes(self.full_type) if self.constant is None else self.constant.shape

    def number(self, axis: int) -> int:
        """Returns the size of a dimension that must be known.

        Raises:
            ValueNeeded: the size is symbolic.
        """
        size = self.sizes[axis]
        return size if isinstance(size, int) else self.shape[axis]

    @property
    def rank(self) -> int:
        """Returns the number of dimensions."""
        return len(self.sizes)

    @property
    def known(self) -> Content | None:
        """Returns the content if it is constant or follows from shapes, or `None`."""
        return self.constant if self.computed is None else self.computed

    @property
    def expressed(self) -> Content | None:
        """Returns the formula if there is one, else the known content, or `None`."""
        return self.known if self.formula is None else self.formula

    @property
    def element_type(self) -> Attribute:
        """Returns the type of the elements."""
        return self.full_type.element_type

    @property
    def dtype(self) -> np.dtype[Any]:
        """Returns the numpy dtype of the elements."""
        return numpy_dtype(self.element_type) if self.constant is None else self.constant.dtype

    @cached_property
    def transposed(self) -> Value:
        """Returns a constant matrix, transposed; all nodes share one copy."""
        assert self.constant is not None
        return Value(self.name, transposed(self.constant), self.location)

    def renamed(self, name: str, inputs: frozenset[str]) -> Value:
        """Returns a value with the same content under another ONNX name, which depends on
        `inputs`.
        """
        content = self.known if self.ssa is None else self.ssa
        assert content is not None
        known = frozenset[str]() if self.constant is not None else inputs
        return Value(name, content, self.location, known, self.formula)


def dtype_of(element_type: int) -> np.dtype[Any]:
    """Returns the dtype for a number in ONNX's list of element types.

    Raises:
        VerifyException: the list has no such number.
    """
    if element_type not in onnx.TensorProto.DataType.values() or not element_type:
        raise VerifyException(f"{element_type} is no type of elements in ONNX")
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(element_type))


class SequenceValue(Value):
    """ONNX sequence, whose length is known; the items are constants or computed values."""

    def __init__(self, name: str, items: Iterable[Value], inputs: frozenset[str] = frozenset()):
        super().__init__(name, None, inputs=inputs)
        self.items = tuple(items)

    @property
    def full_type(self) -> Tensor:
        raise NodeRefused(f"'{self.name}' is a sequence of {len(self.items)}, not a tensor")

    def renamed(self, name: str, inputs: frozenset[str]) -> Value:
        return SequenceValue(name, self.items, inputs)


class AbsentValue(SequenceValue):
    """ONNX optional without an element."""

    def __init__(self, name: str):
        super().__init__(name, ())

    @property
    def full_type(self) -> Tensor:
        raise NodeRefused(f"'{self.name}' is an optional without an element")

    def renamed(self, name: str, inputs: frozenset[str]) -> Value:
        return AbsentValue(name)
