"""Rewrites of matches: the counterpart of TVM's `DFPatternCallback`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import UNKNOWN_LOC
from xdsl.ir import Operation
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint

from byoc_mlir.dialects.locations import fused_location
from byoc_mlir.errors import BackendError
from byoc_mlir.patterns.composite import Match
from byoc_mlir.patterns.language import Pattern
from byoc_mlir.patterns.matching import match_pattern

Callback: TypeAlias = Callable[[Match], Operation | Sequence[Operation] | None]
"""Function of a match that returns the ops to replace it, in order, or `None` to leave it."""


def rewrite(pattern: Pattern, callback: Callback) -> RewritePattern:
    """Returns an xDSL rewrite pattern that replaces matches of `pattern`.

    The results of the last new op replace the results of the match. Ops of the match that are
    unused then are erased. New ops without a location get the ONNX nodes of the match.
    """
    return _Rewrite(pattern, callback)


@dataclass(frozen=True)
class _Rewrite(RewritePattern):
    pattern: Pattern
    callback: Callback

    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        match = match_pattern(self.pattern, op)
        if match is None or all(result.first_use is None for result in match.results):
            return
        answer = self.callback(match)
        if answer is None:
            return
        new_ops = (answer,) if isinstance(answer, Operation) else answer
        _check_results(match, new_ops)
        location = fused_location(match.ops)
        for new in new_ops:
            if new.location == UNKNOWN_LOC:
                new.location = location
        rewriter.insert(new_ops, InsertPoint.before(op))
        for old, new in zip(match.results, new_ops[-1].results, strict=True):
            rewriter.replace_all_uses_with(old, new)
        for old in reversed(match.ops):
            if all(result.first_use is None for result in old.results):
                rewriter.erase(old)


def _check_results(match: Match, new_ops: Sequence[Operation]) -> None:
    """Refuses ops that cannot replace a match.

    Raises:
        BackendError: the last op has other results than the match.
    """
    wanted = [result.type for result in match.results]
    found = list(new_ops[-1].result_types) if new_ops else []
    if found != wanted:
        listed = [", ".join(map(str, types)) or "nothing" for types in (wanted, found)]
        raise BackendError(
            f"a match with results of types {listed[0]} cannot be replaced by an op with results of"
            f" types {listed[1]}; the callback's last op has to have the same types"
        )
