"""Decompositions of resizes of images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from byoc_mlir.torch.tensors import pytorch


def resize_1d(x: Any, size: Any, align_corners: bool, scales: Any) -> Any:
    """Returns a resized row, as an image of one line."""
    form = pytorch().ops.aten.upsample_bilinear2d.vec
    size, scales = (None if one is None else [1, *one] for one in (size, scales))
    return form(x.unsqueeze(-2), size, align_corners, scales).squeeze(-2)


def aligned(form: Any) -> Callable[..., Any]:
    """Returns a resize whose corners are aligned by sizes instead of scales."""

    def resized(x: Any, size: Any, align_corners: bool, scales: Any) -> Any:
        if not align_corners or scales is None:
            return NotImplemented
        sizes = zip(x.shape[2:], scales, strict=True)
        return form(x, [int(one * scale) for one, scale in sizes], align_corners, None)

    return resized
