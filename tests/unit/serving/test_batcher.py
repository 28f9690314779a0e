"""Batches of requests: requests run together, and none gets the error of another."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np
import pytest
from served_models import F32, Doubling

from byoc_mlir.errors import ByocError, InternalError, InvalidInputError
from byoc_mlir.ray.batcher import Batcher
from byoc_mlir.ray.refusals import OverloadedError
from byoc_mlir.ray.served import Rows
from byoc_mlir.tensors import TensorInfo


class _Gated(Doubling):
    """Model whose first run waits until a test allows it."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Event()

    def run(self, inputs: Mapping[str, Any], /) -> Mapping[str, Any]:
        assert self.gate.wait(30)
        return super().run(inputs)


def _rows(count: int, first: float = 1) -> np.ndarray[Any, Any]:
    return np.full((count, 2), first, np.float32)


def _answers(model: Doubling, arrays: Sequence[np.ndarray[Any, Any]], **limits: int) -> list[Any]:
    """Returns the results of requests that arrive while the first of them runs."""

    async def all_of_them() -> list[Any]:
        with ThreadPoolExecutor(1) as executor:
            given: dict[str, Any] = {"most_rows": 8, "most_waiting": 99, **limits}
            batcher = Batcher(model, executor, **given)
            tasks = [asyncio.create_task(batcher.infer({"x": array})) for array in arrays]
            await asyncio.sleep(0.01)
            if isinstance(model, _Gated):
                model.gate.set()
            return await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(all_of_them())


def test_who_waits_runs_together() -> None:
    model, arrays = _Gated(), [_rows(1, n) for n in range(6)] + [_rows(5, 9), _rows(30, 8)]
    answers = _answers(model, arrays)
    for array, answer in zip(arrays, answers, strict=True):
        np.testing.assert_array_equal(answer["y"], 2 * array)
    assert sorted(model.runs) == [5, 6, 30]


def test_a_row_that_is_refused_hurts_no_other() -> None:
    arrays = [_rows(1), _rows(1, 13), _rows(2, 3), _rows(1, 4)]
    answers = _answers(_Gated(), arrays)
    assert isinstance(answers[1], InvalidInputError)
    for number in (0, 2, 3):
        np.testing.assert_array_equal(answers[number]["y"], 2 * arrays[number])


def test_more_than_may_wait_are_refused() -> None:
    answers = _answers(_Gated(), [_rows(1)] * 6, most_rows=1, most_waiting=4)
    assert sum(isinstance(answer, OverloadedError) for answer in answers) in (1, 2)
    assert all("y" in answer for answer in answers if not isinstance(answer, ByocError))


class _Summing(Doubling):
    """Model whose output has no rows."""

    def run(self, inputs: Mapping[str, Any], /) -> Mapping[str, Any]:
        return {"y": np.sum(super().run(inputs)["y"])}


class _Broken(Doubling):
    def run(self, inputs: Mapping[str, Any], /) -> Mapping[str, Any]:
        raise RuntimeError("out of order")


def test_outputs_without_rows_are_not_cut() -> None:
    assert [answer["y"] for answer in _answers(_Summing(), [_rows(1)] * 4)] == [4.0] * 4


def test_fixed_rows_run_alone() -> None:
    model = Doubling(1)
    assert all("y" in answer for answer in _answers(model, [_rows(1)] * 3))
    assert model.runs == [1, 1, 1]


def test_a_defect_is_an_answer_and_the_next_one_is_served() -> None:
    answers = _answers(_Broken(), [_rows(1)] * 3)
    assert all(isinstance(answer, InternalError) for answer in answers)


def test_who_leaves_is_forgotten() -> None:
    async def leave() -> None:
        model = _Gated()
        with ThreadPoolExecutor(1) as executor:
            batcher = Batcher(model, executor, most_rows=8, most_waiting=9)
            tasks = [asyncio.create_task(batcher.infer({"x": _rows(1, n)})) for n in range(3)]
            await asyncio.sleep(0.01)
            tasks[1].cancel()
            model.gate.set()
            np.testing.assert_array_equal((await tasks[2])["y"], _rows(1, 4))

    asyncio.run(leave())


@pytest.mark.parametrize(
    ("shapes", "rows"),
    [
        ([("n", 2), ("n",)], Rows(None)),
        ([("n", 2), ("m",)], None),
        ([("n", "n")], None),
        ([("n", "2*n")], None),
        ([("n", "length")], Rows(None)),
        ([(4, 2), (4,)], Rows(4)),
        ([()], None),
        ([(0, 2)], None),
        ([], None),
    ],
)
def test_what_rows_are(shapes: Sequence[tuple[int | str, ...]], rows: Rows | None) -> None:
    assert Rows.of([TensorInfo(f"x{n}", F32, shape) for n, shape in enumerate(shapes)]) == rows
