"""Backend of `torch.compile`: graphs that PyTorch has traced, compiled for inference."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from byoc_mlir.boundary import boundary
from byoc_mlir.errors import ByocError, InvalidInputError
from byoc_mlir.torch.capture import capture
from byoc_mlir.torch.module import CompiledModule, check_options, compile_program
from byoc_mlir.torch.tensors import array_of, pytorch

_MOST_PROGRAMS = 16
"""Maximum number of programs of one graph, which may be called with the parameters of several
modules, and with many sizes.
"""


def dynamo_backend(
    graph: Any,
    examples: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Returns the compiled graph for `torch.compile(module, backend="byoc_mlir")`.

    A graph that requires gradients, or that cannot be compiled, runs in PyTorch, with a warning
    that gives the reason. Graphs are compiled at their first call: while PyTorch traces a module,
    it would trace the capture, too.

    Args:
        graph: a `torch.fx.GraphModule`.
        examples: its inputs, among them the parameters of modules and sizes.
        mode: of PyTorch's own backend, without meaning here.
        options: of `byoc_mlir.compile`, and `copy_parameters` of `from_torch`.
    """
    return CompiledGraph(graph, examples, dict(options or {}))


@dataclass(frozen=True)
class _Input:
    """Input of a graph."""

    name: str
    kind: str
    """Kind of the input: `tensor`, `parameter`, `size` (of a tensor), or `value` (a number that is
    compiled in).
    """
    dynamic: tuple[int, ...] = ()
    """Dimensions of a tensor that change from call to call."""
    source: tuple[int, int] = (0, 0)
    """Source of a size: the position of a tensor among the inputs, and its dimension."""


@dataclass(frozen=True)
class _Program:
    """Compiled program of a graph."""

    module: CompiledModule
    arguments: Sequence[Any]
    """Arguments for which the program was compiled, held so that no other tensor reuses a
    parameter's memory.
    """


