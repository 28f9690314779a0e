"""What our ops are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto
from onnx.reference.op_run import OpRun

from byoc_mlir.eager.ops.errors import NotEagerError
from byoc_mlir.tensors import Array


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the first one.

    Raises:
        NotEagerError: there is no such axis.
    """
    if not -rank <= axis < rank:
        raise NotEagerError(f"axis {axis} of a tensor of rank {rank}")
    return axis % rank


class Op(OpRun):
    """An op of the default domain, called as its class's `_run` says.

    That of ONNX collects attributes at each call and looks at results: 10 µs, which is more than
    numpy takes for a small tensor.
    """

    op_domain = ""

    def __init__(self, onnx_node: NodeProto, run_params: dict[str, Any], schema: Any = None):
        super().__init__(onnx_node, run_params, schema)
        names: Any = self.attributes_names_
        self._attributes = {name: getattr(self, name) for name in names}

    def run(self, *operands: Array | None, **_: Any) -> tuple[Array, ...]:
        """The results; numpy's numbers become arrays."""
        return tuple(map(np.asarray, self._run(*operands, **self._attributes)))

    @property
    def opset(self) -> int:
        """The version of the default domain."""
        parameters: Any = self.run_params
        return int(parameters["opsets"][""])
