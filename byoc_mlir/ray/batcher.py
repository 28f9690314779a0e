"""Batches of waiting requests: their rows become one batch, and each request gets its rows back."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from byoc_mlir.boundary import translated
from byoc_mlir.errors import ByocError
from byoc_mlir.ray.datatypes import Array
from byoc_mlir.ray.refusals import OverloadedError
from byoc_mlir.ray.served import Model, Rows

Arrays: TypeAlias = Mapping[str, Array]
Outputs: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class _Waiting:
    """Request that waits."""

    arrays: Arrays
    rows: int
    kind: Hashable
    """Kind of the request: requests of one kind may run together; `None`: this one runs alone."""
    answer: asyncio.Future[Outputs]


class Batcher:
    """Queue that runs a model for requests, one batch after the other.

    No request waits for further ones: a batch has the requests that arrived while the one before
    ran, as far as their shapes fit. If a batch fails, its requests run one by one, so that none
    gets the error of another.

    Args:
        model: the model; it is called in a thread of the executor.
        most_rows: the most rows of a batch; 1: each request runs alone.
        most_waiting: the most requests that wait; further ones are refused.
        ran: called with the number of rows of each run.
    """

    def __init__(
        self,
        model: Model,
        executor: Executor,
        *,
        most_rows: int,
        most_waiting: int,
        ran: Callable[[int], None] = lambda rows: None,
    ):
        self._model = model
        self._executor = executor
        self._most_rows = most_rows
        self._most_waiting = most_waiting
        self._ran = ran
        self._may_combine = most_rows > 1 and Rows.of(model.inputs) == Rows(None)
        self._waiting: deque[_Waiting] = deque()
        self._working: asyncio.Task[None] | None = None

    async def infer(self, arrays: Arrays) -> Outputs:
        """Returns the outputs for one request, which may run in a batch with others.

        Raises:
            OverloadedError: too many wait.
            ByocError: running the model failed.
        """
        if len(self._waiting) >= self._most_waiting:
            raise OverloadedError(
                f"{len(self._waiting)} requests wait, which is the limit; ask again later"
            )
        answer: asyncio.Future[Outputs] = asyncio.get_running_loop().create_future()
        rows, kind = self._rows_and_kind(arrays)
        self._waiting.append(_Waiting(arrays, rows, kind, answer))
        if self._working is None:
            self._working = asyncio.create_task(self._work())
        return await answer

    def _rows_and_kind(self, arrays: Arrays) -> tuple[int, Hashable]:
        rows = {array.shape[:1] for array in arrays.values()}
        if not self._may_combine or len(rows) != 1:
            return 0, None
        ((count,),) = rows
        kind = tuple((name, array.shape[1:]) for name, array in sorted(arrays.items()))
        return count, kind if 0 < count < self._most_rows else None

    async def _work(self) -> None:
        """Runs batches until no request waits."""
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                batch = self._next_batch()
                answers = await loop.run_in_executor(self._executor, self._answers, batch)
                for one, answer in zip(batch, answers, strict=True):
                    _give(one.answer, answer)
        finally:
            self._working = None

    def _next_batch(self) -> Sequence[_Waiting]:
        """Takes from the queue the request that has waited longest and later ones that fit its
        batch.
        """
        first = self._waiting.popleft()
        batch, rows, others = [first], first.rows, deque[_Waiting]()
        for one in self._waiting:
            fits = first.kind is not None and one.kind == first.kind
            if fits and rows + one.rows <= self._most_rows:
                batch.append(one)
                rows += one.rows
            else:
                others.append(one)
        self._waiting = others
        return batch

    def _answers(self, batch: Sequence[_Waiting]) -> Sequence[Outputs | ByocError]:
        """Returns the outputs or the error of each request of a batch; runs in a thread of the
        executor.
        """
        batch_outputs = self._together(batch) if len(batch) > 1 else None
        if batch_outputs is not None:
            return batch_outputs
        return [self._alone(one) for one in batch]

    def _alone(self, one: _Waiting) -> Outputs | ByocError:
        if one.answer.cancelled():
            return {}
        try:
            self._ran(one.rows)
            return self._model.run(one.arrays)
        except ByocError as error:
            return error
        except Exception as error:
            return translated(error, "run")

    def _together(self, batch: Sequence[_Waiting]) -> Sequence[Outputs] | None:
        """Runs a batch as one input and returns each request's rows of the outputs; `None` if the
        run fails or an output has no rows.
        """
        names, rows = batch[0].arrays, [one.rows for one in batch]
        try:
            joined = {name: np.concatenate([one.arrays[name] for one in batch]) for name in names}
            outputs = self._model.run(joined)
        except Exception:  # whose fault it is, each finds alone
            return None
        arrays = [array for array in outputs.values() if isinstance(array, np.ndarray)]
        has_rows = all(array.shape[:1] == (sum(rows),) for array in arrays)
        if not has_rows or len(arrays) < len(outputs):
            self._may_combine = False  # its outputs are not made of rows
            return None
        self._ran(sum(rows))
        ends = np.cumsum(rows)
        return [
            {name: array[end - one.rows : end] for name, array in outputs.items()}
            for one, end in zip(batch, ends, strict=True)
        ]


def _give(future: asyncio.Future[Outputs], answer: Outputs | ByocError) -> None:
    if future.done():  # the client is gone
        return
    if isinstance(answer, ByocError):
        future.set_exception(answer)
    else:
        future.set_result(answer)
