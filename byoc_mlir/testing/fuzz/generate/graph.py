"""A graph as it grows, node by node, with the types that ONNX infers for its values."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import onnx
from onnx import (
    AttributeProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
    shape_inference,
)
from onnx.defs import OpSchema

from byoc_mlir.frontend.schema import op_schema
from byoc_mlir.testing.fuzz.case import Array
from byoc_mlir.testing.fuzz.values import (
    MAX_ELEMENTS,
    Dtype,
    Shape,
    Style,
    random_array,
    random_shape,
)

IR_VERSION = 10
_DOMAINS = {"ai.onnx.ml": 5, "ai.onnx.preview.training": 1}
"""The opset versions of other domains than the default one."""

_LARGEST = 8 * MAX_ELEMENTS


class RejectedError(Exception):
    """The node that was to be added is not valid; the graph is as it was."""


@dataclass(frozen=True)
class Tensor:
    """A value of the graph."""

    name: str
    dtype: Dtype
    shape: Shape | None
    """`None` where it is known at run time only."""
    data: Array | None = None
    """Of a constant."""

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def sizes(self) -> Shape:
        """The shape, which must be known."""
        if self.shape is None:
            raise RejectedError(f"the shape of {self.name} is not known")
        return self.shape

    def value_info(self) -> ValueInfoProto:
        element_type = helper.np_dtype_to_tensor_dtype(self.dtype)
        return helper.make_tensor_value_info(self.name, element_type, self.shape)


@dataclass(frozen=True)
class GraphInput:
    """An input of the model and what it is fed with."""

    tensor: Tensor
    value: Array
    style: Style | None
    """`None` where the op that reads it needs this very value."""


@dataclass
class GraphBuilder:
    """The nodes so far; `values` are what a further node may read."""

    rng: Random
    opset: int
    style: Style = "plain"
    outer: GraphBuilder | None = None
    """Of a subgraph: the graph around it."""
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    initializers: list[Tensor] = field(default_factory=list[Tensor])
    inputs: list[GraphInput] = field(default_factory=list[GraphInput])
    values: list[Tensor] = field(default_factory=list[Tensor])
    counter: list[int] = field(default_factory=lambda: [0])

    @property
    def root(self) -> GraphBuilder:
        return self if self.outer is None else self.outer.root

    def inner(self) -> GraphBuilder:
        """A subgraph, which sees what is here."""
        seen = [value for value in self.values if value.shape is not None]
        return GraphBuilder(
            self.rng, self.opset, self.style, self, values=seen, counter=self.counter
        )

    @contextmanager
    def attempt(self) -> Generator[None]:
        """Whatever is added inside is taken back when an exception leaves."""
        marks = [(part, len(part)) for part in (*self._parts(), *self.root._parts())]
        try:
            yield
        except RejectedError:
            for part, length in marks:
                del part[length:]
            raise

    def _parts(self) -> tuple[list[Any], ...]:
        return self.nodes, self.initializers, self.inputs, self.values

    def schema(self, op_type: str, domain: str = "") -> OpSchema:
        """The op in the version that the graph's opset has."""
        schema = op_schema(domain, op_type, _DOMAINS.get(domain, self.opset))
        if schema is None or schema.deprecated:
            raise RejectedError(f"opset {self.opset} has no {op_type}")
        return schema

    def dtypes(self, op_type: str, formal: int = 0, domain: str = "") -> list[Dtype]:
        """What an input of an op may be."""
        return allowed_dtypes(self.schema(op_type, domain).inputs[formal])

    def pick_dtype(self, allowed: Iterable[Dtype]) -> Dtype:
        """One of the types, more often one that networks use."""
        choices = list(allowed)
        if not choices:
            raise RejectedError("no type that numpy knows")
        weights = [_WEIGHTS.get(dtype.name, 1) for dtype in choices]
        return self.rng.choices(choices, weights)[0]

    def tensor(
        self,
        allowed: Iterable[Dtype] | Dtype,
        shape: Shape | None = None,
        *,
        least: int = 0,
        most: int = 6,
        style: Style | None = None,
        fresh: bool = False,
    ) -> Tensor:
        """A value of one of the types: one that is there, an input, or a constant.

        Without a `shape` its rank is between `least` and `most`. `fresh` asks for a new one.
        """
        choices = [allowed] if isinstance(allowed, np.dtype) else list(allowed)
        there = [
            value
            for value in self.values
            if value.dtype in choices
            and value.shape is not None
            and (least <= len(value.shape) <= most if shape is None else value.shape == shape)
        ]
        if there and not fresh and style is None and self.rng.random() < 0.75:
            return self.rng.choice(there[-4:] if self.rng.random() < 0.7 else there)
        dtype = self.pick_dtype(choices)
        sizes = random_shape(self.rng, least, most) if shape is None else shape
        array = random_array(self.rng, dtype, sizes, style or self.style)
        if self.rng.random() < 0.25:
            return self.constant(array)
        return self._input(array, style or self.style)

    def constant(self, array: Any) -> Tensor:
        """A constant: an initializer, now and then a `Constant` node."""
        data = np.asarray(array)
        tensor = Tensor(self._name("c"), data.dtype, data.shape, data)
        if self.rng.random() < 0.2:
            value = numpy_helper.from_array(data)
            self.nodes.append(helper.make_node("Constant", [], [tensor.name], value=value))
        else:
            self.initializers.append(tensor)
        self.values.append(tensor)
        return tensor

    def parameter(self, array: Any, as_input: float = 0.08) -> Tensor:
        """A value that the op which reads it depends on: mostly a constant, else an input."""
        data = np.asarray(array)
        if self.rng.random() < as_input:
            return self._input(data, None)
        return self.constant(data)

    def _input(self, array: Array, style: Style | None) -> Tensor:
        tensor = Tensor(self._name("x"), array.dtype, array.shape)
        self.root.inputs.append(GraphInput(tensor, array, style))
        if self.outer is not None:
            self.root.values.append(tensor)
        self.values.append(tensor)
        return tensor

    def _name(self, prefix: str) -> str:
        self.counter[0] += 1
        return f"{prefix}{self.counter[0]}"

    def emit(
        self,
        op_type: str,
        inputs: Sequence[Tensor | str | None] = (),
        outputs: int = 1,
        domain: str = "",
        types: Sequence[tuple[Dtype, Shape | None]] | None = None,
        **named: Any,
    ) -> list[Tensor]:
        """Adds a node.

        Args:
            op_type: the op.
            inputs: its first inputs; `None` where one is left out.
            outputs: how many outputs it is to have.
            domain: the op's domain.
            types: the outputs' types where ONNX does not infer them.
            named: what opset versions give as an attribute or as an input, by its name in either;
                what this version does not have, or is `None`, is left out.

        Raises:
            RejectedError: the node is not valid.
        """
        schema = self.schema(op_type, domain)
        operands, attributes = self._resolve(schema, inputs, named)
        names = [self._name("v") for _ in range(outputs)]
        node = helper.make_node(op_type, operands, names, f"n{self.counter[0]}", domain=domain)
        node.attribute.extend(attributes)
        found = types or self._infer(node, schema)
        made = [
            Tensor(name, dtype, shape) for name, (dtype, shape) in zip(names, found, strict=True)
        ]
        if any(value.shape and math.prod(value.shape) > _LARGEST for value in made):
            raise RejectedError(f"{op_type} makes too large a tensor")
        self.nodes.append(node)
        self.values.extend(made)
        return made

    def emit_sequence(
        self, op_type: str, inputs: Sequence[Tensor | str | None], **named: Any
    ) -> str:
        """Adds a node whose output is a sequence or an optional; its name."""
        operands, attributes = self._resolve(self.schema(op_type), inputs, named)
        name = self._name("q")
        node = helper.make_node(op_type, operands, [name], f"n_{name}")
        node.attribute.extend(attributes)
        self.nodes.append(node)
        return name

    def _resolve(
        self, schema: OpSchema, inputs: Sequence[Tensor | str | None], named: dict[str, Any]
    ) -> tuple[list[str], list[AttributeProto]]:
        operands = [_operand_name(value) for value in inputs]
        formals = {formal.name.lower(): index for index, formal in enumerate(schema.inputs)}
        attributes: list[AttributeProto] = []
        declared: Any = schema.attributes  # onnx's type stubs do not know the values of its enum
        for name, value in named.items():
            if value is None:
                continue
            if name in declared:
                kind = int(declared[name].type.value)
                attributes.append(_attribute(name, value, kind))
            elif name.lower() in formals:
                position = formals[name.lower()]
                operands += [""] * (position + 1 - len(operands))
                given = value if isinstance(value, Tensor) else self.parameter(_integers(value))
                operands[position] = given.name
        return operands, attributes

    def _infer(self, node: NodeProto, schema: OpSchema) -> list[tuple[Dtype, Shape | None]]:
        known = {value.name: value for value in self.values}
        read = {name for name in (*node.input, *_captured(node)) if name in known}
        values = [known[name] for name in sorted(read)]
        graph = helper.make_graph(
            [node],
            "one",
            [value.value_info() for value in values],
            [onnx.ValueInfoProto(name=name) for name in node.output],
            [
                numpy_helper.from_array(value.data, value.name)
                for value in values
                if value.data is not None
            ],
        )
        model = make_model(graph, self.opset)
        try:
            inferred = shape_inference.infer_shapes(model, True, True, True)
        except Exception as error:  # a RuntimeError or one of onnx's, by version
            raise RejectedError(str(error)) from error
        dtypes = {name: known[name].dtype for name in read}
        return [
            _output_type(info, index, node, schema, dtypes)
            for index, info in enumerate(inferred.graph.output)
        ]

    def subgraph(
        self, name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor]
    ) -> onnx.GraphProto:
        """The nodes as a graph, for an attribute."""
        return helper.make_graph(
            self.nodes,
            name,
            [value.value_info() for value in inputs],
            [value.value_info() for value in outputs],
            [initializer_of(value) for value in self.initializers],
        )