class CompiledGraph:
    """Graph with a program for each set of parameters, and of sizes if the compiler must know them.

    Args:
        graph: a `torch.fx.GraphModule`.
        examples: its inputs.
        options: of `dynamo_backend`.
    """

    def __init__(self, graph: Any, examples: Sequence[Any], options: Mapping[str, Any]):
        self._graph, self._options = graph, options
        self._inputs = list(_inputs(graph, examples))
        self._tensors = self._positions("tensor")
        self._parameters, self._values = self._positions("parameter"), self._positions("value")
        self._is_dynamic = any(one.dynamic for one in self._inputs)
        self._sized: list[int] = []
        """Positions of the tensors whose shapes the compiler must know."""
        self._programs: dict[tuple[Any, ...], _Program] = {}
        self._runs_in_pytorch = False

    @property
    def programs(self) -> int:
        """Returns the number of programs."""
        return len(self._programs)

    def __call__(self, *arguments: Any) -> Any:
        if self._runs_in_pytorch:
            return self._graph(*arguments)
        try:
            module = self._program(arguments)
        except ByocError as error:
            return self._give_up(str(error), arguments)
        with boundary("run"):
            return module.run_leaves([arguments[position] for position in self._tensors])

    def _give_up(self, reason: str, arguments: Sequence[Any]) -> Any:
        warnings.warn(f"a graph runs in PyTorch: {reason}", stacklevel=3)
        self._runs_in_pytorch = True
        return self._graph(*arguments)

    def _positions(self, kind: str) -> list[int]:
        """Returns the positions of the inputs of a kind."""
        return [position for position, one in enumerate(self._inputs) if one.kind == kind]

    def _program(self, arguments: Sequence[Any]) -> CompiledModule:
        key = self._key(arguments)
        known = self._programs.get(key)
        if known is not None and known.module.changed_parameter() is None:
            return known.module
        _check_gradients(arguments)
        module = self._compiled(arguments)
        if len(self._programs) >= _MOST_PROGRAMS:
            self._programs.pop(next(iter(self._programs)))
        self._programs[self._key(arguments)] = _Program(module, arguments)
        return module

    def _key(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Returns the key of a program: the parameters, values and shapes for which it is valid."""
        parameters = [arguments[position].data_ptr() for position in self._parameters]
        values = [arguments[position] for position in self._values]
        shapes = [tuple(arguments[position].shape) for position in self._sized]
        return (*parameters, *values, *shapes)

    def _compiled(self, arguments: Sequence[Any]) -> CompiledModule:
        with boundary("torch.compile"):
            check_options(self._options)
            module = _frozen(self._graph, self._inputs, arguments)
            tensors = [arguments[position] for position in self._tensors]
            for tensor in tensors:
                array_of(tensor, "an argument")  # one that is none runs in PyTorch
            if self._is_dynamic:
                try:
                    return self._captured(module, tensors, self._dynamic_shapes())
                except ByocError:
                    self._is_dynamic = False  # some size must be known
                    self._sized = [at for at, one in enumerate(self._inputs) if one.dynamic]
            return self._captured(module, tensors, None)

    def _captured(self, module: Any, tensors: Sequence[Any], shapes: Any) -> CompiledModule:
        return compile_program(*capture(module, tensors, {}, shapes), self._options)

    def _dynamic_shapes(self) -> Any:
        dynamic = pytorch("torch.export").Dim.DYNAMIC
        tensors = [one for one in self._inputs if one.kind == "tensor"]
        return {"tensors": tuple(dict.fromkeys(one.dynamic, dynamic) for one in tensors)}


def _check_gradients(arguments: Sequence[Any]) -> None:
    torch = pytorch()
    tensors = [one for one in arguments if isinstance(one, torch.Tensor)]
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise InvalidInputError("gradients are wanted; for inference, call it in torch.no_grad()")


def _inputs(graph: Any, examples: Sequence[Any]) -> Iterator[_Input]:
    torch = pytorch()
    nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
    known = [node.meta.get("example_value") for node in nodes]
    dynamic = [_dynamic_dimensions(torch, value) for value in known]
    sources: dict[str, tuple[int, int]] = {}
    for position, dimensions in enumerate(dynamic):
        for dimension in dimensions:
            sources.setdefault(str(known[position].shape[dimension]), (position, dimension))
    for node, value, example, dimensions in zip(nodes, known, examples, dynamic, strict=True):
        if isinstance(example, torch.nn.Parameter) or hasattr(example, "_dynamo_static_input_type"):
            yield _Input(node.name, "parameter")
        elif isinstance(example, torch.Tensor):
            yield _Input(node.name, "tensor", dimensions)
        elif str(value) in sources:
            yield _Input(node.name, "size", source=sources[str(value)])
        else:
            yield _Input(node.name, "value")


def _dynamic_dimensions(torch: Any, value: Any) -> tuple[int, ...]:
    if not isinstance(value, torch.Tensor):
        return ()
    return tuple(at for at, size in enumerate(value.shape) if isinstance(size, torch.SymInt))


def _frozen(graph: Any, inputs: Sequence[_Input], arguments: Sequence[Any]) -> Any:
    """Returns the graph as a module that takes its tensors, with the given parameters as
    buffers."""
    torch = pytorch()

    class Frozen(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.graph = graph
            for one, argument in zip(inputs, arguments, strict=True):
                if one.kind == "parameter":
                    self.register_buffer(one.name, argument.detach())

        def forward(self, *tensors: Any) -> Any:
            left = iter(tensors)
            given = {
                one.name: next(left) if one.kind == "tensor" else argument
                for one, argument in zip(inputs, arguments, strict=True)
            }
            for one in inputs:
                if one.kind == "parameter":
                    given[one.name] = getattr(self, one.name)
                if one.kind == "size":
                    position, dimension = one.source
                    given[one.name] = given[inputs[position].name].shape[dimension]
            return self.graph(*given.values())

    return Frozen()
