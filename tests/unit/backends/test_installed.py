"""Metadata of installed packages, compared with Python's own reading of it."""

from __future__ import annotations

from importlib.metadata import distributions, entry_points, version
from pathlib import Path

import pytest

from byoc_mlir.installed import installed_points, installed_version

GROUP = "byoc_mlir.backends"


def _install(folder: Path, points: str, metadata: str) -> None:
    info = folder / "made_up-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(metadata)
    (info / "entry_points.txt").write_text(points)


def test_of_two_of_one_name_the_first_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = "Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n\nName: of something else\n"
    _install(tmp_path / "later", f"[{GROUP}]\nlater = made_up:Later\n", metadata)
    monkeypatch.syspath_prepend(tmp_path / "later")
    assert "later" in {point.name for point in installed_points(GROUP)}
    _install(tmp_path / "first", "[console_scripts]\nmade-up = made_up:main\n", metadata)
    monkeypatch.syspath_prepend(tmp_path / "first")
    assert "later" not in {point.name for point in installed_points(GROUP)}
    assert set(installed_points(GROUP)) == set(entry_points(group=GROUP))


def test_versions_are_those_that_python_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Version of the form: 2.1\nName: made-up\nVersion: 1.5rc1\n\nVersion: 2\n"
    _install(tmp_path, "", f"Metadata-Version: 2.1\nSummary: {text}")
    monkeypatch.syspath_prepend(tmp_path)
    assert installed_version("made-up") == "1.5rc1"
    names = {one.name for one in distributions()}
    assert {name: installed_version(name) for name in names} == {
        name: version(name) for name in names
    }
