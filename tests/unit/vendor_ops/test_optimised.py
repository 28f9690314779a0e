"""Transformers as ONNX Runtime's optimiser rewrites them, `optimised/make.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from frozen_models import check_model, models_in

from byoc_mlir.testing.reference import random_inputs


@pytest.mark.parametrize("path", models_in("optimised"), ids=lambda path: path.stem)
def test_optimised(path: Path) -> None:
    inputs: dict[str, Any] = dict(random_inputs(onnx.load(path)))
    if "attention_mask" in inputs:
        mask = inputs["attention_mask"]
        inputs["attention_mask"] = np.ones_like(mask)
        inputs["attention_mask"][1:, 6:] = 0  # the second text is shorter
    check_model(path, inputs, targets=())
