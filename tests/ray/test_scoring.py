"""Rows of a dataset are scored by two workers, each row once, even if a worker dies."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from byoc_mlir.ray import apart, score

ray = pytest.importorskip("ray")

ROWS = 600
BAD = {17, 311}


def _model(path: Path) -> None:
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 2]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "twice", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)


def _table(folder: Path) -> None:
    """Writes rows in Parquet, some of a length that the model does not take."""
    import pyarrow
    from pyarrow import parquet

    values = [[float(n), 1.0] if n not in BAD else [float(n)] for n in range(ROWS)]
    for part in range(4):
        some = slice(part * ROWS // 4, (part + 1) * ROWS // 4)
        table = pyarrow.table({"id": list(range(ROWS))[some], "x": values[some]})
        parquet.write_table(table, folder / f"{part}.parquet")


def _dying(marker: Path) -> Any:
    """Returns a function that reads a row's input; the first worker that gets the middle row dies.

    It is a nested function, since workers cannot import a test.
    """

    def prepare(row: Mapping[str, Any]) -> Mapping[str, Any]:
        if row["id"] == ROWS // 2 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"x": row["x"]}

    return prepare


def test_each_row_is_scored_once_though_a_worker_dies(ray_machine: None, tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    rows.mkdir()
    _table(rows)
    _model(tmp_path / "twice.onnx")
    marker = tmp_path / "died"
    scored = score(
        ray.data.read_parquet(str(rows), override_num_blocks=8),
        tmp_path / "twice.onnx",
        workers=2,
        batch_rows=25,
        prepare=_dying(marker),
        keep=["id"],
        options={"targets": ()},
    )
    good, bad = apart(scored)
    table = good.to_pandas()
    assert marker.exists()
    assert sorted(table["id"]) == sorted(set(range(ROWS)) - BAD)
    by_id = table.set_index("id").sort_index()
    np.testing.assert_array_equal(np.stack(by_id["y"].to_list()), [[2 * n, 2] for n in by_id.index])
    refused = bad.to_pandas()
    assert set(refused["id"]) == BAD
    assert all("shape [2]" in error for error in refused["error"])


def _meeting(folder: Path) -> Any:
    """Returns a function that reads a row's input; the first row of each worker waits until two
    workers have rows.
    """

    def prepare(row: Mapping[str, Any]) -> Mapping[str, Any]:
        own = folder / str(os.getpid())
        if not own.exists():
            own.touch()
            end = time.monotonic() + 60
            while len(list(folder.iterdir())) < 2 and time.monotonic() < end:
                time.sleep(0.05)
        return {"x": row["x"]}

    return prepare


def test_one_block_of_rows_is_shared_by_all_workers(ray_machine: None, tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    _model(tmp_path / "twice.onnx")
    parquet.write_table(
        pyarrow.table({"id": list(range(ROWS)), "x": [[float(n), 1.0] for n in range(ROWS)]}),
        tmp_path / "rows.parquet",
    )
    workers = tmp_path / "workers"
    workers.mkdir()
    scored = score(
        ray.data.read_parquet(str(tmp_path / "rows.parquet"), override_num_blocks=1),
        tmp_path / "twice.onnx",
        workers=2,
        batch_rows=25,
        prepare=_meeting(workers),
        keep=["id"],
        options={"targets": ()},
    )
    table = scored.to_pandas().set_index("id").sort_index()
    assert len(list(workers.iterdir())) == 2
    np.testing.assert_array_equal(np.stack(table["y"].to_list()), [[2 * n, 2] for n in range(ROWS)])
