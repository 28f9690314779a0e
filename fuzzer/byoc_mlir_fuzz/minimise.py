"""Reduction of a failing case: fewer nodes, attributes, inputs, smaller sizes, plain values."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias, cast

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from byoc_mlir.frontend.inferred import inferred_graph
from byoc_mlir_fuzz.case import Array, Case, Feeds
from byoc_mlir_fuzz.graphs import remove_unneeded

Fails: TypeAlias = Callable[[Case], bool]
Reduction: TypeAlias = Callable[[Case, ModelProto], Iterator[Case]]


def minimised(case: Case, fails: Fails, seconds: float) -> Case:
    """Returns the smallest case found in the given time that still fails."""
    deadline = time.monotonic() + seconds
    if case.form == "mlir":
        return _first_failing(case, _fewer_lines, fails, deadline)
    try:
        ModelProto.FromString(case.model)
    except DecodeError:
        return case
    case = _one_run(case, fails)
    for reduction in _REDUCTIONS:
        case = _first_failing(
            case, lambda c, r=reduction: r(c, ModelProto.FromString(c.model)), fails, deadline
        )
    return case


def _first_failing(
    case: Case, candidates: Callable[[Case], Iterator[Case]], fails: Fails, deadline: float
) -> Case:
    """Replaces the case by the first candidate that still fails, and repeats until none does."""
    improved = True
    while improved and time.monotonic() < deadline:
        improved = False
        for candidate in candidates(case):
            if time.monotonic() > deadline:
                break
            if fails(candidate):
                case, improved = candidate, True
                break
    return case


def _one_run(case: Case, fails: Fails) -> Case:
    if len(case.feeds) < 2:
        return case
    alone = (replace(case, feeds=(feeds,)) for feeds in case.feeds)
    return next((candidate for candidate in alone if fails(candidate)), case)


def _fewer_lines(case: Case) -> Iterator[Case]:
    lines = case.model.splitlines(keepends=True)
    for at in range(len(lines)):
        yield replace(case, model=b"".join(lines[:at] + lines[at + 1 :]))


def _earlier_output(case: Case, model: ModelProto) -> Iterator[Case]:
    """Yields cases with one output only, the earliest first."""
    names = [name for node in model.graph.node for name in node.output if name]
    if [output.name for output in model.graph.output] == names[:1]:
        return
    infos = {info.name: info for info in (*model.graph.output, *_inferred(model))}
    now = [output.name for output in model.graph.output]
    for name in names:
        if name in infos and [name] != now:
            yield _rebuilt(case, model, outputs=[infos[name]])
        if [name] == now:
            return


def _later_input(case: Case, model: ModelProto) -> Iterator[Case]:
    """Yields cases with a node's outputs as inputs, with the values of the reference evaluator."""
    if len(case.feeds) != 1:
        return
    values = _all_values(model, case.feeds[0])
    outputs = {output.name for output in model.graph.output}
    for node in reversed(model.graph.node):
        known = {name: values[name] for name in node.output if name in values}
        if outputs & set(node.output) or len(known) != len(node.output):
            continue
        copy = _copy(model)
        copy.graph.node.remove(node)
        for name, value in known.items():
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            copy.graph.input.append(helper.make_tensor_value_info(name, kind, value.shape))
        yield _rebuilt(case, copy, feeds={**case.feeds[0], **known})


def _fewer_attributes(case: Case, model: ModelProto) -> Iterator[Case]:
    for at, node in enumerate(model.graph.node):
        for position in range(len(node.attribute)):
            copy = _copy(model)
            del copy.graph.node[at].attribute[position]
            yield _rebuilt(case, copy)


def _fewer_operands(case: Case, model: ModelProto) -> Iterator[Case]:
    for at, node in enumerate(model.graph.node):
        if len(node.input) > 1:
            copy = _copy(model)
            del copy.graph.node[at].input[-1]
            yield _rebuilt(case, copy)


def _smaller_sizes(case: Case, model: ModelProto) -> Iterator[Case]:
    """Yields cases with one size reduced wherever it occurs."""
    if len(case.feeds) != 1:
        return
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    arrays = {**tensors, **case.feeds[0]}
    sizes = sorted({size for array in arrays.values() for size in array.shape if size > 1})
    for size in reversed(sizes):
        for smaller in sorted({1, size // 2, size - 1}):
            cut = {name: _cut(array, size, smaller) for name, array in arrays.items()}
            yield _with_arrays(case, model, cut)


def _cut(array: Array, size: int, smaller: int) -> Array:
    parts = tuple(slice(smaller if s == size else s) for s in array.shape)
    return np.ascontiguousarray(array[parts]).reshape(
        [smaller if s == size else s for s in array.shape]
    )


def _plainer_numbers(case: Case, model: ModelProto) -> Iterator[Case]:
    if len(case.feeds) != 1:
        return
    for name, array in case.feeds[0].items():
        if array.dtype == object:
            continue
        for value in (0, 1):
            plain = np.full_like(array, value)
            if np.array_equal(array, plain):
                break  # ones where zeros do not fail, and never back from one to the other
            yield replace(case, feeds=({**case.feeds[0], name: plain},))


_REDUCTIONS: tuple[Reduction, ...] = (
    _earlier_output,
    _later_input,
    _fewer_attributes,
    _fewer_operands,
    _smaller_sizes,
    _plainer_numbers,
)


def _with_arrays(case: Case, model: ModelProto, arrays: dict[str, Array]) -> Case:
    copy = _copy(model)
    for tensor in copy.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(arrays[tensor.name], tensor.name))
    for value in copy.graph.input:
        if value.name in arrays:
            kind = value.type.tensor_type.elem_type
            shape = arrays[value.name].shape
            value.CopyFrom(helper.make_tensor_value_info(value.name, kind, shape))
    for value in copy.graph.output:
        value.type.tensor_type.ClearField("shape")
    return _rebuilt(case, copy, feeds={name: arrays[name] for name in case.feeds[0]})


def _rebuilt(
    case: Case,
    model: ModelProto,
    outputs: list[onnx.ValueInfoProto] | None = None,
    feeds: Feeds | None = None,
) -> Case:
    """Returns the case with another model, without nodes and inputs that its outputs do not
    need."""
    copy = _copy(model)
    if outputs is not None:
        del copy.graph.output[:]
        copy.graph.output.extend(outputs)
    needed = remove_unneeded(copy)
    runs = case.feeds if feeds is None else (feeds,)
    kept = tuple({name: run[name] for name in run if name in needed} for run in runs)
    return replace(case, model=copy.SerializeToString(deterministic=True), feeds=kept)


def _copy(model: ModelProto) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(model)
    return copy


def _inferred(model: ModelProto) -> list[onnx.ValueInfoProto]:
    try:
        graph = inferred_graph(model) or model.graph
    except Exception:  # a damaged model; then there are none
        return []
    return [info for info in graph.value_info if info.type.HasField("tensor_type")]


def _all_values(model: ModelProto, feeds: Feeds) -> dict[str, Array]:
    try:
        with np.errstate(all="ignore"):
            evaluator: Any = ReferenceEvaluator(model)
            found = evaluator.run(None, dict(feeds), intermediate=True)
    except Exception:  # the evaluator raises what it likes; then there are none
        return {}
    values = cast("dict[str, Any]", found)
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
