"""Datasets of Ray Data, scored by workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from byoc_mlir.extras import import_extra
from byoc_mlir.ray.datatypes import Array
from byoc_mlir.ray.scorer import ERROR, Scorer
from byoc_mlir.ray.served import EXTRA
from byoc_mlir.ray.shipping import ShippedModel, ship

_BATCHES_A_BLOCK = 4
"""Batches in each block of rows: small blocks keep all workers busy, large ones cost less."""


def score(
    dataset: Any,
    model: str | Path | ShippedModel,
    *,
    workers: int = 1,
    batch_rows: int = 64,
    **arguments: Any,
) -> Any:
    """Returns a dataset with the model's outputs and the column `error` in place of the inputs.

    The model is shipped to each node once. Ray Data restarts a worker that dies, and another worker
    scores its batches: each row is in the result once. Ray reads a small file as one block; the
    block is split, so that every worker gets rows of it.

    Args:
        dataset: a `ray.data.Dataset`.
        model: the path of an `.onnx` or `.so` file, or the result of `ship`.
        workers: processes that score, a core each.
        batch_rows: rows that a worker gets at once.
        arguments: arguments of `Scorer`.

    Returns:
        A dataset that is computed when it is read, as in all of Ray Data.

    Raises:
        MissingExtraError: Ray is not installed.
        InvalidModelError: the model cannot be read.
    """
    shipped = model if isinstance(model, ShippedModel) else ship(model)
    split = dataset.repartition(target_num_rows_per_block=_BATCHES_A_BLOCK * batch_rows)
    return split.map_batches(
        Scorer,
        fn_constructor_args=(shipped,),
        fn_constructor_kwargs=arguments,
        batch_format="numpy",
        batch_size=batch_rows,
        compute=import_extra("ray.data", EXTRA).ActorPoolStrategy(size=workers),
        num_cpus=1,
    )


def apart(scored: Any) -> tuple[Any, Any]:
    """Returns two datasets: the rows that were scored, without `error`, and the rows that were
    refused.

    The dataset is computed once, for both.
    """
    computed = scored.materialize()
    good = computed.map_batches(_rows, fn_args=(False,), batch_format="numpy")
    bad = computed.map_batches(_rows, fn_args=(True,), batch_format="numpy")
    return good.drop_columns([ERROR]), bad


def _rows(batch: dict[str, Array], refused: bool) -> dict[str, Array]:
    chosen = (batch[ERROR] != "") == refused
    return {name: column[chosen] for name, column in batch.items()}
