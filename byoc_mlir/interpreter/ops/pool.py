"""Pooling ops of ONNX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from byoc_mlir.interpreter.ops.errors import NotInterpretedError
from byoc_mlir.interpreter.ops.window import Placing, window_axes
from byoc_mlir.numpy_ops import window
from byoc_mlir.tensors import Array


def _max_pool(x: Array, **attributes: Any) -> Array:
    return window.max_pool(x, _axes(x, attributes))


def _average_pool(x: Array, count_include_pad: int, **attributes: Any) -> Array:
    return window.average_pool(x, _axes(x, attributes), bool(count_include_pad))


def _axes(x: Array, attributes: dict[str, Any]) -> tuple[window.Axis, ...]:
    kernel = tuple(attributes["kernel_shape"])
    axes = window_axes(x.shape[2:], kernel, Placing.of(attributes))
    if not all(count.all() for count in window.elements_counted(axes)):
        raise NotInterpretedError("a window has nothing but padding")
    return axes


OPS: Mapping[str, Callable[..., Any]] = {
    "AveragePool": _average_pool,
    "GlobalAveragePool": window.global_average_pool,
    "GlobalMaxPool": window.global_max_pool,
    "MaxPool": _max_pool,
}
"""Implementations by their names in ONNX."""
