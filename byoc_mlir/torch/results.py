"""Results of a captured module: tensors that a program computes, and views that PyTorch takes.

A compiled program returns new tensors in C order. PyTorch returns views of arguments, of parameters
and of other results, complex numbers, and other strides. So the program computes the tensors below
the views, in the order of their memory, and PyTorch takes the views.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from byoc_mlir.errors import UnsupportedModelError
from byoc_mlir.torch.places import node_problem
from byoc_mlir.torch.tensors import pytorch


@dataclass(frozen=True)
class Results:
    """Results of a captured module.

    Attributes:
        parameters: parameters, buffers and constants, as the program takes them.
        views: a function of these, the arguments and the computed tensors, which returns the
            results; `None` if they are the computed tensors.
        needs_program: false if all results are views of arguments and parameters.
    """

    parameters: Sequence[Any] = ()
    views: Any = None
    needs_program: bool = True

    def of(self, arguments: Sequence[Any], computed: Sequence[Any]) -> Sequence[Any]:
        """Returns the results, without their structure."""
        if self.views is None:
            return computed
        return self.views(*self.parameters, *arguments, *computed)


def split_results(program: Any, eager: Sequence[Any]) -> Results:
    """Changes a program so that it returns the tensors to compute, and returns how the results
    follow from them.

    Args:
        program: a functional `ExportedProgram`, whose outputs are changed.
        eager: values of its outputs that have the strides of PyTorch.

    Raises:
        UnsupportedModelError: a result has a layout that no program writes.
    """
    outputs = list(program.graph.output_node().args[0])
    nodes = [one for one in outputs if _is_node(one)]
    bases = [_base(node) for node in nodes if _is_tensor(node)]
    computed = list(dict.fromkeys(one for one in bases if one.op != "placeholder"))
    layouts = {one: one.meta["val"] for one in computed}
    for node, value in zip(outputs, eager, strict=True):
        if node in layouts:
            layouts[node] = value
        elif _is_node(node) and _is_tensor(node):
            _check_strides(node, value)
    if computed == outputs and all(map(_is_plain, layouts.values())):
        return Results()
    views = _views(program, outputs, layouts)
    _leave(program, [_in_memory_order(program.graph, *one) for one in layouts.items()] or nodes[:1])
    return Results(list(_parameters(program)), views, bool(computed))


def _base(node: Any) -> Any:
    """Returns the node of an argument, or of a computed tensor, that a node is a view of."""
    while (source := _source(node)) is not None:
        node = source
    return node


def _source(node: Any) -> Any:
    """Returns the node whose memory a view shares; `None` if the node is no view."""
    of = node.args[0] if node.target is operator.getitem else node
    memory = _memory(node) if _is_tensor(node) else None
    return next(
        (one for one in of.all_input_nodes if _is_tensor(one) and _memory(one) == memory), None
    )


def _memory(node: Any) -> int:
    return node.meta["val"].untyped_storage()._cdata


def _is_node(value: Any) -> bool:
    return isinstance(value, pytorch("torch.fx").Node)


def _is_tensor(node: Any) -> bool:
    """True if a node is a tensor that has memory."""
    torch, value = pytorch(), node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.layout == torch.strided


def _check_strides(view: Any, value: Any) -> None:
    found, wanted = (_layout(one)[1] for one in (view.meta["val"], value))
    if found != wanted:
        raise _refused(view, f"its strides in PyTorch are {wanted}, not {found}")


def _views(program: Any, outputs: Sequence[Any], layouts: dict[Any, Any]) -> Any:
    """Returns the function of parameters, arguments and computed tensors that takes the views."""
    fx = pytorch("torch.fx")
    graph = fx.Graph()
    copies = {
        one: graph.placeholder(one.name) for one in program.graph.nodes if one.op == "placeholder"
    }
    names = {node: graph.placeholder(f"{node.name}_computed") for node in layouts}
    copies |= {node: _as_in_pytorch(graph, names[node], value) for node, value in layouts.items()}
    graph.output(tuple(_copied(graph, one, copies) for one in outputs))
    return fx.GraphModule({}, graph).forward


def _copied(graph: Any, node: Any, copies: dict[Any, Any]) -> Any:
    """Returns the copy of an output in the graph of views, with all that it needs."""
    if not _is_node(node) or node in copies:
        return copies.get(node, node) if _is_node(node) else node
    if isinstance(node.meta.get("val"), pytorch().Tensor) and _source(node) is None:
        raise _refused(node, "a result depends on it that is no dense tensor, or a view")
    for one in node.all_input_nodes:
        _copied(graph, one, copies)
    copies[node] = graph.node_copy(node, copies.__getitem__)
    return copies[node]


def _as_in_pytorch(graph: Any, computed: Any, value: Any) -> Any:
    """Returns the node of a computed tensor with PyTorch's type, shape and strides."""
    aten = pytorch().ops.aten
    if value.is_complex():
        computed = graph.call_function(aten.view_as_complex.default, (computed,))
    if _has_plain_strides(value):
        return computed
    if not _is_dynamic(value):
        sizes = (list(value.shape), list(value.stride()))
        return graph.call_function(aten.as_strided.default, (computed, *sizes))
    order = _order(value)
    back = [order.index(axis) for axis in range(len(order))]
    return graph.call_function(aten.permute.default, (computed, back))


