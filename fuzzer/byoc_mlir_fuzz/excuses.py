"""Differences that are no mistake: results that rounding decides, or that ONNX leaves open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper

from byoc_mlir.comparison import distance
from byoc_mlir.runtime.report import Report
from byoc_mlir.testing.samples.onnx_nodes.values import is_float
from byoc_mlir_fuzz.case import Array, Feeds
from byoc_mlir_fuzz.oracles import (
    ORACLES,
    RECURRENT,
    TOLERANCE,
    Answer,
    Oracle,
    losing,
    onnxruntime_answer,
    reference_answer,
    spreading,
)

ORDERING = frozenset(
    (
        *("MaxPool", "GlobalMaxPool", "MaxRoiPool", "NonMaxSuppression", "TopK", "ArgMax"),
        *("ArgMin", "Unique", "Hardmax", "QuantizeLinear", "DynamicQuantizeLinear"),
        *("ReduceMax", "ReduceMin", "ReduceLogSumExp", "ScatterElements", "ScatterND"),
        *("GridSample", "Attention"),
    )
)
"""Ops for which ONNX does not define the effect of NaN; docs/semantics.md does."""


def has_nan(model: onnx.ModelProto, feeds: Feeds) -> bool:
    """True if an initializer or an input of a model has a NaN, or an infinity, which may become
    one.
    """
    tensors = [numpy_helper.to_array(tensor) for tensor in model.graph.initializer]
    return not all(map(_is_finite, (*tensors, *feeds.values())))


def leaves_open(name: str, model: onnx.ModelProto, feeds: Feeds) -> bool:
    """True if an oracle computes a NaN within a model that a correct program may not have, or the
    reverse.

    Such a NaN reaches a node for which ONNX does not define its effect, or comes from an infinity
    with weight zero. Or the oracle loses a NaN in a layer that another node reads, or in the next
    step of a recurrent layer. The same holds for three known values: the reference evaluator's
    casts of infinities to integers and its logarithms of underflowed softmax elements, and ONNX
    Runtime's maximum of an empty window.
    """
    read = {operand for node in model.graph.node for operand in node.input}
    lost_in = [node for node in model.graph.node if node.op_type in losing(name)]
    read_on = any(node.op_type in RECURRENT or read & set(node.output) for node in lost_in)
    if read_on and has_nan(model, feeds):
        return True
    if name == "reference" and _quantises_by_zero(model, feeds):
        return True
    if name == "reference" and _has_vanished_shares(model, feeds):
        return True
    if name == "onnxruntime" and _has_empty_windows(model, feeds):
        return True
    spread = {
        result
        for node in model.graph.node
        if node.op_type in spreading(name)
        for result in node.output
    }
    values = _values(ORACLES[name], model, feeds, _ordered(model) | spread & read)
    return any(
        np.isnan(value.astype(np.float64)).any()
        for value in values.values()
        if is_float(value.dtype)
    )


def _quantises_by_zero(model: onnx.ModelProto, feeds: Feeds) -> bool:
    """True if a value is divided by a scale of zero and the quotient is cast to an integer."""
    scales = {node.input[1] for node in model.graph.node if node.op_type == "QuantizeLinear"}
    given = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    computed = scales & {name for node in model.graph.node for name in node.output}
    values = {**given, **feeds, **_values(reference_answer, model, feeds, computed)}
    return any(not values[name].astype(np.float64).all() for name in scales & values.keys())


def _has_vanished_shares(model: onnx.ModelProto, feeds: Feeds) -> bool:
    """True if the reference evaluator takes the logarithm of a softmax element that underflowed to
    zero.
    """
    shares = {node.output[0] for node in model.graph.node if node.op_type == "LogSoftmax"}
    values = _values(reference_answer, model, feeds, shares).values()
    return any(bool(np.isneginf(value.astype(np.float64)).any()) for value in values)


def _has_empty_windows(model: onnx.ModelProto, feeds: Feeds) -> bool:
    """True if ONNX Runtime returns the type's lowest value as the maximum of a window."""
    pooled = {node.output[0] for node in model.graph.node if node.op_type == "MaxPool"}
    return any(
        is_float(value.dtype) and bool((value == ml_dtypes.finfo(value.dtype).min).any())
        for value in _values(onnxruntime_answer, model, feeds, pooled).values()
    )


def overflows_within(model: onnx.ModelProto, feeds: Feeds, report: Report) -> bool:
    """True if a node in a region of a backend overflows, though the region's inputs are finite.

    The result of an infinity that arises within a region is not guaranteed: backends check only the
    inputs. The values are an oracle's.
    """
    results: dict[str, set[str]] = {}
    for row in report:
        if row.region:
            results.setdefault(row.region, set()).update(row.outputs)
    return any(
        _overflows(oracle, model, feeds, made)
        for made in results.values()
        for oracle in ORACLES.values()
    )


