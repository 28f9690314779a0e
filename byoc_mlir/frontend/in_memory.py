"""Models whose large tensors are arrays of this process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx

from byoc_mlir.frontend.value import Array


@dataclass(frozen=True)
class ModelInMemory:
    """An ONNX model beside its large tensors, which are read where they are, not copied.

    Programs of such a model are not put into the cache.
    """

    proto: onnx.ModelProto
    """Tensors with external data name it by `location` alone."""
    arrays: Mapping[str, Array]
    """By location: C-contiguous, of the tensor's type and shape. They live as long as what is
    compiled from the model, and must not be changed while it is used. Those that belong to somebody
    else are declared so by `relay.constant.borrow`."""
