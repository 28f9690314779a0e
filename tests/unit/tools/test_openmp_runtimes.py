"""OpenMP runtimes, found by name in the process and in packages; several are reported."""

from __future__ import annotations

from pathlib import Path, PurePath

import pytest

from byoc_mlir.runtime.system.libraries import find_openmp
from byoc_mlir.tools.commands.doctor import (
    describe_runtimes,
    is_openmp_runtime,
    loaded_runtimes,
    packaged_runtimes,
)

MAPS = """\
55d0c0000000-55d0c0001000 r--p 00000000 08:01 11 /usr/bin/python3
7f0000000000-7f0000001000 r-xp 00000000 08:01 12 /usr/lib/libgomp.so.1.0.0
7f0000001000-7f0000002000 rw-p 00001000 08:01 12 /usr/lib/libgomp.so.1.0.0
7f0000002000-7f0000003000 rw-p 00000000 00:00 0
7f0000003000-7f0000004000 r-xp 00000000 08:01 13 /opt/a folder/torch/lib/libgomp-a34b3233.so.1
"""
GOMP, TORCHS = (
    Path("/usr/lib/libgomp.so.1.0.0"),
    Path("/opt/a folder/torch/lib/libgomp-a34b3233.so.1"),
)


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("libgomp.so.1", True),
        ("libgomp-1d6e2ad0.so.1.0.0", True),
        ("libiomp5.so", True),
        ("libomp.so", True),
        ("libomp-14.so.5", True),
        ("libompd.so", False),
        ("libgomp-plugin-nvptx.so.1", False),
        ("libopenblas64_p-r0.so", False),
        ("libgomp.spec", False),
    ],
)
def test_names(name: str, is_one: bool) -> None:
    assert is_openmp_runtime(PurePath("/lib", name)) == is_one


def test_runtimes_in_a_process() -> None:
    assert loaded_runtimes(MAPS) == [GOMP, TORCHS]
    if find_openmp() is not None:
        assert any(path.name.startswith("libgomp") for path in loaded_runtimes())


def test_runtimes_of_packages_exist() -> None:
    assert all(is_openmp_runtime(path) for _, path in packaged_runtimes())


def test_two_runtimes_are_told() -> None:
    assert describe_runtimes([GOMP], []) == [("OpenMP, loaded", str(GOMP))]
    *rows, (kind, text) = describe_runtimes([GOMP, TORCHS], [("torch", TORCHS)])
    assert rows == [("OpenMP, loaded", str(GOMP)), ("OpenMP, loaded", str(TORCHS))]
    assert kind == "warning"
    assert "2 OpenMP runtimes" in text
    *_, (kind, text) = describe_runtimes([GOMP], [("torch", TORCHS)])
    assert kind == "warning"
    assert "with torch" in text
