"""A library of another package, which a stored program finds on another machine."""

from __future__ import annotations

from pathlib import Path

from byoc_mlir.installed import library_in_wheel
from byoc_mlir.runtime.program import SharedLibrary
from byoc_mlir.runtime.system.libraries import located

_WHEEL, _FILE = "scipy-openblas64", "libscipy_openblas64_.so"


def test_a_library_is_found_in_its_wheel(tmp_path: Path) -> None:
    library = SharedLibrary(Path("/nowhere", _FILE), wheels=("no-such-wheel", _WHEEL))

    assert located(library, tmp_path).path == library_in_wheel(_WHEEL, _FILE)
