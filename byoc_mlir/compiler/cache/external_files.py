"""Files of tensor data that belong to a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onnx import GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto

from byoc_mlir.frontend.files.tensor_check import external_entries
from byoc_mlir.frontend.graphs import subgraphs


def external_locations(model: ModelProto) -> set[str]:
    """Returns the locations of the model's external data, relative to its folder."""
    tensors = [
        *_graph_tensors(model.graph),
        *(tensor for function in model.functions for tensor in _node_tensors(function.node)),
    ]
    return {
        external_entries(tensor)["location"]
        for tensor in tensors
        if tensor.data_location == TensorProto.EXTERNAL
    }


def _graph_tensors(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    yield from _parts(graph.sparse_initializer)
    yield from _node_tensors(graph.node)


def _node_tensors(nodes: Iterable[NodeProto]) -> Iterator[TensorProto]:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            if attribute.HasField("sparse_tensor"):
                yield from _parts([attribute.sparse_tensor])
            yield from _parts(attribute.sparse_tensors)
        for graph in subgraphs(node):
            yield from _graph_tensors(graph)


def _parts(sparse: Iterable[SparseTensorProto]) -> Iterator[TensorProto]:
    for tensor in sparse:
        yield from (tensor.values, tensor.indices)
