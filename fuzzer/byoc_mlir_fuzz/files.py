"""Files of a failure: the model, its inputs, and a script that checks if it still fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from byoc_mlir_fuzz.case import Array, Case, Outcome, Settings
from byoc_mlir_fuzz.pool import worker_pool

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_MARK = ":bfloat16"
"""Suffix of the name of an array whose type the file format lacks; the array is stored as integers.
"""

_SCRIPT = '''\
"""{kind}: {message}

Found by case {name} of the fuzzer. Prints OK or FAIL.
"""

from byoc_mlir_fuzz.case import Settings
from byoc_mlir_fuzz.files import reproduce

if __name__ == "__main__":
    reproduce(__file__, {settings!r})
'''


def write_case(case: Case, folder: Path, stem: str) -> Path:
    """Writes the model and its inputs; returns the model's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}.{case.form}"
    path.write_bytes(case.model)
    arrays: dict[str, Any] = dict(
        _stored(f"{number}.{name}", array)
        for number, feeds in enumerate(case.feeds)
        for name, array in feeds.items()
    )
    np.savez(path.with_suffix(".npz"), runs=len(case.feeds), mutated=case.mutated, **arrays)
    return path


def read_case(path: Path) -> Case:
    """Reads a case that `write_case` wrote."""
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as stored:
        arrays: dict[str, Any] = dict(stored)
    feeds: list[dict[str, Array]] = [{} for _ in range(int(arrays.pop("runs")))]
    mutated = bool(arrays.pop("mutated"))
    for key, array in arrays.items():
        number, _, name = key.partition(".")
        feeds[int(number)][name.removesuffix(_MARK)] = _loaded(name, array)
    form = "mlir" if path.suffix == ".mlir" else "onnx"
    return Case(path.stem, path.read_bytes(), tuple(feeds), form, mutated)


def _stored(key: str, array: Array) -> tuple[str, Array]:
    if array.dtype == object:
        return key, array.astype(np.str_)
    if array.dtype == _BFLOAT16:
        return key + _MARK, array.view(np.uint16)
    return key, array


def _loaded(name: str, array: Array) -> Array:
    if array.dtype.kind == "U":
        return array.astype(object)
    return array.view(_BFLOAT16) if name.endswith(_MARK) else array


def write_script(case: Case, outcome: Outcome, settings: Settings, path: Path) -> None:
    """Writes the script beside the model at `path`."""
    message = outcome.message.replace("\\", "/").replace('"""', "'''")
    text = _SCRIPT.format(kind=outcome.kind, message=message, name=case.name, settings=settings)
    path.with_suffix(".py").write_text(text, encoding="utf-8")


def reproduce(script: str, settings: Settings, timeout: float = 60.0) -> None:
    """Runs the case beside a script in a separate process, and prints OK or FAIL."""
    path = Path(script)
    model = next(p for p in map(path.with_suffix, (".onnx", ".mlir")) if p.exists())
    with worker_pool(settings, 1, timeout) as pool:
        outcome = pool.judge(read_case(model))
    print(f"{'FAIL' if outcome.failed else 'OK'} {outcome.kind}: {outcome.message}")  # noqa: T201
