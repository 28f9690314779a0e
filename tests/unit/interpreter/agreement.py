"""Comparison of the interpreter's outputs with ONNX Runtime's, as in the fuzzer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import onnx
from byoc_mlir_fuzz.excuses import ORDERING, has_nan, leaves_open, slack_of
from byoc_mlir_fuzz.graphs import ops_in, part_of
from byoc_mlir_fuzz.mistakes import knows
from byoc_mlir_fuzz.oracles import ORACLES, Answer, differences, finite_only
from helpers.models import node_model
from onnx import numpy_helper

from byoc_mlir.interpreter.model import InterpretedModel
from byoc_mlir.interpreter.tier_ops import unknown
from byoc_mlir.tensors import Array

Decision = Literal["agrees", "unknown", "refused", "undecided"] | Mapping[str, str]
"""Decision on a model: `unknown` is not run, `refused` ends with an exception, `undecided` outputs
are left open by ONNX or unknown to ONNX Runtime; a mapping has the differences.
"""


def run_interpreted(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
    """Returns the outputs by name; nothing may be printed."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tensors = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
        return InterpretedModel(model, tensors, threads=1).run(feeds)


def decision(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> Decision:
    """Compares the interpreter's outputs for a model with ONNX Runtime's."""
    if unknown(model):
        return "unknown"
    try:
        got = run_interpreted(model, feeds)
    except Exception:  # the compiled program answers then
        return "refused"
    if not ORDERING.isdisjoint(ops_in(model.graph)) and has_nan(model, feeds):
        return "undecided"
    found = _differences("onnxruntime", model, feeds, got)
    if not found:
        return "undecided" if found is None else "agrees"
    by_standard = _differences("reference", model, feeds, got)
    if by_standard is None:
        return found
    return {name: reason for name, reason in found.items() if name in by_standard} or "undecided"


def _differences(
    oracle: str, model: onnx.ModelProto, feeds: Mapping[str, Array], got: Answer
) -> Mapping[str, str] | None:
    """Returns the differences from an oracle's outputs beyond rounding; `None` if it has none."""
    known = [output.name for output in model.graph.output]
    known = [name for name in known if knows(oracle, part_of(model, name))]
    try:
        want = ORACLES[oracle](model, feeds)
    except Exception:  # it raises what it likes
        return None
    got = finite_only(oracle, got, want, ops_in(model.graph))
    want = {name: want[name] for name in known}
    if not want:
        return None
    found = differences(got, want)
    if not found:
        return found
    if leaves_open(oracle, model, feeds):
        return None
    return differences(got, want, slack_of(ORACLES[oracle], model, feeds, want))


def check_node(op_type: str, *operands: Array | None, **others: Any) -> None:
    """Checks that a node is run, and that its results equal an oracle's."""
    model, feeds = node_model(op_type, operands, **others)
    assert not unknown(model)
    run_interpreted(model, feeds)
    assert decision(model, feeds) == "agrees"


def floats(*shape: int, seed: int = 0) -> Array:
    """Returns random values."""
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(np.float32)


def integers(*values: int) -> Array:
    """Returns a vector of `i64`."""
    return np.array(values, np.int64)
