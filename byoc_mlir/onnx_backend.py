"""`onnx.backend.base.Backend` for the official test runner and tools built on it.

https://onnx.ai/onnx/api/backend.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from byoc_mlir.compiler import compile
from byoc_mlir.errors import ByocError
from byoc_mlir.frontend.files.load import MAX_OPSET
from byoc_mlir.runtime import Executable


class ByocBackendRep(BackendRep):
    """A compiled model with the interface of the official runner."""

    def __init__(self, executable: Executable):
        super().__init__()
        self.executable = executable

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs the model on arrays in the order of its inputs, or on a dictionary."""
        if not isinstance(inputs, Mapping | Sequence):
            inputs = [inputs]
        outputs = self.executable.run(inputs)
        return namedtupledict("Outputs", list(outputs))(*outputs.values())


class ByocBackend(Backend):
    """Runs ONNX models with `byoc_mlir`; `targets` and other options of `compile` pass through."""

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """True if the model compiles."""
        try:
            cls.prepare(model, device, **kwargs)
        except ByocError:
            return False
        return True

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> ByocBackendRep:
        """Compiles the model."""
        super().prepare(model, device, **kwargs)
        return ByocBackendRep(compile(model, **kwargs))

    @classmethod
    def run_model(cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> Any:
        """Compiles the model and runs it once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> Any:
        """Runs one node as a separate model, in the newest opset or `opset_version`."""
        arrays = [np.asarray(array) for array in inputs]
        graph = helper.make_graph(
            [node],
            "node",
            [
                helper.make_tensor_value_info(
                    name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
                )
                for name, array in zip(filter(None, node.input), arrays, strict=True)
            ],
            [helper.make_empty_tensor_value_info(name) for name in node.output if name],
        )
        opset = kwargs.pop("opset_version", MAX_OPSET)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, opset)])
        return cls.run_model(model, arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """True if the device is the CPU."""
        return device.partition(":")[0] == "CPU"


is_compatible = ByocBackend.is_compatible
prepare = ByocBackend.prepare
run_model = ByocBackend.run_model
run_node = ByocBackend.run_node
supports_device = ByocBackend.supports_device
