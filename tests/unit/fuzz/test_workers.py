"""Cases that crash, hang, raise or differ: found, grouped, minimised."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from byoc_mlir_fuzz.campaign import Campaign
from byoc_mlir_fuzz.case import Case, Settings
from byoc_mlir_fuzz.files import read_case, write_case
from byoc_mlir_fuzz.oracles import differences
from helpers.models import model_of, node

BACKEND = Path(__file__).parent / "faulty_backend.py"
FAULTY = Settings(targets=("faulty",), backends=(str(BACKEND),))


def model(*ops: str) -> bytes:
    """Returns a chain of unary ops on `x`, with an input `y` added at the end."""
    nodes = [node(op, f"v{number}", f"v{number + 1}") for number, op in enumerate(ops)]
    nodes.append(node("Add", f"v{len(ops)} y", "z"))
    inputs = {"v0": (2, 3), "y": (2, 3)}
    return model_of(nodes, inputs, outputs={"z": (2, 3)}, opset=17).SerializeToString()


def case(*ops: str, of: float = 1.0) -> Case:
    feeds = {"v0": np.full((2, 3), of, np.float32), "y": np.ones((2, 3), np.float32)}
    return Case("/".join(ops), model(*ops), (feeds,))


@pytest.mark.parametrize(
    ("op", "kind"),
    [("Abs", "crash"), ("Floor", "untyped error"), ("Sqrt", "wrong value")],
)
def test_a_failure_is_found_and_made_small(op: str, kind: str, tmp_path: Path) -> None:
    cases = [case("Neg", "Tanh"), case("Neg", op, "Tanh", "Relu"), case("Relu")]
    tally = Campaign(FAULTY, out=tmp_path).run(cases)
    assert tally.kinds == {"agrees": 2, kind: 1}
    (group,) = tally.failures()
    small = onnx.ModelProto.FromString(group.case.model)
    assert [node.op_type for node in small.graph.node] == [op]
    assert group.path is not None
    assert read_case(group.path).model == group.case.model
    assert group.path.with_suffix(".py").exists()


def test_a_hang_costs_only_its_case() -> None:
    tally = Campaign(FAULTY, timeout=15.0).run([case("Ceil"), case("Relu")])
    assert tally.kinds["hang"] == 1
    assert [group.names for group in tally.failures()] == [["Ceil"]]


@pytest.mark.parametrize(
    ("op", "of", "kind"),
    [
        ("Exp", 100.0, "undecided"),
        ("Exp", np.inf, "wrong value"),
        ("Exp", 1.0, "wrong value"),
        ("Sqrt", -1.0, "wrong value"),
    ],
)
def test_what_overflows_in_a_region_is_open(op: str, of: float, kind: str) -> None:
    assert Campaign(FAULTY).run([case(op, of=of)]).kinds == {kind: 1}


def test_a_case_is_read_as_it_was_written(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    feeds = {"v0": np.ones((2, 3), ml_dtypes.bfloat16), "y": np.arange(6).reshape(2, 3)}
    written = Case("c", b"module {}", (feeds,), "mlir", True)
    read = read_case(write_case(written, tmp_path, "c"))
    assert (read.model, read.form, read.mutated) == (written.model, "mlir", True)
    for name, array in feeds.items():
        assert read.feeds[0][name].dtype == array.dtype
        assert np.array_equal(read.feeds[0][name], array)


@pytest.mark.parametrize(
    ("got", "want", "differ"),
    [
        ([1.0, np.nan], [1.0, np.nan], False),
        ([1.0, np.nan], [1.0, 2.0], True),
        ([1.0, np.inf], [1.0, -np.inf], True),
        ([1.0, 1.000001], [1.0, 1.0], False),
        ([1.0, 1.01], [1.0, 1.0], True),
    ],
)
def test_differences(got: list[float], want: list[float], differ: bool) -> None:
    one, two = ({"y": np.array(values, np.float32)} for values in (got, want))
    assert bool(differences(one, two)) == differ


def test_integers_are_exact() -> None:
    assert differences({"y": np.array([1])}, {"y": np.array([2])})
    assert differences({"y": np.array([1])}, {"y": np.array([1], np.int32)})


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "byoc_mlir_fuzz", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_the_command_says_what_it_found(tmp_path: Path) -> None:
    done = run("--cases", "2", "--seed", "1", "--targets", "")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 cases" in done.stdout
    assert re.search(r"\d+ of \d+ ops", done.stdout)
    assert "never generated" not in done.stdout  # of two cases that says nothing
    unknown = run("--cases", "1", "--backend", str(tmp_path / "none.py"))
    assert unknown.returncode == 2
    assert "none.py" in unknown.stderr
