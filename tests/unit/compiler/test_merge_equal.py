"""`compile(merge_equal=…)`: ops with equal operands are computed once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.models import parsed

import byoc_mlir


@pytest.mark.parametrize(("merge_equal", "count"), [(False, 2), (True, 1)])
def test_equal_ops_are_computed_once(tmp_path: Path, merge_equal: bool, count: int) -> None:
    nodes = "a = Sin (x) b = Sin (x) y = Add (a, b)"
    model = parsed("(float[4] x) => (float[4] y)", nodes)
    x = np.linspace(-2, 2, 4, dtype=np.float32)
    with byoc_mlir.compile(
        model, (), 1, dump_ir=tmp_path, merge_equal=merge_equal, disable=["fuse-elementwise"]
    ) as executable:
        found = executable.run({"x": x})
    np.testing.assert_allclose(found["y"], 2 * np.sin(x), rtol=1e-6)
    before_lowering = max(
        path for path in tmp_path.glob("*.mlir") if "relay.sin" in path.read_text()
    )
    assert before_lowering.read_text().count(" relay.sin ") == count
