"""What needs a package that is not there says what to install."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import byoc_mlir
from byoc_mlir.errors import ByocError
from byoc_mlir.extras import import_extra


def test_a_missing_package() -> None:
    message = "'no_such_package' is not installed; install it with `pip install 'byoc_mlir"
    with pytest.raises(ByocError, match=message + r"\[npu\]'`"):
        import_extra("no_such_package.part", "npu")


def test_a_package_that_misses_another_is_no_missing_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_package.py").write_text("import no_such_package")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        import_extra("broken_package", "npu")


def test_without_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ByocError, match=r"'torch' is not installed.*byoc_mlir\[torch\]"):
        byoc_mlir.from_torch(None, ())
