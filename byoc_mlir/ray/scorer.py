"""Scoring of a dataset's rows by a model, for Ray Data's `map_batches`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from byoc_mlir.errors import InvalidInputError
from byoc_mlir.ray.datatypes import Array
from byoc_mlir.ray.served import Rows, check_tensors, open_model, output_tensors
from byoc_mlir.ray.shipping import ShippedModel
from byoc_mlir.runtime.arguments import fits
from byoc_mlir.tensors import TensorInfo

ERROR = "error"
"""Column with the reason why a row was refused; empty for scored rows."""

Row: TypeAlias = Mapping[str, Any]
Prepare: TypeAlias = Callable[[Row], Row]
_Numbered: TypeAlias = tuple[int, Mapping[str, Array]]

_LOG = logging.getLogger(__name__)


class Scorer:
    """Scorer of batches of rows. Each worker creates one, which loads the model.

    A row that does not fit the model, or that the model refuses, does not affect other rows: its
    outputs are NaN, 0 or empty, and the column `error` has the reason.

    Args:
        model: a path that is valid on all nodes, or the result of `ship`.
        columns: the column from which each input of the model is read; by default the column of the
            input's name.
        prepare: computes the inputs of a row from its columns, in place of `columns`; an exception
            that it raises is the row's error.
        keep: the columns that stay beside the outputs; by default all that are not inputs.
        options: options of `compile`.

    Raises:
        ByocError: the model cannot be loaded or compiled, or has an input that is not a tensor.
    """

    def __init__(
        self,
        model: str | Path | ShippedModel,
        *,
        columns: Mapping[str, str] | None = None,
        prepare: Prepare | None = None,
        keep: Sequence[str] | None = None,
        options: Mapping[str, Any] | None = None,
    ):
        path = model.place() if isinstance(model, ShippedModel) else Path(model)
        self._model = open_model(path, **(options or {}))
        check_tensors(self._model.inputs)
        self._outputs = output_tensors(path, self._model)
        self._rows = Rows.of(self._model.inputs)
        self._columns = {info.name: info.name for info in self._model.inputs} | dict(columns or {})
        self._prepare = prepare
        self._keep = keep

    def __call__(self, batch: Mapping[str, Array]) -> dict[str, Array]:
        """Runs the model on a batch: returns its columns, with the outputs and the errors in place
        of the inputs.

        Raises:
            InvalidInputError: a column is missing that is an input or is kept.
            ByocError: the run fails for a reason other than the rows.
        """
        kept = self._kept(batch)
        count = len(next(iter(batch.values()))) if batch else 0
        errors = [""] * count
        results: list[Row | None] = [None] * count
        ready = list(self._read(batch, count, errors))
        for group in _groups(ready):
            for number, result in self._run(group, errors):
                results[number] = result
        self._report(errors)
        columns = {info.name: self._column(info, results) for info in self._outputs}
        return {**kept, **columns, ERROR: np.array(errors, dtype=np.str_)}

    def _kept(self, batch: Mapping[str, Array]) -> dict[str, Array]:
        inputs = set() if self._prepare else {*self._columns.values()}
        made = {*(info.name for info in self._outputs), ERROR}
        names = (
            [name for name in batch if name not in inputs | made]
            if self._keep is None
            else self._keep
        )
        wanted = {*names, *inputs}
        if not wanted <= batch.keys():
            raise InvalidInputError(
                f"there is no column {', '.join(sorted(wanted - batch.keys()))}; the rows have"
                f" {', '.join(batch)}"
            )
        return {name: batch[name] for name in names}

    def _read(
        self, batch: Mapping[str, Array], count: int, errors: list[str]
    ) -> Sequence[_Numbered]:
        """Returns the rows that fit the model, with their numbers, and records the errors of the
        others.
        """
        found: list[_Numbered] = []
        for number in range(count):
            try:
                found.append((number, self._inputs({key: batch[key][number] for key in batch})))
            except InvalidInputError as error:
                errors[number] = str(error)
        return found

    def _inputs(self, row: Row) -> Mapping[str, Array]:
        """Returns the model's inputs for one row.

        Raises:
            InvalidInputError: they do not fit the model.
        """
        if self._prepare is not None:
            row = _prepared(self._prepare, row)
        else:
            row = {name: row[column] for name, column in self._columns.items()}
        return {info.name: self._tensor(info, row) for info in self._model.inputs}

    def _tensor(self, info: TensorInfo, row: Row) -> Array:
        if row.get(info.name) is None:
            raise InvalidInputError(f"input '{info.name}' has no value")
        shape = info.shape if self._rows is None else info.shape[1:]
        array = _converted(row[info.name], info)
        if not fits(shape, array.shape):
            raise InvalidInputError(
                f"input '{info.name}' of a row must have shape [{', '.join(map(str, shape))}],"
                f" found {list(array.shape)}"
            )
        return array

    def _run(self, group: Sequence[_Numbered], errors: list[str]) -> Sequence[tuple[int, Row]]:
        """Returns the results of rows of one shape, and records the errors of refused rows."""
        together = self._rows.count or len(group) if self._rows is not None else 1
        results: list[tuple[int, Row]] = []
        for start in range(0, len(group), together):
            some = group[start : start + together]
            try:
                results += self._ran(some, together)
            except InvalidInputError as error:
                if len(some) > 1:
                    for one in some:
                        results += self._run_alone(one, together, errors)
                else:
                    errors[some[0][0]] = str(error)
        return results

    def _run_alone(
        self, one: _Numbered, together: int, errors: list[str]
    ) -> Sequence[tuple[int, Row]]:
        try:
            return self._ran([one], together if self._rows == Rows(together) else 1)
        except InvalidInputError as error:
            errors[one[0]] = str(error)
            return []

    def _ran(self, some: Sequence[_Numbered], together: int) -> Sequence[tuple[int, Row]]:
        """Runs the model once; if it takes more rows than there are, the last row is repeated."""
        if self._rows is None:
            ((number, arrays),) = some
            return [(number, self._model.run(arrays))]
        filled = [*some, *[some[-1]] * (together - len(some))]
        outputs = self._model.run(
            {name: np.stack([arrays[name] for _, arrays in filled]) for name in some[0][1]}
        )
        for name, array in outputs.items():
            if array.shape[:1] != (len(filled),):
                raise InvalidInputError(
                    f"output '{name}' has shape {list(array.shape)} for {len(filled)} rows"
                )
        return [
            (number, {name: array[place] for name, array in outputs.items()})
            for place, (number, _) in enumerate(some)
        ]

    def _column(self, info: TensorInfo, results: Sequence[Row | None]) -> Array:
        """Returns an output of all rows as one column; refused rows get NaN, 0 or an empty text."""
        known = [result[info.name] for result in results if result is not None]
        shapes = {np.shape(one) for one in known}
        declared = info.shape if self._rows is None else info.shape[1:]
        empty = tuple(size if isinstance(size, int) else 0 for size in declared)
        nothing = np.full(shapes.pop() if len(shapes) == 1 else empty, _nothing(info), info.dtype)
        values = [nothing if result is None else result[info.name] for result in results]
        if len({np.shape(one) for one in values}) == 1:
            return np.stack(values)
        column = np.empty(len(values), dtype=object)
        column[:] = values
        return column

    def _report(self, errors: Sequence[str]) -> None:
        refused = [error for error in errors if error]
        if refused:
            _LOG.warning("%d of %d rows refused; %s", len(refused), len(errors), refused[0])


def _prepared(prepare: Prepare, row: Row) -> Row:
    try:
        return prepare(row)
    except Exception as error:  # the caller's code raises what it likes
        raise InvalidInputError(f"prepare raised {type(error).__name__}: {error}") from error


def _converted(value: object, info: TensorInfo) -> Array:
    """Returns a value as an array of the input's type, if the conversion loses no more than
    digits."""
    try:
        array = np.asarray(value)
        if array.dtype == object and info.dtype != object:
            array = np.array(array.tolist())
    except ValueError as error:
        raise InvalidInputError(f"input '{info.name}' is no array: {error}") from error
    if not _can_become(array, info.dtype):
        raise InvalidInputError(
            f"input '{info.name}' of a row must be of {info.dtype}, found {array.dtype}, with"
            " numbers that are none"
        )
    return array.astype(info.dtype)


def _can_become(array: Array, dtype: np.dtype[Any]) -> bool:
    """True if a conversion to `dtype` loses no more than digits. Integers with gaps come as floats,
    so integral floats may become integers.
    """
    if dtype.kind not in "iu":
        return np.can_cast(array.dtype, dtype, "same_kind")
    if array.dtype.kind not in "biuf":
        return False
    with np.errstate(invalid="ignore"):
        return bool(np.all(array.astype(dtype) == array))


def _groups(rows: Sequence[_Numbered]) -> Sequence[Sequence[_Numbered]]:
    """Groups rows by the shapes of their inputs."""
    groups: dict[object, list[_Numbered]] = {}
    for number, arrays in rows:
        key = tuple(array.shape for array in arrays.values())
        groups.setdefault(key, []).append((number, arrays))
    return list(groups.values())


def _nothing(info: TensorInfo) -> Any:
    """Returns the element that stands for a missing output: NaN, an empty text, or 0."""
    if info.dtype.kind in "fV":
        return np.nan
    return "" if info.dtype.kind == "O" else 0
