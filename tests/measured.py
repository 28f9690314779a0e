"""Measurements for tests of estimated times."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from byoc_mlir.calibration import Calibration, Measurement, write_calibration


def measured(**groups: Mapping[str, float | str]) -> list[Measurement]:
    """Returns measurements by group and the rest of their keys."""
    return [
        Measurement(f"{group}/{key}", "", "a test", value)
        for group, values in groups.items()
        for key, value in values.items()
    ]


def write_measured(path: Path, **groups: Mapping[str, float | str]) -> None:
    """Writes a calibration file that has only these measurements."""
    write_calibration(Calibration(measured(**groups)), path)
