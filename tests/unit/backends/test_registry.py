"""Finding, registering and refusing backends."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.func import FuncOp

from byoc_mlir.backends import (
    Backend,
    CodegenContext,
    CSource,
    backend_names,
    get_backend,
    get_backends,
    load_backend_module,
    register_backend,
)
from byoc_mlir.errors import BackendError
from byoc_mlir.tools.commands.doctor import findings


class _Base(Backend):
    def codegen(self, region: FuncOp, context: CodegenContext) -> CSource:
        return CSource("")


@pytest.mark.parametrize("name", ["", "two.parts", None])
def test_malformed_names_are_refused(name: str | None) -> None:
    cls = type("Malformed", (_Base,), {"name": name})
    with pytest.raises(BackendError, match="without a dot"):
        register_backend(cls)


def test_a_name_is_registered_once() -> None:
    first = type("First", (_Base,), {"name": "registered_once"})
    register_backend(first)
    register_backend(first)  # the same class again is no clash
    with pytest.raises(BackendError, match="'registered_once' is registered already"):
        register_backend(type("Second", (_Base,), {"name": "registered_once"}))


def test_a_class_that_is_defined_again_replaces_the_earlier_one() -> None:
    register_backend(type("Edited", (_Base,), {"name": "edited"}))
    later = register_backend(type("Edited", (_Base,), {"name": "edited"}))
    assert type(get_backend("edited")) is later


def test_another_api_version_is_refused() -> None:
    with pytest.raises(BackendError, match="API version 99"):
        register_backend(type("Future", (_Base,), {"name": "future", "api_version": 99}))


def test_an_installed_package_is_checked_when_it_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "installed_future-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: installed_future\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[byoc_mlir.backends]\ninstalled_future = installed_future:Future\n"
    )
    (tmp_path / "installed_future.py").write_text(
        "from byoc_mlir.backends import Backend\n"
        "class Future(Backend):\n"
        "    name = 'installed_future'\n"
        "    api_version = 99\n"
        "    def codegen(self, region, context):\n"
        "        raise AssertionError\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert "installed_future" in backend_names()
    with pytest.raises(BackendError) as info_of_error:
        get_backends(("installed_future",))
    assert "written for API version 99, this byoc_mlir has version 2" in str(info_of_error.value)
    assert "install a matching release of either" in str(info_of_error.value)
    (row,) = [found for what, found in findings(measure=False) if what.endswith("installed_future")]
    assert "written for API version 99" in row


def test_unknown_backend_lists_the_known() -> None:
    with pytest.raises(BackendError, match=r"no backend is named 'nowhere'; known are .*dnnl"):
        get_backend("nowhere")


def test_unusable_backend_says_why() -> None:
    broken = {"name": "needs_card", "unavailable": lambda self: "no card in any slot"}
    register_backend(type("NeedsCard", (_Base,), broken))
    with pytest.raises(BackendError, match="'needs_card' is not usable here: no card"):
        get_backends(("needs_card",))


def test_targets_are_named_once() -> None:
    with pytest.raises(BackendError, match="twice"):
        get_backends(("dnnl", "dnnl"))


def test_backend_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "vendor.py"
    path.write_text(
        "from byoc_mlir.backends import Backend, CSource, register_backend\n"
        "@register_backend\n"
        "class Vendor(Backend):\n"
        "    name = 'from_a_file'\n"
        "    def codegen(self, region, context):\n"
        "        return CSource('')\n"
    )
    load_backend_module(str(path))
    assert "from_a_file" in backend_names()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("/nowhere/backend.py", "no backend"),
        ("no_such_package.backend", "cannot be loaded: .*No module named 'no_such_package'"),
    ],
)
def test_missing_backend_module(spec: str, message: str) -> None:
    with pytest.raises(BackendError, match=message):
        load_backend_module(spec)