def _in_memory_order(graph: Any, node: Any, value: Any) -> Any:
    """Returns a node of real numbers whose axes are in the order of PyTorch's memory."""
    aten, order = pytorch().ops.aten, _order(value)
    if not _is_dense(value, order):
        raise _refused(node, f"its strides in PyTorch, {value.stride()}, leave gaps in memory")
    with graph.inserting_before(graph.output_node()):
        if value.is_complex():
            if node.meta["val"].is_conj():
                node = _inserted(graph, aten.resolve_conj.default, node)
            node = _inserted(graph, aten.view_as_real.default, node)
            order = [*order, len(order)]
        if order == sorted(order):
            return node
        return _inserted(graph, aten.permute.default, node, order)


def _inserted(graph: Any, target: Any, node: Any, *arguments: Any) -> Any:
    inserted = graph.call_function(target, (node, *arguments))
    inserted.meta = {**node.meta, "val": target(node.meta["val"], *arguments)}
    return inserted


def _leave(program: Any, nodes: Sequence[Any]) -> None:
    """Changes the outputs of a program to these nodes, in the places of its first ones."""
    signature, specs = pytorch("torch.export.graph_signature"), program.graph_signature.output_specs
    for spec in specs:
        spec.arg = signature.ConstantArgument(name="", value=None)
    for spec, node in zip(specs, nodes, strict=False):
        spec.arg = signature.TensorArgument(name=node.name)
    program.graph.output_node().args = ((*nodes, *[None] * (len(specs) - len(nodes))),)
    program.graph_module.recompile()


def _parameters(program: Any) -> Iterator[Any]:
    """Yields the inputs of a program before its arguments."""
    for spec in program.graph_signature.input_specs:
        if spec.kind.name != "USER_INPUT":
            known = program.state_dict if spec.target in program.state_dict else program.constants
            yield known[spec.target]


def _is_plain(value: Any) -> bool:
    """True if a program writes a tensor with PyTorch's layout."""
    return not value.is_complex() and _has_plain_strides(value)


def _has_plain_strides(value: Any) -> bool:
    shape, strides = _layout(value)
    sizes = [max(size, 1) for size in shape[:0:-1]]
    return strides == list(accumulate(sizes, operator.mul, initial=1))[::-1][: len(shape)]


def _is_dense(value: Any, order: Sequence[int]) -> bool:
    """True if a tensor's elements fill its memory, along axes in this order."""
    shape, strides = _layout(value)
    expected = 1
    for axis in reversed(order):
        if shape[axis] != 1 and strides[axis] != expected:
            return 0 in shape
        expected *= shape[axis]
    return True


def _order(value: Any) -> list[int]:
    """Returns the axes of a tensor in the order of its memory."""
    shape, strides = _layout(value)
    axes = [axis for axis in range(len(shape)) if shape[axis] != 1]
    ordered = iter(sorted(axes, key=lambda axis: -strides[axis]))
    return [axis if shape[axis] == 1 else next(ordered) for axis in range(len(shape))]


def _is_dynamic(value: Any) -> bool:
    return any(not isinstance(one, int) for one in (*value.shape, *value.stride()))


def _layout(value: Any) -> tuple[list[int], list[int]]:
    """Returns shape and strides as they are in the example, or for sizes that depend on values."""
    shape, strides = list(value.shape), list(value.stride())
    sizes = [one.node for one in (*shape, *strides) if not isinstance(one, int)]
    depends = any(one.hint is None for one in sizes)

    def number(size: Any) -> int:
        if isinstance(size, int):
            return size
        names = size.node.expr.free_symbols if depends else ()
        return int(size.node.expr.xreplace(dict.fromkeys(names, 97))) if names else size.node.hint

    return [number(one) for one in shape], [number(one) for one in strides]


def _refused(node: Any, reason: str) -> UnsupportedModelError:
    return UnsupportedModelError([node_problem(node, reason)])