def make_model(graph: onnx.GraphProto, opset: int) -> onnx.ModelProto:
    """A model that imports every domain that the fuzzer knows."""
    used = {node.domain for node in graph.node} | {""}
    imports = [helper.make_opsetid(name, _DOMAINS.get(name, opset)) for name in sorted(used)]
    return helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)


def initializer_of(value: Tensor) -> TensorProto:
    assert value.data is not None
    return numpy_helper.from_array(value.data, value.name)


def allowed_dtypes(formal: OpSchema.FormalParameter) -> list[Dtype]:
    """The types of a formal input or output that the fuzzer makes tensors of."""
    return [_DTYPES[name] for name in sorted(formal.types) if name in _DTYPES]


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
    if dtype not in _DTYPES.values():
        raise RejectedError(f"an output of type {dtype}")
    dims = tensor.shape.dim
    if not tensor.HasField("shape") or not all(dim.HasField("dim_value") for dim in dims):
        return dtype, None
    shape = tuple(dim.dim_value for dim in dims)
    if min(shape, default=0) < 0:
        raise RejectedError(f"an output of shape {shape}")
    return dtype, shape


def _bound_dtype(index: int, node: NodeProto, schema: OpSchema, dtypes: dict[str, Dtype]) -> Dtype:
    """The type of an output for which ONNX has no inference, from the schema's variables."""
    output = schema.outputs[min(index, len(schema.outputs) - 1)]
    for position, name in enumerate(node.input):
        formal = schema.inputs[min(position, len(schema.inputs) - 1)]
        if formal.type_str == output.type_str and name in dtypes:
            return dtypes[name]
    if output.type_str in _DTYPES:
        return _DTYPES[output.type_str]
    raise RejectedError(f"the type of an output of {node.op_type} is not known")


def _captured(node: NodeProto) -> Iterator[str]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            for inner in attribute.g.node:
                yield from inner.input
                yield from _captured(inner)
            yield from (output.name for output in attribute.g.output)


def _operand_name(value: Tensor | str | None) -> str:
    return value.name if isinstance(value, Tensor) else value or ""


def _integers(value: Any) -> Array:
    array = np.asarray(value)
    return array.astype(np.int64) if isinstance(value, list | tuple) and array.size == 0 else array


def _attribute(name: str, value: Any, kind: int) -> AttributeProto:
    plain = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    try:
        return helper.make_attribute(name, plain, attr_type=kind)
    except (TypeError, ValueError) as error:
        raise RejectedError(f"{name}: {error}") from error


_DTYPES: dict[str, Dtype] = {
    f"tensor({name})": helper.tensor_dtype_to_np_dtype(getattr(TensorProto, name.upper()))
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float", "double", "bfloat16"),
    )
}
"""ONNX's names of types to numpy's."""

DTYPES: tuple[Dtype, ...] = tuple(_DTYPES.values())

_WEIGHTS = {"float32": 14, "float64": 3, "float16": 2, "int64": 3, "int32": 2, "bool": 2}
