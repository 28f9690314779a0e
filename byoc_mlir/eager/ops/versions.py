"""The version of ONNX's op set that a node is of."""

from __future__ import annotations

from typing import Any

from onnx.reference.op_run import OpRun


def opset_of(op: OpRun) -> int:
    """The version of the default domain."""
    parameters: Any = op.run_params
    return int(parameters["opsets"][""])