def _overflows(oracle: Oracle, model: onnx.ModelProto, feeds: Feeds, made: Set[str]) -> bool:
    """True if a node with results in `made` overflows, and the inputs from outside are finite."""
    nodes = [node for node in model.graph.node if not made.isdisjoint(node.output)]
    read = {operand for node in nodes for operand in node.input}
    computed = {result for node in model.graph.node for result in node.output if result}
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    values = {**tensors, **feeds, **_values(oracle, model, feeds, computed & (made | read))}
    infinite = {name for name, value in values.items() if not _is_finite(value)}
    return infinite.isdisjoint(read - made) and any(
        infinite.isdisjoint(node.input) and not infinite.isdisjoint(node.output)
        for node in nodes
        if node.op_type not in _UNDEFINED_SOMEWHERE
    )


_UNDEFINED_SOMEWHERE = frozenset(
    ("Acos", "Acosh", "Asin", "Atanh", "Div", "Log", "Mod", "Pow", "Reciprocal", "Sqrt")
)
"""Ops that are undefined for some finite values, which is no overflow."""


def _is_finite(array: Array) -> bool:
    return not is_float(array.dtype) or bool(np.isfinite(array.astype(np.float64)).all())


def _ordered(model: onnx.ModelProto) -> Set[str]:
    """Returns the computed values that ops of `ORDERING` read."""
    computed = {name for node in model.graph.node for name in node.output}
    return computed & {
        name for node in model.graph.node if node.op_type in ORDERING for name in node.input
    }


def _of_unit(model: onnx.ModelProto) -> Set[str]:
    """Returns the results that are small sums of terms of about one, so that their errors are the
    terms' errors.
    """
    return {name for node in model.graph.node if node.op_type in _OF_UNIT for name in node.output}


def _values(oracle: Oracle, model: onnx.ModelProto, feeds: Feeds, names: Set[str]) -> Answer:
    """Returns an oracle's values for names within a model."""
    if not names:
        return {}
    shown = _copy(model)
    del shown.graph.output[:]
    shown.graph.output.extend(onnx.ValueInfoProto(name=name) for name in sorted(names))
    return _asked(oracle, shown, feeds)


def slack_of(oracle: Oracle, model: onnx.ModelProto, feeds: Feeds, answer: Answer) -> Answer:
    """Returns by how much the oracle's own outputs change when its inputs change by a rounding
    error.

    The change is infinite if an output is finite for only some of the inputs. A model of one node
    has no slack, except for recurrent layers, windows and normalisations of narrow types: its
    output has to be right.
    """
    nodes = [node for node in model.graph.node if node.op_type != "Constant"]
    approximate = _OF_UNIT | {"Sigmoid"} if oracle is onnxruntime_answer else _OF_UNIT
    least = _APPROXIMATE if any(node.op_type in approximate for node in nodes) else 0.0
    share = 0.0
    if oracle is reference_answer:
        share = _statistics_error(nodes, [value.dtype for value in feeds.values()])
    slack = {
        name: np.full(value.shape, least + share * _largest(value)) + _beyond_double(nodes, value)
        for name, value in answer.items()
    }
    if len(nodes) < 2:
        return slack
    for moved in _moved_answers(oracle, model, feeds):
        for name, value in moved.items():
            if name in slack and value.shape == slack[name].shape:
                slack[name] = np.maximum(slack[name], _distance(value, answer[name]))
    return {name: 10 * value for name, value in slack.items()}


_OF_UNIT = RECURRENT | {
    *("BlackmanWindow", "HammingWindow", "HannWindow"),
    *("Gelu", "BiasGelu", "FastGelu", "Mish"),
    *("LogSoftmax", "ReduceLogSumExp", "SoftmaxCrossEntropyLoss"),
}
"""Ops that compute small results from terms of about one, or from terms that many times as large as
their inputs. In ONNX Runtime the sigmoid is one, too.
"""
_APPROXIMATE = 3e-7
"""Absolute error of these ops, however small the result is."""


def apart(one: Answer, other: Answer) -> Answer:
    """Returns twice the distance between the outputs of two oracles."""
    return {
        name: 2 * _distance(value, other[name])
        for name, value in one.items()
        if name in other and value.shape == other[name].shape
    }


def _distance(one: Array, other: Array) -> Array:
    """Returns the distances between elements; infinity for strings that differ."""
    if one.dtype == object:
        return np.where(one == other, 0.0, np.inf)
    return distance(one, other)


