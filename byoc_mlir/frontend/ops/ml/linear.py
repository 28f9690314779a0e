"""Linear models and support vector regression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import elementwise, logic, nn, reduce
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.ops.ml.features import DOMAIN
from byoc_mlir.frontend.ops.ml.labels import labels_of
from byoc_mlir.frontend.ops.ml.post_transforms import as_features, regressed, transformed
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.value import NodeRefused, Value

_F32 = np.dtype(np.float32)


def _product(
    context: NodeContext, data: Value, coefficients: Sequence[float], targets: int
) -> Value:
    """`data [N, F]` times the coefficients of each target, `[N, targets]`, in f32."""
    features = data.shape[1]
    if len(coefficients) != features * targets:
        raise VerifyException(
            f"there are {len(coefficients)} coefficients, accepted are {features} for each of"
            f" {targets}"
        )
    weight = context.constant(np.reshape(coefficients, (targets, features)), np.float32)
    return context.emit(nn.DenseOp, data, weight)


def _rows(context: NodeContext, data: Value) -> Value:
    return cast(context, as_features(context, data), _F32)


def _shifted(context: NodeContext, scores: Value, intercepts: Sequence[float]) -> Value:
    if not intercepts:
        return scores
    if len(intercepts) != scores.shape[1]:
        raise VerifyException(
            f"there are {len(intercepts)} intercepts, accepted are {scores.shape[1]}"
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
    scores = _product(context, _rows(context, data), coefficients, targets)
    return regressed(context, _shifted(context, scores, intercepts), post_transform)


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
    """Two classes may have one row of coefficients, that of the second one."""
    labels, rows = labels_of(classlabels_ints, classlabels_strings), _rows(context, data)
    targets = len(coefficients) // max(1, rows.shape[1])
    if targets not in (len(labels), 1):
        raise VerifyException(f"there are scores for {targets} classes, and {len(labels)} labels")
    scores = _shifted(context, _product(context, rows, coefficients, targets), intercepts)
    if targets == len(labels):
        return labels.best(context, scores), transformed(context, scores, post_transform)
    if len(labels) != 2:
        raise VerifyException(f"one score is for two classes, there are {len(labels)} labels")
    if post_transform not in ("NONE", "LOGISTIC"):
        raise NodeRefused(
            f"post_transform is '{post_transform}' of one score for two classes; accepted are NONE"
            " and LOGISTIC"
        )
    best = labels.second_if_above(context, scores, 0.0)
    is_plain = post_transform == "NONE"
    opposite = arith.subtract(context, 1.0 if is_plain else 0.0, scores)
    both = arith.concatenate(context, [opposite, scores], 1)
    return best, transformed(context, both, post_transform)


@register_op(DOMAIN, "SVMRegressor")
def svm_regressor(
    context: NodeContext,
    data: Value,
    *,
    coefficients: Sequence[float] = (),
    kernel_params: Sequence[float] = (),
    kernel_type: str = "LINEAR",
    n_supports: int = 0,
    one_class: int = 0,
    post_transform: str = "NONE",
    rho: Sequence[float] = (),
    support_vectors: Sequence[float] = (),
) -> Value:
    """`kernel_params` are gamma, coef0 and degree."""
    if post_transform != "NONE":
        raise NodeRefused(f"post_transform is '{post_transform}', accepted is NONE")
    rows = _rows(context, data)
    if n_supports:
        rows = _kernel(context, rows, support_vectors, n_supports, kernel_type, kernel_params)
    scores = _shifted(context, _product(context, rows, coefficients, 1), rho)
    if one_class:
        is_inside = context.emit(logic.GreaterOp, scores, np.float32(0))
        return context.emit(elementwise.WhereOp, is_inside, np.float32(1), np.float32(-1))
    return scores


def _kernel(
    context: NodeContext,
    rows: Value,
    vectors: Sequence[float],
    count: int,
    kind: str,
    parameters: Sequence[float],
) -> Value:
    """How similar rows are to each of the support vectors, `[N, count]`."""
    if kind != "LINEAR" and len(parameters) != 3:
        raise NodeRefused(f"kernel_params is {list(parameters)}, accepted are three numbers")
    gamma, offset, degree = parameters if len(parameters) == 3 else (0.0, 0.0, 0.0)
    product = _product(context, rows, vectors, count)
    if kind == "LINEAR":
        return product
    if kind == "RBF":
        table = np.reshape(np.asarray(vectors, np.float32), (1, count, -1))
        columns = arith.reshape(context, rows, [rows.shape[0], 1, rows.shape[1]])
        away = arith.subtract(context, columns, context.constant(table))
        distance = arith.reduced(
            context, reduce.SumOp, arith.multiply(context, away, away), [2], keepdims=False
        )
        return context.emit(elementwise.ExpOp, arith.multiply(context, distance, -gamma))
    scaled = arith.add(context, arith.multiply(context, product, gamma), offset)
    if kind == "POLY":
        return arith.power(context, scaled, degree)
    if kind == "SIGMOID":
        return context.emit(elementwise.TanhOp, scaled)
    raise NodeRefused(f"kernel_type is '{kind}', accepted are LINEAR, POLY, RBF, SIGMOID")
