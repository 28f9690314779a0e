"""Symbolic sizes: expressions over named symbols, with bounds, comparisons and proofs.

Pure Python without the IR. See docs/shapes.md.
"""

from __future__ import annotations

from byoc_mlir.dims.bounds import (
    bounds,
    largest,
    smallest,
    substituted,
)
from byoc_mlir.dims.dim import (
    Dim,
    Size,
    SizeFunction,
    Symbol,
    ceildiv,
    common_factor,
    divided,
    floordiv,
    symbol,
)
from byoc_mlir.dims.evaluate import evaluated, symbols_of
from byoc_mlir.dims.greatest import greatest
from byoc_mlir.dims.magnitude import GREATEST_SIZE, overflow
from byoc_mlir.dims.prove import proved_at_most, proved_same
from byoc_mlir.dims.shapes import LEAST_HINT, Facts, Guard, Relation, Shapes, SymbolInfo
from byoc_mlir.dims.text import parse_size

__all__ = [
    "GREATEST_SIZE",
    "LEAST_HINT",
    "Dim",
    "Facts",
    "Guard",
    "Relation",
    "Shapes",
    "Size",
    "SizeFunction",
    "Symbol",
    "SymbolInfo",
    "bounds",
    "ceildiv",
    "common_factor",
    "divided",
    "evaluated",
    "floordiv",
    "greatest",
    "largest",
    "overflow",
    "parse_size",
    "proved_at_most",
    "proved_same",
    "smallest",
    "substituted",
    "symbol",
    "symbols_of",
]
