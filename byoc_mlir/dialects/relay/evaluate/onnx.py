"""Nodes computed by the ONNX reference evaluator; see `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, cast

import numpy as np
import onnx
from xdsl.ir import SSAValue

from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.base import RelayOp, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.onnx_node import OnnxNodeOp
from byoc_mlir.errors import CompilationError
from byoc_mlir.tensors import Array


def single_node_function(
    node: onnx.NodeProto, inputs: Sequence[str], opsets: Mapping[str, int]
) -> onnx.FunctionProto:
    """A function of one node.

    Args:
        inputs: a name for every input that is not left out.
    """
    renamed = onnx.NodeProto()
    renamed.CopyFrom(node)
    names = iter(inputs)
    del renamed.input[:]
    renamed.input.extend(next(names) if old else "" for old in node.input)
    outputs = [name for name in node.output if name]
    versions = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return onnx.helper.make_function("byoc", "node", inputs, outputs, [renamed], versions)


def reference_outputs(
    node: onnx.NodeProto, arrays: Sequence[Array], opsets: Mapping[str, int]
) -> Sequence[Any]:
    """The outputs of a node that are not left out, for the inputs that are not."""
    from onnx.reference import ReferenceEvaluator  # few models need it; 40 ms

    names = [f"i{index}" for index in range(len(arrays))]
    function = single_node_function(node, names, opsets)
    feeds = dict(zip(names, arrays, strict=True))
    with np.errstate(all="ignore"):
        evaluator = ReferenceEvaluator(function, new_ops=[*evaluated_otherwise()])
        return cast(Sequence[Any], evaluator.run(None, feeds, {}))


@cache
def evaluated_otherwise() -> Sequence[Any]:
    """Returns the ops that onnx's evaluator computes otherwise than the standard says."""
    from onnx.reference.op_run import OpRun

    class RegexFullMatch(OpRun):
        """Matching in linear time, as the standard's RE2 does; Python's `re` tries all ways."""

        op_domain = ""

        def __init__(self, node: onnx.NodeProto, run_params: dict[str, Any], schema: Any = None):
            super().__init__(node, run_params, schema)
            import re2  # few models need it

            options = re2.Options()
            options.log_errors = False
            self._matches = re2.compile(cast(Any, self).pattern, options).fullmatch

        def _run(self, texts: Array, pattern: str | None = None) -> tuple[Array]:
            found = [self._matches(text) is not None for text in texts.reshape(-1).tolist()]
            return (np.array(found, np.bool_).reshape(texts.shape),)

    return [RegexFullMatch]


def _onnx_node(op: OnnxNodeOp, *operands: Array) -> Sequence[Array]:
    opsets = {op.domain.data: op.opset.value.data}
    try:
        results = [
            np.asarray(result).astype(_dtype(value), casting="same_kind", copy=False)
            for result, value in zip(
                reference_outputs(op.proto, operands, opsets), op.results, strict=True
            )
        ]
    except Exception as error:  # it checks no operands, and meets them with any of Python's errors
        raise CompilationError(
            f"node {', '.join(node_names(op))} ({op.op_type.data}): onnx's reference evaluator"
            f" cannot compute it: {error}"
        ) from error
    return results


def _dtype(value: SSAValue) -> np.dtype[Any]:
    return numpy_dtype(tensor_type(value).element_type)


ONNX_NODE: dict[type[RelayOp], Callable[..., Sequence[Array]]] = {OnnxNodeOp: _onnx_node}
