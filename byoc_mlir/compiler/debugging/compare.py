"""Comparison of a model's tensors with an oracle's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto

from byoc_mlir.comparison import difference, is_close, is_float
from byoc_mlir.compiler.debugging.parts import WholeModel
from byoc_mlir.frontend.value import Array
from byoc_mlir.runtime.report import Report, ReportRow
from byoc_mlir.runtime.verification import Compared

TOLERANCES: Mapping[str, float] = {"float16": 4e-3, "bfloat16": 3e-2, "float64": 1e-7}
"""Default tolerances, relative to an element and to the largest one of its tensor."""

DEFAULT_TOLERANCE = 1e-4
"""Default tolerance of other floats."""

ROUNDED_TOLERANCE = 3e-2
"""Default tolerance if matmuls round to 16 bits or less, or tensors to 8 bits. Near a tie, values
round either way, and the differences grow from layer to layer.
"""


@dataclass(frozen=True)
class Tolerance:
    """Tolerance of elements: `atol + rtol * |wanted|`."""

    rtol: float | None
    """Relative tolerance; `None` if it depends on the tensor's type."""
    atol: float | None
    """Absolute tolerance. `None`: `rtol` of the largest element for floats; one step for 8-bit
    integers, or a fraction of their range if the model is rounded; 0 for other integers.
    """
    is_rounded: bool = False
    """True if the model is quantised, or computed in lower precision than its own."""

    def accepts(self, got: Array, want: Array) -> bool:
        """True if all elements are within the tolerance."""
        if got.shape != want.shape or got.dtype != want.dtype:
            return False
        if want.size == 0 or np.array_equal(got, want):
            return True
        if not is_float(want.dtype):
            return self._accepts_integers(got, want)
        rtol = self._relative(want.dtype)
        magnitude = np.abs(want.astype(np.float64))
        finite = np.isfinite(magnitude)
        atol = rtol * magnitude[finite].max(initial=0.0) if self.atol is None else self.atol
        return bool(is_close(got, want, np.where(finite, rtol * magnitude, 0.0) + atol).all())

    def _relative(self, dtype: np.dtype[Any]) -> float:
        if self.rtol is not None:
            return self.rtol
        usual = TOLERANCES.get(dtype.name, DEFAULT_TOLERANCE)
        return max(usual, ROUNDED_TOLERANCE) if self.is_rounded else usual

    def _accepts_integers(self, got: Array, want: Array) -> bool:
        is_byte = want.dtype.itemsize == 1 and want.dtype.kind in "iu"
        steps = 256 * ROUNDED_TOLERANCE if self.is_rounded else 1.0
        atol = steps * is_byte if self.atol is None else self.atol
        return atol > 0 and bool(is_close(got, want, atol).all())


def is_quantised(model: ModelProto) -> bool:
    """True if an op of the model has operands or results quantised to 8 bits."""
    return any(
        "Quantize" in node.op_type
        or node.op_type.startswith(("QLinear", "QGemm", "QAttention"))
        or node.op_type.endswith("Integer")
        for node in model.graph.node
    )


class Comparer:
    """Comparison of a model's tensors with an oracle's values.

    Args:
        report: the placement of the compiled model's nodes.
    """

    def __init__(
        self, whole: WholeModel, values: Mapping[str, Array], tolerance: Tolerance, report: Report
    ):
        self.whole = whole
        self.values = values
        self.tolerance = tolerance
        self._rows = {row.node: row for row in report}

    def row(self, node: str) -> ReportRow | None:
        """Returns the report's row of a node."""
        return self._rows.get(node)

    def place(self, node: str) -> str:
        """Returns the region of a node, or `host`, `folded` or `removed`."""
        row = self._rows.get(node)
        return "host" if row is None else row.region or row.placement

    def compared(self, found: Mapping[str, Any], names: Iterable[str]) -> tuple[Compared, ...]:
        """Compares the named tensors for which both sides have values; returns a row for each."""
        return tuple(
            self._compared(name, found[name])
            for name in names
            if isinstance(found.get(name), np.ndarray) and name in self.values
        )

    def _compared(self, name: str, got: Array) -> Compared:
        want = self.values[name]
        node = self.whole.producer.get(name)
        row = None if node is None else self._rows.get(node.name)
        return Compared(
            name,
            "" if node is None else node.name,
            "" if node is None else node.op_type,
            "" if row is None else row.placement,
            "" if row is None else row.region,
            difference(got, want),
            self.tolerance.accepts(got, want),
        )
