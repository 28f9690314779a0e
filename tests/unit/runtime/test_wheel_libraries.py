"""Libraries of other packages, which a stored program finds on another machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from byoc_mlir.errors import IncompatibleArtifactError
from byoc_mlir.installed import library_in_wheel
from byoc_mlir.runtime.program import SharedLibrary
from byoc_mlir.runtime.system.libraries import located

_WHEEL, _FILE = "scipy-openblas64", "libscipy_openblas64_.so"


def test_a_library_is_found_in_its_wheel(tmp_path: Path) -> None:
    library = SharedLibrary(Path("/nowhere", _FILE), wheels=("no-such-wheel", _WHEEL))

    assert located(library, tmp_path).path == library_in_wheel(_WHEEL, _FILE)


def test_a_library_without_a_wheel_is_missing(tmp_path: Path) -> None:
    library = SharedLibrary(Path("/nowhere", _FILE), wheels=("no-such-wheel",))

    with pytest.raises(IncompatibleArtifactError, match=_FILE):
        located(library, tmp_path)
