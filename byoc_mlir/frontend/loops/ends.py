"""Test that a loop's trip count is known before the loop runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import onnx

from byoc_mlir.frontend.order import read_names

Known = Callable[[str], bool]
"""Predicate that is true for values around a loop that are known before the model runs."""


def body_of(loop: onnx.NodeProto) -> onnx.GraphProto:
    """Returns the body of a `Loop`; an empty graph if it has none, so that the importer refuses
    it.
    """
    bodies = (attribute.g for attribute in loop.attribute if attribute.name == "body")
    return next(bodies, onnx.GraphProto())


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
    body = body_of(loop)
    own = set(_names(body))
    states = [formal.name for formal in body.input[2:]]
    updates = [formal.name for formal in body.output[1 : 1 + len(states)]]
    computed = {
        state for state, initial in zip(states, loop.input[2:], strict=True) if not known(initial)
    }
    while True:
        found = _computed(body, own, computed, known)
        further = {
            state for state, update in zip(states, updates, strict=True) if update in found
        } - computed
        if not further:
            goes_on = body.output[0].name
            return goes_on in found or not (goes_on in own or known(goes_on))
        computed |= further


def _names(body: onnx.GraphProto) -> Iterator[str]:
    """Yields the names that a body defines."""
    yield from (formal.name for formal in body.input)
    yield from (tensor.name for tensor in body.initializer)
    yield from (name for node in body.node for name in node.output)


def _computed(body: onnx.GraphProto, own: set[str], states: set[str], known: Known) -> set[str]:
    """Returns the values of a body that depend on `states`, or on unknown values from outside."""
    found = set(states)
    changed = True
    while changed:  # nodes may stand in any order
        changed = False
        for node in body.node:
            reads = read_names(node)
            depends = any(name in found or not (name in own or known(name)) for name in reads)
            if depends and not found.issuperset(node.output):
                found.update(node.output)
                changed = True
    return found
