"""Support vector machines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, combinations

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import elementwise, logic, ml, nn, reduce
from byoc_mlir.frontend import Array, NodeContext, NodeRefused, Value, register_op
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.ops.ml.labels import Labels, labels_of
from byoc_mlir.frontend.ops.ml.linear import product, rows_of, shifted
from byoc_mlir.frontend.ops.ml.post_transforms import NAMES, binary, transformed

_DOMAIN = "ai.onnx.ml"
_F32 = np.dtype(np.float32)
_LEAST = 1e-7
"""Smallest probability of a class in a pair, as in ONNX Runtime."""


@register_op(_DOMAIN, "SVMClassifier")
def svm_classifier(
    context: NodeContext,
    data: Value,
    *,
    classlabels_ints: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
    coefficients: Sequence[float] = (),
    kernel_params: Sequence[float] = (),
    kernel_type: str = "LINEAR",
    post_transform: str = "NONE",
    prob_a: Sequence[float] = (),
    prob_b: Sequence[float] = (),
    rho: Sequence[float] = (),
    support_vectors: Sequence[float] = (),
    vectors_per_class: Sequence[int] = (),
) -> Sequence[Value]:
    """Imports SVMClassifier: each pair of classes has a score, which votes for one of them.

    The second output has the scores of the pairs; for a single pair, both signs of its score. With
    `prob_a` it has the probabilities of the classes.
    """
    labels, rows = labels_of(classlabels_ints, classlabels_strings), rows_of(context, data)
    count = sum(vectors_per_class)
    if not count:
        return _without_vectors(context, rows, labels, coefficients, rho, post_transform)
    pairs = list(combinations(range(len(labels)), 2))
    expected = (len(labels), len(pairs), (len(labels) - 1) * count)
    if (len(vectors_per_class), len(rho), len(coefficients)) != expected or not pairs:
        raise VerifyException(
            f"there are {len(vectors_per_class)} vectors_per_class, {len(rho)} rho and"
            f" {len(coefficients)} coefficients, accepted are {expected} for {len(labels)} labels"
        )
    rows = _kernel(context, rows, support_vectors, count, kernel_type, kernel_params)
    weight = _pair_weights(np.reshape(coefficients, (-1, count)), vectors_per_class)
    scores = shifted(context, product(context, rows, weight.reshape(-1).tolist(), len(pairs)), rho)
    best = labels.best(context, _votes(context, scores, len(labels)))
    if prob_a:
        shares = _probabilities(context, scores, prob_a, prob_b, len(labels))
        return best, transformed(context, shares, post_transform)
    if len(pairs) > 1:
        return best, transformed(context, scores, post_transform)
    return best, binary(context, scores, post_transform, float(post_transform != "NONE"))


def _without_vectors(
    context: NodeContext,
    rows: Value,
    labels: Labels,
    coefficients: Sequence[float],
    rho: Sequence[float],
    post_transform: str,
) -> Sequence[Value]:
    """Returns a linear classifier's outputs, with one offset for all scores.

    The larger score decides the label. ONNX Runtime returns the second of two labels
    wherever a score is above 0.
    """
    if len(rho) != 1:
        raise NodeRefused(f"without support vectors there are {len(rho)} rho; accepted is one")
    scores = product(context, rows, coefficients, len(labels))
    scores = arith.add(context, scores, rho[0])
    return labels.best(context, scores), transformed(context, scores, post_transform)


def _pair_weights(coefficients: Array, sizes: Sequence[int]) -> Array:
    """Returns the weight of each support vector for each pair of classes, `[pairs, vectors]`.

    Args:
        coefficients: weights of each vector against each other class, `[classes - 1, vectors]`.
    """
    ends = list(accumulate(sizes))
    own = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    pairs = list(combinations(range(len(sizes)), 2))
    weight = np.zeros((len(pairs), coefficients.shape[1]), np.float32)
    for row, (first, second) in zip(weight, pairs, strict=True):
        row[own[first]] = coefficients[second - 1, own[first]]
        row[own[second]] = coefficients[first, own[second]]
    return weight


def _votes(context: NodeContext, scores: Value, classes: int) -> Value:
    """Returns the votes for each class; a positive score is a vote for its pair's first class."""
    pairs = list(combinations(range(classes), 2))
    change = np.zeros((classes, len(pairs)), np.float32)
    for number, (first, second) in enumerate(pairs):
        change[first, number], change[second, number] = 1, -1
    least = np.arange(classes, dtype=np.float32)[None]  # as if no score were above 0
    is_first = cast(context, context.emit(logic.GreaterOp, scores, np.float32(0)), _F32)
    votes = context.emit(nn.DenseOp, is_first, context.constant(change))
    return arith.add(context, votes, context.constant(least))


def _probabilities(
    context: NodeContext,
    scores: Value,
    prob_a: Sequence[float],
    prob_b: Sequence[float],
    classes: int,
) -> Value:
    """Returns the probabilities of the classes, from the pairwise ones."""
    count = scores.number(1)
    if (len(prob_a), len(prob_b)) != (count, count):
        raise VerifyException(
            f"there are {len(prob_a)} prob_a and {len(prob_b)} prob_b, accepted are {count}"
        )
    slopes, offsets = (context.constant([list(each)], _F32) for each in (prob_a, prob_b))
    bent = arith.add(context, arith.multiply(context, scores, slopes), offsets)
    shares = context.emit(elementwise.SigmoidOp, arith.subtract(context, 0.0, bent))
    shares = context.emit(elementwise.ClipOp, shares, a_min=_LEAST, a_max=1 - _LEAST)
    return context.emit(ml.PairwiseCouplingOp, shares, classes=classes)


@register_op(_DOMAIN, "SVMRegressor")
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
    """Imports SVMRegressor; `post_transform` has no effect, as in ONNX Runtime.

    `kernel_params` are gamma, coef0 and degree.
    """
    if post_transform not in NAMES:
        raise NodeRefused(f"post_transform is '{post_transform}', accepted are {', '.join(NAMES)}")
    rows = rows_of(context, data)
    if n_supports:
        rows = _kernel(context, rows, support_vectors, n_supports, kernel_type, kernel_params)
    scores = shifted(context, product(context, rows, coefficients, 1), rho)
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
    """Returns the kernel of each row and each support vector, `[N, count]`."""
    if kind != "LINEAR" and len(parameters) != 3:
        raise NodeRefused(f"kernel_params is {list(parameters)}, accepted are three numbers")
    gamma, offset, degree = parameters if len(parameters) == 3 else (0.0, 0.0, 0.0)
    similar = product(context, rows, vectors, count)
    if kind == "LINEAR":
        return similar
    if kind == "RBF":
        table = np.reshape(np.asarray(vectors, np.float32), (1, count, -1))
        columns = arith.reshape(context, rows, [rows.sizes[0], 1, rows.sizes[1]])
        away = arith.subtract(context, columns, context.constant(table))
        distance = arith.reduced(
            context, reduce.SumOp, arith.multiply(context, away, away), [2], keepdims=False
        )
        return context.emit(elementwise.ExpOp, arith.multiply(context, distance, -gamma))
    scaled = arith.add(context, arith.multiply(context, similar, gamma), offset)
    if kind == "POLY":
        return arith.power(context, scaled, degree)
    if kind == "SIGMOID":
        return context.emit(elementwise.TanhOp, scaled)
    raise NodeRefused(f"kernel_type is '{kind}', accepted are LINEAR, POLY, RBF, SIGMOID")