def _statistics_error(nodes: Sequence[onnx.NodeProto], dtypes: Sequence[np.dtype[Any]]) -> float:
    """Returns the error of means and deviations, relative to the largest.

    The reference evaluator computes them in the type of the data, whatever type the model declares.
    """
    if all(node.op_type != "LayerNormalization" for node in nodes):
        return 0.0
    return max((TOLERANCE[dtype.name] for dtype in dtypes if is_float(dtype)), default=0.0)


def _beyond_double(nodes: Sequence[onnx.NodeProto], value: Array) -> Array:
    """Returns 1 for elements for which an oracle's mean of integers, computed in f64, has lost
    digits.
    """
    if value.dtype.kind not in "iu" or all(node.op_type != "ReduceMean" for node in nodes):
        return np.zeros(value.shape)
    return (np.abs(value.astype(np.float64)) > 1 << 53).astype(np.float64)


def _largest(array: Array) -> float:
    values = np.abs(array.astype(np.float64)) if is_float(array.dtype) else np.zeros(0)
    return values[np.isfinite(values)].max(initial=0.0)


def _moved_answers(oracle: Oracle, model: onnx.ModelProto, feeds: Feeds) -> Iterator[Answer]:
    for number in range(4):
        rng = np.random.default_rng(number)
        moved = {name: _moved(rng, value) for name, value in feeds.items()}
        yield _asked(oracle, _with_moved_constants(rng, model), moved)
    of_unit = _of_unit(model)
    values = _values(oracle, model, feeds, _ordered(model) | of_unit)
    floats = {name: value for name, value in values.items() if is_float(value.dtype)}
    beside = {name: max(_largest(value), float(name in of_unit)) for name, value in floats.items()}
    for number in range(8 if floats else 0):
        rng = np.random.default_rng(number)
        moved = {name: _moved(rng, value, beside[name]) for name, value in floats.items()}
        yield _asked(oracle, _with_values(model, moved), feeds)
    for sign in (-1, 1) if floats else ():
        moved = {name: _shifted(value, sign * beside[name]) for name, value in floats.items()}
        yield _asked(oracle, _with_values(model, moved), feeds)
    yield _asked(oracle, _with_values(model, _without_denormals(oracle, model, feeds)), feeds)


def _without_denormals(oracle: Oracle, model: onnx.ModelProto, feeds: Feeds) -> Answer:
    """Returns the intermediate values that have denormals, with the denormals set to zero, as some
    libraries do.
    """
    read = {name for node in model.graph.node for name in node.input}
    handed_on = read & {name for node in model.graph.node for name in node.output if name}
    flushed: dict[str, Array] = {}
    for name, value in _values(oracle, model, feeds, handed_on).items():
        if is_float(value.dtype):
            smallest = float(ml_dtypes.finfo(value.dtype).smallest_normal)
            is_denormal = (value != 0) & (np.abs(value.astype(np.float64)) < smallest)
            if is_denormal.any():
                flushed[name] = np.where(is_denormal, np.zeros_like(value), value)
    return flushed


def _asked(oracle: Oracle, model: onnx.ModelProto, feeds: Feeds) -> Answer:
    """Returns an oracle's outputs, or none if it fails."""
    try:
        return oracle(model, feeds)
    except Exception:  # an oracle raises what it likes; then it says nothing
        return {}


def _with_moved_constants(rng: np.random.Generator, model: onnx.ModelProto) -> onnx.ModelProto:
    moved = _copy(model)
    for tensor in moved.graph.initializer:
        array = _moved(rng, numpy_helper.to_array(tensor))
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return moved


def _with_values(model: onnx.ModelProto, values: Answer) -> onnx.ModelProto:
    """Returns the model with constants in place of computed values."""
    changed = _copy(model)
    for node in changed.graph.node:
        for index, name in enumerate(node.output):
            if name in values:
                node.output[index] = f"{name}_computed"
    tensors = (numpy_helper.from_array(value, name) for name, value in values.items())
    changed.graph.initializer.extend(tensors)
    return changed


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def _moved(rng: np.random.Generator, array: Array, beside: float = 0.0) -> Array:
    """Adds random rounding errors to elements: relative ones, and absolute ones of a value
    `beside`.
    """
    if not is_float(array.dtype):
        return array
    step = _step(array)
    factors = 1 + step * rng.choice([-1.0, 0.0, 1.0], array.shape)
    errors = step * beside * rng.uniform(-1.0, 1.0, array.shape)
    with np.errstate(all="ignore"):
        return np.asarray(array.astype(np.float64) * factors + errors, array.dtype)


def _shifted(array: Array, beside: float) -> Array:
    """Adds to all elements the largest rounding error of a value `beside`, with its sign."""
    with np.errstate(all="ignore"):
        return np.asarray(array.astype(np.float64) + _step(array) * beside, array.dtype)


def _step(array: Array) -> float:
    """Returns a rounding error of a value of about one."""
    return 4 * float(ml_dtypes.finfo(array.dtype).eps)
