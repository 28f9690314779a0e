"""Libraries with their own OpenMP runtime in one process with ours, in every order of imports."""

from __future__ import annotations

import subprocess
import sys
from itertools import permutations

import pytest

_USES = {
    "byoc_mlir": """
import byoc_mlir
from onnx import parser
model = parser.parse_model('''<ir_version: 8, opset_import: ["" : 18]>
g (float[64, 64] x) => (float[64, 64] y) { a = MatMul(x, x)  y = Softmax(a) }''')
executable = byoc_mlir.compile(model, threads=2, fallback="allow")
x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
def byoc_run():
    e = np.exp((x @ x) - (x @ x).max(1, keepdims=True))
    found = executable.run({"x": x})["y"]
    np.testing.assert_allclose(found, e / e.sum(1, keepdims=True), atol=1e-5)
runs.append(byoc_run)
""",
    "torch": """
import torch
torch.set_num_threads(2)
def torch_run():
    a = torch.ones(300, 300)
    assert float((a @ a).sum()) == 300.0**3
runs.append(torch_run)
""",
    "sklearn": """
from sklearn.ensemble import HistGradientBoostingRegressor
def sklearn_run():
    data = np.random.default_rng(1).standard_normal((500, 4))
    fitted = HistGradientBoostingRegressor(max_iter=5).fit(data, data[:, 0])
    assert fitted.score(data, data[:, 0]) > 0.3
runs.append(sklearn_run)
""",
}


@pytest.mark.parametrize("order", list(permutations(_USES)))
def test_all_run_after_each_other(order: tuple[str, ...]) -> None:
    imports = "".join(_USES[name] for name in order)
    script = (
        f"import numpy as np\nruns = []\n{imports}\nfor _ in range(3):\n    [run() for run in runs]"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], timeout=300, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
