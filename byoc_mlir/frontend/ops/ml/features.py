"""Ops that prepare features."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import elementwise, index, logic, reduce
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.checked import checked
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.registry import register_op
from byoc_mlir.frontend.value import Array, NodeRefused, Value

DOMAIN = "ai.onnx.ml"
_F32 = np.dtype(np.float32)


@register_op(DOMAIN, "ArrayFeatureExtractor")
def array_feature_extractor(context: NodeContext, data: Value, indices: Value) -> Value:
    places = arith.reshape(context, indices, [math.prod(indices.sizes)])
    if data.rank == 1:
        data = arith.reshape(context, data, [1, *data.sizes])
    return context.emit(index.TakeOp, data, places, axis=-1)


@register_op(DOMAIN, "Binarizer")
def binarizer(context: NodeContext, data: Value, *, threshold: float = 0.0) -> Value:
    is_integer = np.issubdtype(data.dtype, np.integer)  # the threshold may lie between two of them
    numbers = cast(context, data, np.dtype(np.float64)) if is_integer else data
    above = context.emit(logic.GreaterOp, numbers, numbers.dtype.type(threshold))
    return cast(context, above, data.dtype)


def _per_feature(
    context: NodeContext,
    data: Value,
    numbers: Sequence[float],
    what: str,
    dtype: np.dtype[np.generic],
) -> Value:
    """Returns a constant vector with one number for all features, or one per feature."""
    count = arith.size_along(data, -1)
    if len(numbers) not in (1, count):
        raise VerifyException(
            f"{what} has {len(numbers)} entries, accepted is one, or one for each feature, which"
            f" are {count}"
        )
    return context.constant(list(numbers), dtype)


@register_op(DOMAIN, "Scaler")
def scaler(
    context: NodeContext,
    data: Value,
    *,
    offset: Sequence[float] | None = None,
    scale: Sequence[float] | None = None,
) -> Value:
    result = cast(context, data, _F32)
    if offset:
        shift = _per_feature(context, data, offset, "offset", _F32)
        result = arith.subtract(context, result, shift)
    if scale:
        factor = _per_feature(context, data, scale, "scale", _F32)
        result = arith.multiply(context, result, factor)
    return result


@register_op(DOMAIN, "Normalizer")
def normalizer(context: NodeContext, data: Value, *, norm: str = "MAX") -> Value:
    """Imports Normalizer; a row whose norm is 0 is unchanged."""
    if data.rank not in (1, 2):
        raise NodeRefused(f"the input has shape {list(data.sizes)}, accepted is rank 1 or 2")
    x = cast(context, data, _F32)
    if norm == "MAX":
        size = arith.reduced(context, reduce.MaxOp, x, [-1])
    elif norm == "L1":
        magnitude = context.emit(elementwise.AbsOp, x)
        size = arith.reduced(context, reduce.SumOp, magnitude, [-1])
    elif norm == "L2":
        square = arith.reduced(context, reduce.SumOp, arith.multiply(context, x, x), [-1])
        size = context.emit(elementwise.SqrtOp, square)
    else:
        raise NodeRefused(f"norm is '{norm}', accepted are MAX, L1, L2")
    is_zero = context.emit(logic.EqualOp, size, np.float32(0))
    return arith.divide(context, x, arith.where(context, is_zero, 1.0, size))


@register_op(DOMAIN, "Imputer")
def imputer(
    context: NodeContext,
    data: Value,
    *,
    imputed_value_floats: Sequence[float] | None = None,
    imputed_value_int64s: Sequence[int] | None = None,
    replaced_value_float: float = 0.0,
    replaced_value_int64: int = 0,
) -> Value:
    is_float = data.dtype.kind == "f"
    values = imputed_value_floats if is_float else imputed_value_int64s
    if not values:
        kind = "floats" if is_float else "int64s"
        raise NodeRefused(f"imputed_value_{kind} is missing, which elements {data.dtype} need")
    new = _per_feature(context, data, values, "imputed_value", data.dtype)
    replaced = replaced_value_float if is_float else replaced_value_int64
    if math.isnan(replaced):
        is_replaced = context.emit(logic.IsnanOp, data)
    else:
        is_replaced = context.emit(logic.EqualOp, data, data.dtype.type(replaced))
    return context.emit(elementwise.WhereOp, is_replaced, new, data)


@register_op(DOMAIN, "FeatureVectorizer")
def feature_vectorizer(
    context: NodeContext, *data: Value, inputdimensions: Sequence[int] | None = None
) -> Value:
    parts = [cast(context, each, _F32) for each in data]
    parts = [arith.reshape(context, p, [1, *p.sizes]) if p.rank == 1 else p for p in parts]
    found = [part.number(-1) if part.rank == 2 else -1 for part in parts]
    if -1 in found or (inputdimensions is not None and list(inputdimensions) != found):
        shapes = [list(each.sizes) for each in data]
        raise NodeRefused(
            f"the inputs have shapes {shapes} and inputdimensions is {inputdimensions}; accepted"
            " are matrices with as many columns as it says"
        )
    return arith.concatenate(context, parts, 1)


@register_op(DOMAIN, "ZipMap")
def zip_map(
    context: NodeContext,
    data: Value,
    *,
    classlabels_int64s: Sequence[int] | None = None,
    classlabels_strings: Sequence[str] | None = None,
) -> Value:
    """Returns the tensor itself; maps are built when a run returns the model's outputs."""
    count = len(classlabels_int64s or classlabels_strings or ())
    if data.rank != 2 or data.number(1) != count:
        raise VerifyException(
            f"the input has shape {list(data.sizes)}, accepted are two dimensions, the second of"
            f" {count} labels"
        )
    return data


