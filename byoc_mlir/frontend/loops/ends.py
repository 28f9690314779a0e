"""Test that a loop's trip count is known before the loop runs."""

from __future__ import annotations

from collections.abc import Callable

import onnx

from byoc_mlir.frontend.graphs import attribute_of
from byoc_mlir.frontend.order import all_names, read_names

Known = Callable[[str], bool]
"""Predicate that is true for values around a loop that are known before the model runs."""


def body_of(loop: onnx.NodeProto) -> onnx.GraphProto:
    """Returns the body of a `Loop`; an empty graph if it has none, so that the importer refuses
    it.
    """
    return attribute_of(loop, "body").g


def has_body(loop: onnx.NodeProto) -> bool:
    """True if the body of a `Loop` has as many inputs and outputs as the loop carries."""
    body = body_of(loop)
    fits = len(body.input) == len(loop.input)
    return fits and len(body.output) >= max(len(loop.input) - 1, 1)


def ends_when_it_runs(loop: onnx.NodeProto, known: Known) -> bool:
    """True if values that are computed at run time determine when a `Loop` ends."""
    condition = loop.input[1] if len(loop.input) > 1 else ""
    if condition and not known(condition):
        return True
    if not has_body(loop):
        return False  # invalid, which the importer reports
    return body_of(loop).output[0].name in _computed(loop, known)


def _computed(loop: onnx.NodeProto, known: Known) -> set[str]:
    """Returns the values that a loop's body reads or computes and that depend on unknown values
    from outside.
    """
    body = body_of(loop)
    states = [formal.name for formal in body.input[2:]]
    results = [formal.name for formal in body.output]
    steps = [([*read_names(node)], [*node.output]) for node in body.node]
    steps += [([update], [state]) for state, update in zip(states, results[1:], strict=False)]
    outside = {*results, *(name for reads, _ in steps for name in reads)} - all_names(body)
    initials = zip(states, loop.input[2:], strict=True)
    found = {state for state, initial in initials if not known(initial)}
    found.update(name for name in outside if not known(name))
    count = -1
    while count < len(found):  # nodes may stand in any order
        count = len(found)
        for reads, made in steps:
            if not found.isdisjoint(reads):
                found.update(made)
    return found
