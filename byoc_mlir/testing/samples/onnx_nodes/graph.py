"""Builder of a graph, with the types that ONNX infers for its values."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping, Sequence
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
    helper,
    numpy_helper,
)
from onnx.defs import OpSchema

from byoc_mlir.frontend.schema import op_schema
from byoc_mlir.tensors import Array
from byoc_mlir.testing.samples.onnx_nodes.inference import inferred_types
from byoc_mlir.testing.samples.onnx_nodes.tensor import (
    DOMAINS,
    GraphInput,
    RejectedError,
    Tensor,
    allowed_dtypes,
    initializer_of,
    make_model,
)
from byoc_mlir.testing.samples.onnx_nodes.values import (
    MAX_ELEMENTS,
    Dtype,
    Shape,
    Style,
    random_array,
    random_shape,
)

_LARGEST = 8 * MAX_ELEMENTS
_PREFERRED = 0.6
_COMPUTED = 0.3
"""Probability with which integer parameters of ops are computed."""


@dataclass
class RandomGraph:
    """Builder of a graph; `values` are the values that a further node may read."""

    rng: Random
    opset: int
    style: Style = "plain"
    outer: RandomGraph | None = None
    """Graph around a subgraph."""
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    initializers: list[Tensor] = field(default_factory=list[Tensor])
    inputs: list[GraphInput] = field(default_factory=list[GraphInput])
    values: list[Tensor] = field(default_factory=list[Tensor])
    maps: list[onnx.ValueInfoProto] = field(default_factory=list[onnx.ValueInfoProto])
    """Outputs of the model that are maps, which no node can read."""
    counter: list[int] = field(default_factory=lambda: [0])
    domains: Mapping[str, int] = field(default_factory=lambda: DOMAINS)
    """Versions of other domains."""

    preferred: Dtype | None = None
    """Type that is often picked if an op accepts it."""

    @property
    def root(self) -> RandomGraph:
        return self if self.outer is None else self.outer.root

    def inner(self) -> RandomGraph:
        """Returns a builder for a subgraph, which can read the values of this graph."""
        seen = [value for value in self.values if value.shape is not None]
        return RandomGraph(
            self.rng,
            self.opset,
            self.style,
            self,
            values=seen,
            counter=self.counter,
            domains=self.domains,
        )

    @property
    def opsets(self) -> Mapping[str, int]:
        """Returns the versions of all domains."""
        return {**self.domains, "": self.opset}

    @contextmanager
    def attempt(self) -> Generator[None]:
        """Removes everything that was added inside if a `RejectedError` leaves the context."""
        marks = [(part, len(part)) for part in (*self._parts(), *self.root._parts())]
        try:
            yield
        except RejectedError:
            for part, length in marks:
                del part[length:]
            raise

    def _parts(self) -> tuple[list[Any], ...]:
        return self.nodes, self.initializers, self.inputs, self.values, self.maps

    def schema(self, op_type: str, domain: str = "") -> OpSchema:
        """Returns the schema of an op in the version of the graph's opset."""
        schema = op_schema(domain, op_type, self.opsets[domain])
        if schema is None or schema.deprecated:
            raise RejectedError(f"opset {self.opsets[domain]} has no {op_type}")
        return schema

    def dtypes(self, op_type: str, formal: int = 0, domain: str = "") -> list[Dtype]:
        """Returns the types that an input of an op may have."""
        return allowed_dtypes(self.schema(op_type, domain).inputs[formal])

    def pick_dtype(self, allowed: Iterable[Dtype]) -> Dtype:
        """Picks one of the types, with higher probability for types that networks use."""
        choices = list(allowed)
        if not choices:
            raise RejectedError("no type that numpy knows")
        preferred = self.preferred
        if preferred is not None and preferred in choices and self.rng.random() < _PREFERRED:
            return preferred
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
        """Returns a value of one of the types: an existing one, an input, or a constant.

        Without a `shape` its rank is between `least` and `most`. With `fresh`, the value is new.
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
        """Adds a constant: an initializer, or at times a `Constant` node."""
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
        """Adds a value that determines the op's shapes or positions: mostly a constant, else an
        input, or integers that the graph computes.
        """
        data, draw = np.asarray(array), self.rng.random()
        if draw < as_input:
            return self._input(data, None)
        if draw > 1 - _COMPUTED and data.dtype == np.int64 and self.outer is None:
            return self._computed(data)
        return self.constant(data)

    def _computed(self, integers: Array) -> Tensor:
        """Adds nodes that compute these integers in a form that the compiler cannot fold without
        knowing that `x < x` is false.
        """
        x = self.tensor(self.dtypes("Less"))
        [less] = self.emit("Less", [x, x])
        [ones] = self.emit("Cast", [less], to=TensorProto.INT64)
        [none] = self.emit("ReduceSum", [ones], keepdims=0)
        [sum_] = self.emit("Add", [self.constant(integers), none])
        return sum_

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
            inputs: its first inputs; `None` for an omitted one.
            outputs: how many outputs it is to have.
            domain: the op's domain.
            types: the outputs' types where ONNX does not infer them.
            named: values that opset versions take as attributes or as inputs, by the name in
            either;
                a value that this version does not have, or `None`, is omitted.

        Raises:
            RejectedError: the node is not valid.
        """
        schema = self.schema(op_type, domain)
        operands, attributes = self._resolve(schema, inputs, named)
        node = self._node(op_type, operands, outputs, domain)
        node.attribute.extend(attributes)
        known = {value.name: value for value in self.values}
        return self._added(node, types or inferred_types(node, schema, known, self.opsets))

    def emit_without_schema(
        self,
        op_type: str,
        inputs: Sequence[Tensor | None],
        types: Sequence[tuple[Dtype, Shape | None] | None],
        domain: str,
        **attributes: Any,
    ) -> list[Tensor]:
        """Adds a node of an op that ONNX does not know; attributes and outputs that are `None` are
        omitted.

        Raises:
            RejectedError: it makes too much.
        """
        node = self._node(op_type, list(map(_operand_name, inputs)), len(types), domain)
        given = {name: value for name, value in attributes.items() if value is not None}
        node.attribute.extend(helper.make_attribute(name, given[name]) for name in sorted(given))
        for place, type_ in enumerate(types):
            node.output[place] = node.output[place] if type_ else ""
        return self._added(node, types)

    def _node(self, op_type: str, operands: list[str], outputs: int, domain: str) -> NodeProto:
        names = [self._name("v") for _ in range(outputs)]
        return helper.make_node(op_type, operands, names, f"n{self.counter[0]}", domain=domain)

    def _added(
        self, node: NodeProto, types: Sequence[tuple[Dtype, Shape | None] | None]
    ) -> list[Tensor]:
        made = [
            Tensor(name, *type_) for name, type_ in zip(node.output, types, strict=True) if type_
        ]
        if any(value.shape and math.prod(value.shape) > _LARGEST for value in made):
            raise RejectedError(f"{node.op_type} makes too large a tensor")
        self.nodes.append(node)
        self.values.extend(made)
        return made

    def emit_sequence(
        self,
        op_type: str,
        inputs: Sequence[Tensor | str | None],
        domain: str = "",
        **named: Any,
    ) -> str:
        """Adds a node whose output is a sequence or an optional; returns the output's name."""
        operands, attributes = self._resolve(self.schema(op_type, domain), inputs, named)
        name = self._name("q")
        node = helper.make_node(op_type, operands, [name], f"n_{name}", domain=domain)
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

    def subgraph(
        self, name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor]
    ) -> onnx.GraphProto:
        """Returns the nodes as a graph, for an attribute."""
        return helper.make_graph(
            self.nodes,
            name,
            [value.value_info() for value in inputs],
            [value.value_info() for value in outputs],
            [initializer_of(value) for value in self.initializers],
        )

    def model(self) -> onnx.ModelProto:
        """Returns the model of the graph; its outputs are the values without users, and at times a
        value with users.
        """
        outputs = self._outputs()
        proto = helper.make_graph(
            self.nodes,
            "random",
            [entry.tensor.value_info() for entry in self.inputs],
            [*(output.value_info() for output in outputs), *self.maps],
            [initializer_of(value) for value in self.initializers],
        )
        return make_model(proto, self.opsets)

    def _outputs(self) -> list[Tensor]:
        made = {name for node in self.nodes if node.op_type != "Constant" for name in node.output}
        read = {name for node in self.nodes for name in node.input}
        values = [value for value in self.values if value.name in made]
        chosen = [v for v in values if v.name not in read or self.rng.random() < 0.1]
        if chosen and self.inputs and self.rng.random() < 0.02:
            chosen.append(self.inputs[0].tensor)
        return chosen

    @property
    def feeds(self) -> dict[str, Array]:
        """Returns the values of the model's inputs."""
        return {entry.tensor.name: entry.value for entry in self.inputs}


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


_WEIGHTS = {"float32": 14, "float64": 3, "float16": 2, "int64": 3, "int32": 2, "bool": 2}