@register_op(DOMAIN, "OneHotEncoder")
def one_hot_encoder(
    context: NodeContext,
    data: Value,
    *,
    cats_int64s: Sequence[int] | None = None,
    cats_strings: Sequence[str] | None = None,
    zeros: int = 1,
) -> Value:
    if not cats_int64s or cats_strings:
        raise NodeRefused("categories that are strings are not compiled; accepted are cats_int64s")
    whole = cast(context, data, np.dtype(np.int64))
    column = arith.reshape(context, whole, [*data.sizes, 1])
    categories = context.constant(list(cats_int64s), np.int64)
    encoded = cast(context, context.emit(logic.EqualOp, column, categories), _F32)
    if zeros:
        return encoded
    known = arith.reduced(context, reduce.MaxOp, encoded, [data.rank], keepdims=False)
    return checked(context, encoded, known, "whether an element is one of cats_int64s", 1, 1)


@register_op(DOMAIN, "LabelEncoder", since=2)
def label_encoder(
    context: NodeContext,
    data: Value,
    *,
    default_float: float = -0.0,
    default_int64: int = -1,
    default_string: str = "_Unused",
    default_tensor: Array | None = None,
    keys_floats: Sequence[float] | None = None,
    keys_int64s: Sequence[int] | None = None,
    keys_strings: Sequence[str] | None = None,
    keys_tensor: Array | None = None,
    values_floats: Sequence[float] | None = None,
    values_int64s: Sequence[int] | None = None,
    values_strings: Sequence[str] | None = None,
    values_tensor: Array | None = None,
) -> Value:
    keys = _numbers(keys_tensor, keys_int64s, keys_floats, "keys")
    values = _numbers(values_tensor, values_int64s, values_floats, "values")
    if keys.shape != values.shape:
        raise VerifyException(f"there are {keys.size} keys and {values.size} values")
    if default_tensor is None:
        other = values.dtype.type(default_int64 if values.dtype.kind == "i" else default_float)
    else:
        other = values.dtype.type(default_tensor.reshape(-1)[0])
    column = arith.reshape(context, data, [*data.sizes, 1])
    is_key = context.emit(logic.EqualOp, column, context.constant(keys, data.dtype))
    if context.opset >= 4 and data.dtype.kind == "f" and np.isnan(keys).any():
        is_nan = context.emit(logic.IsnanOp, column)
        both = context.emit(logic.LogicalAndOp, is_nan, context.constant(np.isnan(keys)))
        is_key = context.emit(logic.LogicalOrOp, is_key, both)
    hits = cast(context, is_key, np.dtype(np.int32))
    place = context.emit(reduce.ArgmaxOp, hits, axis=[-1], keepdims=False)
    is_known = arith.reduced(context, reduce.MaxOp, hits, [-1], keepdims=False)
    found = context.emit(index.TakeOp, context.constant(values), place, axis=0)
    condition = context.emit(logic.GreaterOp, is_known, np.int32(0))
    return context.emit(elementwise.WhereOp, condition, found, other)


def _numbers(
    tensor: Array | None,
    integers: Sequence[int] | None,
    floats: Sequence[float] | None,
    what: str,
) -> Array:
    if tensor is not None and tensor.dtype.kind in "if":
        return tensor.reshape(-1)
    if integers:
        return np.asarray(integers, np.int64)
    if floats:
        return np.asarray(floats, np.float32)
    raise NodeRefused(f"{what} that are strings are not compiled; accepted are numbers")


@register_op(DOMAIN, "DictVectorizer")
@register_op(DOMAIN, "CastMap")
def of_no_input(context: NodeContext, data: Value, **attributes: object) -> Value:
    """Refuses an op on a map that is not an input of the model; `frontend/maps.py` replaces maps
    that are inputs.
    """
    raise NodeRefused("what it reads must be an input of the model that is a map")
