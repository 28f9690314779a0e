"""Nodes that no importer knows, kept for a backend that does: docs/backends.md."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto
from registered import hide_own_ops

import byoc_mlir
from byoc_mlir.errors import UnsupportedModelError
from byoc_mlir.frontend import NodeContext, Value, carry, register_op
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

PAGE = Path(__file__).parents[3] / "docs" / "backends.md"


def test_the_page_runs() -> None:
    code = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    command = [sys.executable, "-W", "error::UserWarning", "-c", "".join(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _model(op: str) -> ModelProto:
    return onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
        g (float[2, 3, 3] x) => (float[2, 3, 3] y) {{
            a = Add (x, x)
            b = com.microsoft.{op} (a)
            y = Relu (b)
        }}
    """)


def _carried(context: NodeContext, data: Value) -> Value:
    return carry(context, "com.microsoft", [data], [(data.dtype, data.shape)])[0]


@pytest.fixture(autouse=True)
def _carried_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registers two importers, and hides them from other tests."""
    hide_own_ops(monkeypatch)
    for name in ("Inverse", "NoSuchOp"):
        register_op("com.microsoft", name)(_carried)


def test_the_rest_stays_where_it_is(recwarn: pytest.WarningsRecorder) -> None:
    model = _model("Inverse")
    inputs = random_inputs(model)
    with byoc_mlir.compile(model, ("ccompiler", "onnxruntime"), fallback="allow") as executable:
        assert executable.report().counts() == {"ccompiler": 2, "onnxruntime": 1}
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs), 1e-4)
    assert not [one for one in recwarn if "no native code" in str(one.message)]


@pytest.mark.parametrize("targets", [(), ("ccompiler",), ("onnxruntime",)])
def test_an_op_that_nobody_knows(targets: tuple[str, ...]) -> None:
    message = r"com\.microsoft\.NoSuchOp\): no target takes it, and ONNX's evaluator, the last"
    with pytest.raises(UnsupportedModelError, match=message):
        byoc_mlir.compile(_model("NoSuchOp"), targets)
