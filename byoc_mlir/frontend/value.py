"""ONNX values during import: content that is known, or a result of the IR."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr, TensorType
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.dialects.relay.base import Tensor, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype, relay_type

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class NodeRefused(Exception):  # noqa: N818 - it is an answer, not an error
    """A node that cannot be imported; the message is the reason, for the user to read."""


class ValueNeeded(NodeRefused):
    """A node that can be imported once the values of some inputs of the model are known."""

    def __init__(self, reason: str, inputs: frozenset[str]):
        super().__init__(reason)
        self.inputs = inputs


class Value:
    """One ONNX value: `constant` holds its content if that is known, else `ssa` is its value.

    Constants enter the IR when an op first uses them, so what is folded away leaves no trace.
    `location` is the folded node that a constant comes from, `inputs` the inputs of the model that
    the value is computed from.
    """

    def __init__(
        self,
        name: str,
        content: Array | SSAValue,
        location: LocationAttr = UNKNOWN_LOC,
        inputs: frozenset[str] = frozenset(),
    ):
        self.name = name
        self.location = location
        self.inputs = inputs
        self.constant = None if isinstance(content, SSAValue) else content
        self.ssa = content if isinstance(content, SSAValue) else None

    @property
    def type(self) -> Tensor:
        """The tensor type, element type and shape."""
        if self.ssa is not None:
            return tensor_type(self.ssa)
        assert self.constant is not None
        return TensorType(relay_type(self.constant.dtype), self.constant.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape; all dimensions are known during import."""
        return self.type.get_shape() if self.constant is None else self.constant.shape

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def element_type(self) -> Attribute:
        """The type of the elements."""
        return self.type.element_type

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype of the elements."""
        return numpy_dtype(self.element_type) if self.constant is None else self.constant.dtype
