"""The benchmark command measures, compares and reports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from helpers.models import parsed

from byoc_mlir.runtime.system.cpu import Cpu

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def run(*arguments: object, script: str = "run.py") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, BENCHMARKS / script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_engines_are_measured_side_by_side(tmp_path: Path) -> None:
    document = tmp_path / "result.json"
    result = run(
        *("--models", "mlp3", "mnist@2", "--threads", 1, "--rounds", 1),
        *("--engines", "byoc,onnxruntime", "--json", document),
    )
    assert result.returncode == 0, result.stderr
    measured: list[dict[str, Any]] = json.loads(document.read_text())["results"]
    assert [(entry["model"], entry["engine"]) for entry in measured] == [
        (model, engine) for model in ("mlp3", "mnist@2") for engine in ("byoc", "onnxruntime")
    ]
    for entry in measured:
        assert entry["error"] < 1e-5
        assert min(entry["milliseconds"]) > 0
        assert entry["started"]["peak_megabytes"] > 20
    assert "| mlp3 | 1 |" in result.stdout
    assert "**geometric mean**" in result.stdout


def test_bf16_that_is_f32_is_said() -> None:
    result = run("--models", "mlp3", "--precision", "bf16", *("--engines", "byoc", "--rounds", 1))
    assert result.returncode == 0, result.stderr
    is_rounded = not {"avx512_bf16", "amx_bf16"}.isdisjoint(Cpu.host().features)
    assert ("byoc computes in f32: dnnl: " in result.stdout) != is_rounded


def test_unknown_names_are_refused_with_what_is_known() -> None:
    result = run("--models", "resnet1000")
    assert result.returncode == 2
    assert "resnet50" in result.stderr
    result = run("--engines", "byoc,torch")
    assert result.returncode == 2
    assert "openvino" in result.stderr


def test_ratios_are_to_the_faster_peer() -> None:
    code = """
from measure import Failure, Measurement
from report import cost_table, geometric_mean, latency_table, ratios, rows_of
from worker import Started
def result(engine, *milliseconds):
    started = Started(0.1, 2.0, 0.5, 300.0)
    return Measurement(engine, "m", 1, started, 1e-6, list(milliseconds))
rows = rows_of([
    result("byoc", 1.0, 2.0, 30.0), result("onnxruntime", 8.0), result("openvino", 4.0, 4.0)], 0.5)
assert ratios(rows, "byoc", ["onnxruntime", "openvino"]) == [0.5]
assert abs(geometric_mean([0.5, 2.0]) - 1.0) < 1e-12
print(latency_table(rows, ["byoc", "onnxruntime", "openvino"]))
print(cost_table(rows, ["byoc"]))
failed = rows_of([result("byoc", 1.0), Failure("iree", "m", 1, "no")], 0.5)
print(latency_table(failed, ["byoc", "iree"]))
"""
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=BENCHMARKS, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert "| m | 1 | 2 | 8 | 4 | 0.50 | 1e-06 |" in lines
    assert "| **geometric mean** | 1 |  |  |  | 0.50 |  |" in lines
    assert "| m | 1 | 2.5 | 300 |" in lines
    assert "| m | 1 | 1 | failed | - | 1e-06 |" in lines


def test_streams_are_answered_twice_and_compared(tmp_path: Path) -> None:
    document = tmp_path / "result.json"
    result = run(
        *("--streams", "perceptron", "--threads", 1, "--sizes", 2),
        *("--engines", "byoc_host,onnxruntime", "--json", document),
        script="streams.py",
    )
    assert result.returncode == 0, result.stderr
    measured: list[dict[str, Any]] = json.loads(document.read_text())["results"]
    assert [entry["engine"] for entry in measured] == [
        "onnxruntime",
        "byoc_host, 1st",
        "byoc_host, 2nd",
    ]
    for entry in measured:
        assert len(entry["answered"]["milliseconds"]) == len(entry["order"]) == 6
        assert entry["error"] < 1e-5
        assert entry["answered"]["peak_megabytes"] > 20
    assert "| perceptron | 1 | byoc_host, 1st |" in result.stdout


def test_requests_whose_answers_hang_by_a_digit_are_not_drawn(tmp_path: Path) -> None:
    nodes = "is_above = Greater (x, threshold) y = Compress (x, is_above)"
    model = parsed("(float[n] x) => (float[m] y)", nodes, {"threshold": np.float32(0.5)})
    onnx.save(model, tmp_path / "model.onnx")
    code = """
import sys
from pathlib import Path
import numpy as np
from settled import settled

requests = [{"x": np.array([0.1, x], np.float32)} for x in (0.6, 0.500001, 0.4, 0.499999, 0.502)]
for one in settled(Path(sys.argv[1]), requests):
    print(one["x"][1])
"""
    result = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "model.onnx"],
        cwd=BENCHMARKS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["0.6", "0.4", "0.502"]


def test_the_command_that_compares_targets() -> None:
    """Checks the command with a small network in place of the large ones, and less time."""
    page = (
        (BENCHMARKS.parent / "docs" / "dev-notes" / "tuning-measurements.md")
        .read_text()
        .splitlines()
    )
    (command,) = (line for line in page if line.startswith("python benchmarks/targets.py"))
    _, script, *arguments = command.split()
    shorter = ("--models", "mnist", "--rounds", 1, "--tune", 1)
    result = run(*arguments, *shorter, script=Path(script).name)
    assert result.returncode == 0, result.stderr
    title, _, row = result.stdout.splitlines()
    engines = ("dnnl", "host", "tuned")
    assert [cell for cell in title.split(" | ") if cell.endswith(", ms")] == [
        f"{engine}, ms" for engine in engines
    ]
    name, *cells = row.strip("| ").split(" | ")
    assert name == "mnist"
    assert all(float(error) < 1e-5 for error in cells[1:6:2])


def test_a_program_of_all_sizes_is_compared_with_one_of_each() -> None:
    result = run(*("mlp3", "--sizes", 4, 1, "--rounds", 1), script="dynamic.py")
    assert result.returncode == 0, result.stderr
    _, _, *rows = result.stdout.splitlines()
    assert [row.split(" | ")[:2] for row in rows] == [["| `mlp3`", "4"], ["| `mlp3`", "1"]]
    assert all(float(cell.strip(" |")) > 0 for row in rows for cell in row.split(" | ")[4:])


def test_primitives_are_created_at_each_size() -> None:
    result = run(*("encoder", "--types", "f32"), script="primitives.py")
    assert result.returncode == 0, result.stderr
    title, _, row = result.stdout.splitlines()
    cells = row.strip("| ").split(" | ")
    assert len(cells) == len(title.strip("| ").split(" | "))
    assert cells[:3] == ["`encoder`", "f32", "3"]
    assert 0 < float(cells[5]) <= float(cells[6])


def test_an_engine_that_dies_is_a_row_and_the_others_go_on() -> None:
    code = """
import measure
class Mortal(measure.Worker):
    def __init__(self, engine, *others):
        super().__init__(engine, *others)
        self.runs_left = 2 if engine == "byoc_host" else 100
    def run(self, count):
        self.runs_left -= 1
        if self.runs_left < 0:
            self.process.kill()
            self.process.wait()
        return super().run(count)
measure.Worker = Mortal
for result in measure.measure(["mlp3"], ["byoc_host", "onnxruntime"], [1], 2):
    print(type(result).__name__, result.engine, getattr(result, "message", ""))
"""
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=BENCHMARKS, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    died, answered = result.stdout.splitlines()
    assert died.startswith("Failure byoc_host exit code -9")
    assert answered.startswith("Measurement onnxruntime")
