"""Post-transforms, which turn scores into probabilities."""

from __future__ import annotations

import math

import numpy as np

from byoc_mlir.dialects.relay import elementwise, logic, reduce
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.value import Array, NodeRefused, Value

NAMES = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""Names of the post-transforms, in the order of TreeEnsemble's numbers."""


def transformed(context: NodeContext, scores: Value, name: str) -> Value:
    """Applies a post-transform to scores `[N, targets]`.

    Raises:
        NodeRefused: the post-transform is unknown.
    """
    match name:
        case "NONE":
            return scores
        case "LOGISTIC":
            return context.emit(elementwise.SigmoidOp, scores)
        case "SOFTMAX":
            return context.emit(reduce.SoftmaxOp, scores, axis=-1)
        case "SOFTMAX_ZERO":
            return _softmax_of_nonzero(context, scores)
        case "PROBIT":
            return _probit(context, scores)
        case _:
            raise NodeRefused(f"post_transform is '{name}', accepted are {', '.join(NAMES)}")


def regressed(context: NodeContext, scores: Value, name: str) -> Value:
    """Applies a post-transform to the targets of a regression.

    For a single target, only PROBIT has an effect, as in ONNX Runtime.

    Raises:
        NodeRefused: the post-transform is unknown.
    """
    result = transformed(context, scores, name)
    return scores if scores.number(1) == 1 and name != "PROBIT" else result


def _softmax_of_nonzero(context: NodeContext, scores: Value) -> Value:
    """Returns the SOFTMAX_ZERO of scores: the softmax over all scores except those of nearly 0.

    A score of at most 1e-7 in magnitude is not part of the sum, and stays nearly 0.
    """
    most = arith.reduced(context, reduce.MaxOp, scores, [-1])
    magnitude = context.emit(elementwise.AbsOp, scores)
    counts = context.emit(logic.GreaterOp, magnitude, scores.dtype.type(1e-7))
    shares = context.emit(elementwise.ExpOp, arith.subtract(context, scores, most))
    shrink = context.emit(elementwise.ExpOp, arith.subtract(context, 0.0, most))
    total = arith.reduced(context, reduce.SumOp, arith.where(context, counts, shares, 0.0), [-1])
    small = arith.multiply(context, scores, shrink)
    return arith.divide(context, arith.where(context, counts, shares, small), total)


def _probit(context: NodeContext, scores: Value) -> Value:
    """Returns the quantile of the standard normal distribution, to about three digits."""
    x = arith.subtract(context, arith.multiply(context, scores, 2.0), 1.0)
    rest = arith.multiply(context, arith.subtract(context, 1.0, x), arith.add(context, x, 1.0))
    log = context.emit(elementwise.LogOp, rest)
    half = arith.add(context, arith.multiply(context, log, 0.5), 2 / (math.pi * 0.147))
    square = arith.multiply(context, half, half)
    inner = arith.subtract(context, square, arith.multiply(context, log, 1 / 0.147))
    outer = arith.subtract(context, context.emit(elementwise.SqrtOp, inner), half)
    size = context.emit(elementwise.SqrtOp, outer)
    inverse = arith.multiply(context, context.emit(elementwise.SignOp, x), size)
    return arith.multiply(context, inverse, math.sqrt(2))


def binary(context: NodeContext, score: Value, name: str, whole: float) -> Value:
    """Returns the scores of both classes `[N, 2]`, computed from the second class's score `[N,
    1]`.

    As in ONNX Runtime, only the transform LOGISTIC has an effect.

    Args:
        whole: the sum of both scores: 1 for probabilities, 0 if the scores are opposite.

    Raises:
        NodeRefused: the transform is unknown, or it is PROBIT, which defines no second score.
    """
    if name == "PROBIT" or name not in NAMES:
        raise NodeRefused(
            f"post_transform is '{name}' of one score for two classes; accepted are"
            " NONE, LOGISTIC, SOFTMAX and SOFTMAX_ZERO"
        )
    # the logistic makes shares of two opposites
    whole = 0.0 if name == "LOGISTIC" else whole
    both = arith.concatenate(context, [arith.subtract(context, whole, score), score], 1)
    return transformed(context, both, name) if name == "LOGISTIC" else both


def as_features(context: NodeContext, data: Value, *numbers: Array | None) -> Value:
    """Returns a model's input as rows of floats; a vector is one row.

    The type is f64 if the input is f64, else f32.

    Args:
        numbers: attributes that are tensors; if one is f64, the features are f64 too.

    Raises:
        NodeRefused: the input has another rank.
    """
    if data.rank not in (1, 2):
        raise NodeRefused(f"the input has shape {list(data.sizes)}, accepted is rank 1 or 2")
    types = [data.dtype, *(array.dtype for array in numbers if array is not None)]
    wanted = np.dtype(np.float64 if np.float64 in types else np.float32)
    rows = arith.reshape(context, data, [1, *data.sizes]) if data.rank == 1 else data
    return cast(context, rows, wanted)
