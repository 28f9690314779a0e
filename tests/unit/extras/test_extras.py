"""Errors on missing packages: they name the extra to install."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import byoc_mlir
from byoc_mlir.errors import MissingExtraError
from byoc_mlir.extras import import_extra
from byoc_mlir.torch.tensors import pytorch


def test_a_missing_package() -> None:
    message = r"No module named 'no_such_package'; install it with `pip install 'byoc_mlir\[npu\]'`"
    with pytest.raises(MissingExtraError, match=message):
        import_extra("no_such_package.part", "npu")


def test_a_package_that_misses_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_package.py").write_text("import no_such_package")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtraError, match=r"'broken_package'.*'no_such_package'"):
        import_extra("broken_package", "npu")


def test_without_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    pytorch.cache_clear()
    with pytest.raises(MissingExtraError, match=r"'torch' cannot be imported.*byoc_mlir\[torch\]"):
        byoc_mlir.from_torch(None, ())
