"""Ops on strings that ONNX's evaluator computes differently from ONNX Runtime."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from onnx import NodeProto, TensorProto, helper
from onnx.reference.op_run import OpRun

from byoc_mlir.tensors import Array

_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?|inf(inity)?|nan)\s*", re.I)


class Cast(OpRun):
    """Cast of numbers to strings of up to 8 digits, and of strings to numbers."""

    def _run(self, data: Array, to: int, **_: Any) -> tuple[Array]:
        return (_cast(data, to),)


class CastLike(OpRun):
    """Cast like `Cast`, to the type of the second input."""

    def _run(self, data: Array, like: Array, **_: Any) -> tuple[Array]:
        return (_cast(data, helper.np_dtype_to_tensor_dtype(like.dtype)),)


class RegexFullMatch(OpRun):
    """Match in linear time, by RE2 as in the standard; Python's `re` backtracks."""

    def __init__(self, node: NodeProto, run_params: dict[str, Any], schema: Any = None):
        super().__init__(node, run_params, schema)
        import re2  # few models need it

        options = re2.Options()
        options.log_errors = False
        self._matches = re2.compile(cast(Any, self).pattern, options).fullmatch

    def _run(self, texts: Array, **_: Any) -> tuple[Array]:
        found = [self._matches(text) is not None for text in texts.reshape(-1).tolist()]
        return (np.array(found, np.bool_).reshape(texts.shape),)


class StringNormalizer(OpRun):
    """Removal of stop words, and change of the case of each character."""

    def _run(
        self,
        data: Array,
        case_change_action: str,
        is_case_sensitive: int,
        stopwords: Sequence[str] | None,
        **_: Any,
    ) -> tuple[Array]:
        if data.ndim not in (1, 2) or data.shape[:-1] not in ((), (1,)):
            raise ValueError(f"the shape is {list(data.shape)}, accepted are [C] and [1, C]")
        compared = "NONE" if is_case_sensitive else case_change_action.replace("NONE", "LOWER")
        stops = {_in_case(word, compared) for word in stopwords or ()}
        kept = [word for word in data.reshape(-1) if _in_case(word, compared) not in stops]
        changed = [_in_case(word, case_change_action) for word in kept]
        return (np.array(changed or [""], object).reshape(*data.shape[:-1], -1),)


class StringSplit(OpRun):
    """Split of strings; an empty one has no parts."""

    def _run(
        self, data: Array, delimiter: str | None, maxsplit: int | None, **_: Any
    ) -> tuple[Array, Array]:
        most = -1 if maxsplit is None else maxsplit
        parts = [text.split(delimiter or None, most) if text else [] for text in data.reshape(-1)]
        counts = np.array(list(map(len, parts)), np.int64)
        found = np.full((len(parts), max(counts, default=0)), "", object)
        for row, texts in zip(found, parts, strict=True):
            row[: len(texts)] = texts
        return found.reshape(*data.shape, found.shape[1]), counts.reshape(data.shape)


def _cast(data: Array, to: int) -> Array:
    if to == TensorProto.STRING:
        texts = [_text(value) for value in data.reshape(-1).tolist()]
        return np.array(texts, object).reshape(data.shape)
    if data.dtype == object:
        for text in data.reshape(-1):
            if not _NUMBER.fullmatch(text):
                raise ValueError(f"{text!r} is no number")
    return data.astype(helper.tensor_dtype_to_np_dtype(to))


def _text(value: object) -> str:
    if not isinstance(value, float):
        return str(int(value) if isinstance(value, bool) else value)
    special = {"nan": "NaN", "inf": "INF", "-inf": "-INF"}
    found = f"{value:.8g}"
    return special.get(found, found)


def _in_case(text: str, action: str) -> str:
    """Maps each character of a text to its simple lower or upper case, as C's `towlower`."""
    if action == "LOWER":
        return "".join(character.lower()[0] for character in text)
    return "".join(map(_upper, text)) if action == "UPPER" else text


def _upper(character: str) -> str:
    forms = (character.upper(), character.title(), character)
    return next(form for form in forms if len(form) == 1)


OPS: tuple[type[OpRun], ...] = (Cast, CastLike, RegexFullMatch, StringNormalizer, StringSplit)
"""Replacements of the evaluator's ops."""
