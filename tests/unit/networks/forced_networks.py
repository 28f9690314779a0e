"""Quantised networks cut at each quantised tensor, where ONNX Runtime's values are the inputs.

A tie that one engine rounds up and another one down changes all later values. So engines are
compared on equal tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, helper

from byoc_mlir.testing.reference import random_inputs

Array = NDArray[Any]

_GIVEN = "_given"
"""Suffix of the names of tensors that become inputs."""

_QUANTISING = ("QuantizeLinear", "DynamicQuantizeLinear")


@dataclass(frozen=True)
class Forced:
    """Network whose quantised tensors are outputs, and inputs of their users."""

    model: ModelProto
    inputs: Mapping[str, Array]
    wanted: Mapping[str, Array]
    """Quantised tensors of ONNX Runtime, by output."""


def forced(model: ModelProto) -> Forced:
    """Cuts a network at its quantised tensors, with ONNX Runtime's values there."""
    found = [node for node in model.graph.node if node.op_type in _QUANTISING]
    names = [name for node in found for name in node.output]
    inputs = random_inputs(model, seed=3)
    values = _tapped(model, names, inputs)
    cut = ModelProto.FromString(model.SerializeToString())
    for node in cut.graph.node:
        node.input[:] = [f"{name}{_GIVEN}" if name in values else name for name in node.input]
    del cut.graph.output[:]
    for name, array in values.items():
        kind, shape = helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        cut.graph.input.append(helper.make_tensor_value_info(f"{name}{_GIVEN}", kind, shape))
        cut.graph.output.append(helper.make_tensor_value_info(name, kind, shape))
    given = {f"{name}{_GIVEN}": array for name, array in values.items()}
    quantised = {node.output[0]: values[node.output[0]] for node in found}
    return Forced(cut, inputs | given, quantised)


def _tapped(model: ModelProto, names: list[str], inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Returns tensors of a network by ONNX Runtime without optimisations."""
    tapped = ModelProto.FromString(model.SerializeToString())
    del tapped.graph.output[:]
    tapped.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(tapped.SerializeToString(), options)
    found = session.run(names, dict(inputs))
    return dict(zip(names, map(np.asarray, found), strict=True))


def compare(
    case: Forced,
    run: Callable[[ModelProto, Mapping[str, Array]], Mapping[str, Array]],
    decide: Callable[[ModelProto, Mapping[str, Array]], Mapping[str, Array]],
) -> tuple[int, int, int, int]:
    """Returns counts of elements: all, those that differ from ONNX Runtime's, those further than
    one step away, and the latter that are also further than a step from `decide`'s.
    """
    found, exact = run(case.model, case.inputs), decide(case.model, case.inputs)
    size = other = far = wrong = 0
    for name, wanted in case.wanted.items():
        steps, deciding = (
            np.abs(found[name].astype(int) - one.astype(int)) for one in (wanted, exact[name])
        )
        size += steps.size
        other += int(np.count_nonzero(steps))
        far += int(np.count_nonzero(steps > 1))
        wrong += int(np.count_nonzero((steps > 1) & (deciding > 1)))
    return size, other, far, wrong
