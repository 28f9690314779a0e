"""Measurements for tests that say what things take."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from byoc_mlir.rates import Measurement, Rates, write_rates


def measured(**groups: Mapping[str, float | str]) -> list[Measurement]:
    """Returns measurements by group and the rest of their keys."""
    return [
        Measurement(f"{group}/{key}", "", "a test", value)
        for group, values in groups.items()
        for key, value in values.items()
    ]


def write_measured(path: Path, **groups: Mapping[str, float | str]) -> None:
    """Writes a file of rates that says so, and nothing else."""
    write_rates(Rates(measured(**groups)), path)
