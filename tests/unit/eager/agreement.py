"""Whether eager answers are ONNX Runtime's, as the fuzzer compares them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import onnx

from byoc_mlir.eager.known_ops import unknown
from byoc_mlir.eager.model import EagerModel
from byoc_mlir.tensors import Array
from byoc_mlir.testing.fuzz.excuses import ORDERING, has_nan, leaves_open, slack_of
from byoc_mlir.testing.fuzz.graphs import ops_in, part_of
from byoc_mlir.testing.fuzz.mistakes import knows
from byoc_mlir.testing.fuzz.oracles import ORACLES, Answer, differences, finite_only

Verdict = Literal["agrees", "unknown", "refused", "undecided"] | Mapping[str, str]
"""`unknown` is not run, `refused` ends with an exception, `undecided` are answers that ONNX leaves
open or ONNX Runtime has not; a mapping has what differs."""


def verdict(model: onnx.ModelProto, feeds: Mapping[str, Array]) -> Verdict:
    """How the eager answer to a model compares with ONNX Runtime's."""
    if unknown(model):
        return "unknown"
    try:
        got = EagerModel(model).run(feeds)
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
    """What differs from an oracle's answer, but for rounding; `None` where it has none."""
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
