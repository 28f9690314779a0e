"""Evaluation of nodes by ONNX's reference evaluator; see `evaluate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import onnx

from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.base import RelayOp
from byoc_mlir.dialects.relay.evaluate.elementwise import element_dtype
from byoc_mlir.dialects.relay.onnx_node import OnnxNodeOp
from byoc_mlir.errors import CompilationError, ExecutionError
from byoc_mlir.tensors import Array

if TYPE_CHECKING:
    from onnx.reference import ReferenceEvaluator


def single_node_function(
    node: onnx.NodeProto, inputs: Sequence[str], opsets: Mapping[str, int]
) -> onnx.FunctionProto:
    """Returns an ONNX function that contains one node.

    Args:
        inputs: a name for every input that is not omitted.
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
    """Computes the outputs of a node that have names, from its inputs that are not omitted."""
    names = [f"i{index}" for index in range(len(arrays))]
    function = single_node_function(node, names, opsets)
    feeds = dict(zip(names, arrays, strict=True))
    with np.errstate(all="ignore"):
        return cast(Sequence[Any], evaluator_of(function).run(None, feeds, {}))


def evaluator_of(model: onnx.FunctionProto | onnx.ModelProto) -> ReferenceEvaluator:
    """Returns ONNX's evaluator of a model, with corrected ops on strings.

    The evaluator is imported here, on first use: few models need it, and the import takes 40 ms.

    Raises:
        ExecutionError: the evaluator does not know an op, or its attributes.
    """
    from onnx.reference import ReferenceEvaluator

    from byoc_mlir.dialects.relay.evaluate.string_ops import OPS

    try:
        return ReferenceEvaluator(model, new_ops=list(OPS))
    except Exception as error:  # it raises any exception
        raise ExecutionError(f"ONNX's evaluator cannot run a part of the model: {error}") from error


def _onnx_node(op: OnnxNodeOp, *operands: Array) -> Sequence[Array]:
    opsets = {op.domain.data: op.opset.value.data}
    try:
        results = [
            np.asarray(result).astype(element_dtype(value), casting="same_kind", copy=False)
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


FUNCTIONS: dict[type[RelayOp], Callable[..., Sequence[Array]]] = {OnnxNodeOp: _onnx_node}
