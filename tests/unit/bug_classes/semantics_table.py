"""The tables of `docs/semantics.md`, and further rows, as models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from small_models import Array

PAGE = Path(__file__).parents[3] / "docs" / "semantics.md"
FURTHER = Path(__file__).parent / "semantics_rows.md"
"""Rows like those of the page that follow from its sentences or from ONNX's text."""
COLUMNS = 5


@dataclass(frozen=True)
class Line:
    """One line: an op with attributes, an array of one element for each operand, the result."""

    op: str
    operands: tuple[Array, ...]
    result: str
    is_onnxruntimes: bool

    @property
    def kind(self) -> tuple[str, ...]:
        """Returns the key of rows that are elements of the same operands."""
        return self.op, *(str(operand.dtype) for operand in self.operands)

    def node(self, inputs: Sequence[str], output: str) -> onnx.NodeProto:
        """Returns the node that computes it."""
        op_type, *words = self.op.split()
        texts = dict(word.split("=") for word in words)
        attributes: dict[str, Any] = {name: _value(text) for name, text in texts.items()}
        return helper.make_node(op_type, inputs, [output], **attributes)

    def expected(self, dtype: np.dtype[Any]) -> Array:
        """Returns the expected result, in the type of the op."""
        return np.array([number(self.result, dtype)], dtype)


def _value(text: str) -> int | str:
    if text.isdigit():
        return int(text)
    return TensorProto.DataType.Value(text) if hasattr(TensorProto, text) else text


def number(text: str, dtype: np.dtype[Any]) -> Any:
    """Returns a number as the page writes it."""
    if text in ("min", "max"):
        return getattr(np.iinfo(dtype), text)
    return int(text) if dtype.kind in "iub" else float(text)


def lines(*pages: Path) -> Iterator[Line]:
    """Yields the lines of `pages`, by default of the page and the further ones."""
    texts = [page.read_text() for page in pages or (PAGE, FURTHER)]
    for row in "\n".join(texts).splitlines():
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if not row.startswith("|") or len(cells) != COLUMNS or cells[0] in ("op", "---"):
            continue
        op, types, operands, result, is_same = cells
        numbers, names = operands.split(", "), types.split(", ")
        dtypes = [np.dtype(name) for name in names * (len(numbers) if len(names) == 1 else 1)]
        arrays = tuple(
            np.array([number(text, dtype)], dtype)
            for text, dtype in zip(numbers, dtypes, strict=True)
        )
        yield Line(op, arrays, result, is_same == "yes")
