"""Pattern language, with the names of TVM's, and its matcher. See `docs/patterns.md`."""

from byoc_mlir.patterns.composite import Check, CompositePattern, Match, checked_reason
from byoc_mlir.patterns.constructors import (
    dominates,
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    wildcard,
)
from byoc_mlir.patterns.explain import Miss, explain_match, nearest_miss, pattern_text
from byoc_mlir.patterns.language import Pattern
from byoc_mlir.patterns.matching import all_matches, match_pattern
from byoc_mlir.patterns.rewriting import rewrite
from byoc_mlir.patterns.scope import Scope

__all__ = [
    "Check",
    "CompositePattern",
    "Match",
    "Miss",
    "Pattern",
    "Scope",
    "all_matches",
    "checked_reason",
    "dominates",
    "explain_match",
    "has_attr",
    "has_dtype",
    "has_shape",
    "has_type",
    "is_constant",
    "is_expr",
    "is_op",
    "is_tuple",
    "is_tuple_get_item",
    "is_var",
    "match_pattern",
    "nearest_miss",
    "pattern_text",
    "rewrite",
    "wildcard",
]
