"""Types of the outputs of one node, inferred by ONNX."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import NodeProto, ValueInfoProto, helper, shape_inference
from onnx.defs import OpSchema

from byoc_mlir.frontend.order import read_names
from byoc_mlir.testing.samples.onnx_nodes.tensor import (
    TENSOR_TYPES,
    RejectedError,
    Tensor,
    initializer_of,
    make_model,
)
from byoc_mlir.testing.samples.onnx_nodes.values import Dtype, Shape


def inferred_types(
    node: NodeProto, schema: OpSchema, known: Mapping[str, Tensor], opsets: Mapping[str, int]
) -> list[tuple[Dtype, Shape | None]]:
    """Returns the types of a node's outputs.

    Raises:
        RejectedError: the node is not valid, or its outputs are not known tensors.
    """
    read = {name for name in read_names(node) if name in known}
    values = [known[name] for name in sorted(read)]
    graph = helper.make_graph(
        [node],
        "one",
        [value.value_info() for value in values],
        [onnx.ValueInfoProto(name=name) for name in node.output],
        [initializer_of(value) for value in values if value.data is not None],
    )
    model = make_model(graph, opsets)
    try:
        inferred = shape_inference.infer_shapes(model, True, True, True)
    except Exception as error:  # a RuntimeError or one of onnx's, by version
        raise RejectedError(str(error)) from error
    dtypes = {name: known[name].dtype for name in read}
    return [
        _output_type(info, index, node, schema, dtypes)
        for index, info in enumerate(inferred.graph.output)
    ]


def _output_type(
    info: ValueInfoProto,
    index: int,
    node: NodeProto,
    schema: OpSchema,
    dtypes: dict[str, Dtype],
) -> tuple[Dtype, Shape | None]:
    tensor = info.type.tensor_type
    if not tensor.elem_type:
        return _bound_dtype(index, node, schema, dtypes), None
    dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
    if dtype not in TENSOR_TYPES.values():
        raise RejectedError(f"an output of type {dtype}")
    dims = tensor.shape.dim
    if not tensor.HasField("shape") or not all(dim.HasField("dim_value") for dim in dims):
        return dtype, None
    shape = tuple(dim.dim_value for dim in dims)
    if min(shape, default=0) < 0:
        raise RejectedError(f"an output of shape {shape}")
    return dtype, shape


def _bound_dtype(index: int, node: NodeProto, schema: OpSchema, dtypes: dict[str, Dtype]) -> Dtype:
    """Returns the type of an output from the schema's type variables, if ONNX has no inference for
    it.
    """
    output = schema.outputs[min(index, len(schema.outputs) - 1)]
    for position, name in enumerate(node.input):
        formal = schema.inputs[min(position, len(schema.inputs) - 1)]
        if formal.type_str == output.type_str and name in dtypes:
            return dtypes[name]
    if output.type_str in TENSOR_TYPES:
        return TENSOR_TYPES[output.type_str]
    raise RejectedError(f"the type of an output of {node.op_type} is not known")
