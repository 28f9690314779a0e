"""Conversion of a caller's maps to the tensors of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from byoc_mlir.errors import InvalidInputError
from byoc_mlir.runtime.program import Array
from byoc_mlir.tensors import MapRow


def row_of(row: MapRow, name: str, value: Any) -> Array:
    """Returns the tensor for a map; missing keys are 0, or an empty string.

    Args:
        name: name of the map in errors.

    Raises:
        InvalidInputError: the value is no map, or has keys or values of other types.
    """
    if not isinstance(value, Mapping):
        raise InvalidInputError(
            f"input '{name}' must be a map, as a dict, found {type(value).__name__}"
        )
    try:
        return _row(row, cast(Mapping[Any, Any], value))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError(
            f"input '{name}' must be a map whose values make {row.dtype}: {error}"
        ) from error


def _row(row: MapRow, value: Mapping[Any, Any]) -> Array:
    if row.keys is None:
        return np.array([[value[key] for key in sorted(value)]]).astype(row.dtype)
    array = np.full((1, len(row.keys)), "" if row.dtype == object else 0, row.dtype)
    for key, number in value.items():
        if key in row.places:
            array[0, row.places[key]] = number
    return array
