"""Classical models as converters wrote them, `make.py` in each folder, against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from frozen_models import check_model, models_in

NUMBERS = np.random.default_rng(0).standard_normal((12, 6)).astype(np.float32)
COLOURS = np.array([["red"], ["green"], ["blue"], ["green"]], object)


@pytest.mark.parametrize("path", models_in("pipelines"), ids=lambda path: path.stem)
def test_pipeline(path: Path) -> None:
    endings = {"strings": COLOURS, "maps": {"green": 0.5, "red": -1.25, "grey": 3.0}}
    data = endings.get(path.stem.rpartition("_of_")[2], NUMBERS)
    check_model(path, {"X": data}, targets=())


@pytest.mark.parametrize("path", models_in("boosters"), ids=lambda path: path.stem)
def test_booster(path: Path) -> None:
    data = NUMBERS.copy()
    data[::3, 2] = np.nan
    data[1, 0] = 0
    check_model(path, {"X": data}, targets=())
