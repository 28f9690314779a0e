"""Linear models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import nn
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.ops.ml.features import DOMAIN
from byoc_mlir.frontend.ops.ml.labels import labels_of
from byoc_mlir.frontend.ops.ml.post_transforms import as_features, binary, regressed, transformed
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.value import Value

_F32 = np.dtype(np.float32)


def product(
    context: NodeContext, data: Value, coefficients: Sequence[float], targets: int
) -> Value:
    """Returns `data [N, F]` times each target's coefficients, `[N, targets]`, in f32.

    Raises:
        VerifyException: the number of coefficients is not `F * targets`.
    """
    features = data.number(1)
    if len(coefficients) != features * targets:
        raise VerifyException(
            f"there are {len(coefficients)} coefficients, accepted are {features} for each of"
            f" {targets}"
        )
    weight = context.constant(np.reshape(coefficients, (targets, features)), np.float32)
    return context.emit(nn.DenseOp, data, weight)


def rows_of(context: NodeContext, data: Value) -> Value:
    """Returns the features of each row, in f32."""
    return cast(context, as_features(context, data), _F32)


def shifted(context: NodeContext, scores: Value, intercepts: Sequence[float]) -> Value:
    """Adds one intercept per target to scores `[N, targets]`, if there are any.

    Raises:
        VerifyException: the number of intercepts is not `targets`.
    """
    if not intercepts:
        return scores
    if len(intercepts) != scores.number(1):
        raise VerifyException(
            f"there are {len(intercepts)} intercepts, accepted are {scores.number(1)}"
        )
    return context.emit(
        nn.BiasAddOp, scores, context.constant(list(intercepts), np.float32), axis=1
    )


@register_op(DOMAIN, "LinearRegressor")
def linear_regressor(
    context: NodeContext,
    data: Value,
    *,
    coefficients: Sequence[float] = (),
    intercepts: Sequence[float] = (),
    post_transform: str = "NONE",
    targets: int = 1,
) -> Value:
    scores = product(context, rows_of(context, data), coefficients, targets)
    return regressed(context, shifted(context, scores, intercepts), post_transform)


@register_op(DOMAIN, "LinearClassifier")
def linear_classifier(
    context: NodeContext,
    data: Value,
    *,
    coefficients: Sequence[float],
    classlabels_ints: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    intercepts: Sequence[float] = (),
    multi_class: int = 0,
    post_transform: str = "NONE",
) -> Sequence[Value]:
    """Imports LinearClassifier; for two classes, the coefficients of the second class suffice."""
    labels, rows = labels_of(classlabels_ints, classlabels_strings), rows_of(context, data)
    targets = len(coefficients) // max(1, rows.number(1))
    if targets not in (len(labels), 1):
        raise VerifyException(f"there are scores for {targets} classes, and {len(labels)} labels")
    scores = shifted(context, product(context, rows, coefficients, targets), intercepts)
    if targets == len(labels):
        return labels.best(context, scores), transformed(context, scores, post_transform)
    if len(labels) != 2:
        raise VerifyException(f"one score is for two classes, there are {len(labels)} labels")
    best = labels.second_if_above(context, scores, 0.0)
    return best, binary(context, scores, post_transform, 1.0)
