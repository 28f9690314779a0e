"""Files of calibration: the same file gives the same code."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from measured import measured, write_measured
from onnx import numpy_helper, parser
from tuning_models import small_network

import byoc_mlir
from byoc_mlir.backends.dnnl.library.timing import Bench
from byoc_mlir.calibration import (
    Calibration,
    Measurement,
    measuring,
    read_calibration,
    using,
    write_calibration,
)
from byoc_mlir.compiler import calibration as compiler_calibration
from byoc_mlir.compiler.calibration import calibration_of
from byoc_mlir.compiler.partition.region_times import Keys, find_times, keep_times
from byoc_mlir.errors import ByocError
from byoc_mlir.kernels.costs import (
    ASSUMED,
    MEASURED,
    ActivationCalibration,
    ConvolutionCalibration,
    Table,
    calibration,
)
from byoc_mlir.lowering.calibration import BENCHMARKS, Benchmark
from byoc_mlir.runtime.report import RegionTimes
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.tools.byoc import main

_COMPILE = """
import hashlib, sys
import byoc_mlir
calibration, *models = sys.argv[1:]
for model in models:
    with byoc_mlir.compile(model, threads=1, fallback="allow", calibration=calibration) as exe:
        files = exe.program.code.files
        print(hashlib.sha256(b"".join(files)).hexdigest())
"""


def test_the_same_file_gives_the_same_code_in_every_process(tmp_path: Path) -> None:
    """Checks decisions, layouts and algorithms with three networks and two processes, without the
    clock.
    """
    networks = {
        "mnist": NETWORKS["mnist"](),
        "every_kernel": small_network(),
        "mlp3": NETWORKS["mlp3"](),
    }
    models = [tmp_path / f"{name}.onnx" for name in networks]
    for model, network in zip(models, networks.values(), strict=True):
        onnx.save(network, model)
        with measuring():
            byoc_mlir.compile(model, threads=1, fallback="allow", prune="measured").close()
    path = tmp_path / "calibration.json"
    write_calibration(calibration_of(None), path)
    groups = {key.partition("/")[0] for key in read_calibration(path)}
    assert {"dnnl", "regions", "convolutions"} <= groups
    command = [sys.executable, "-c", _COMPILE, path, *models]
    first, second = (subprocess.check_output(command, text=True) for _ in range(2))
    assert first.split() == second.split()
    assert len(set(first.split())) == 3


def test_calibration_are_part_of_what_the_cache_knows_a_model_by(tmp_path: Path) -> None:
    def compiled(rate: float) -> list[str]:
        write_measured(tmp_path / "calibration.json", activations=dict.fromkeys(_NAMES, rate))
        cache, path = tmp_path / "cache", tmp_path / "calibration.json"
        with byoc_mlir.compile(NETWORKS["mlp3"](), (), cache=cache, calibration=path) as executable:
            return [name for name, _ in executable.report().compile_seconds]

    assert "cache" not in compiled(1.0)
    assert compiled(1.0) == ["cache"]
    assert "cache" not in compiled(2.0)


_NAMES = ActivationCalibration().numbers()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "JSONDecodeError"),
        ("[]", "TypeError"),
        ('{"version": 0}', "version is 0, expected 2"),
        ('{"version": 2}', "KeyError: 'measurements'"),
        ('{"version": 2, "measurements": 3}', "AttributeError"),
        ('{"version": 2, "measurements": {"a": 3}}', "TypeError"),
    ],
)
def test_other_files_are_no_calibration(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(text)
    with pytest.raises(ByocError, match="holds no calibration") as caught:
        byoc_mlir.compile(NETWORKS["mlp3"](), (), calibration=path)
    assert reason in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ByocError, match="cannot be read: No such file"):
        byoc_mlir.compile(NETWORKS["mlp3"](), (), calibration=tmp_path / "nowhere.json")


@pytest.mark.parametrize("value", [0, -1, math.inf, math.nan, "fast"])
def test_what_is_no_rate_is_refused(value: Any) -> None:
    with (
        using(Calibration(measured(activations={**_NAMES, "swish": value}))),
        pytest.raises(ByocError, match=r"the measurement 'activations/swish' is .* above 0"),
    ):
        calibration(ActivationCalibration)


@pytest.mark.parametrize("value", [None, True, [1]])
def test_what_is_no_measurement_is_refused(value: Any) -> None:
    with pytest.raises(ByocError, match="accepted are numbers and texts"):
        calibration_of({"activations/swish": {"unit": "", "source": "", "value": value}})


def test_what_a_file_does_not_say_is_assumed() -> None:
    with using(calibration_of({})):
        assert calibration(ConvolutionCalibration) == ConvolutionCalibration()


def test_the_command_line_writes_and_reads_calibration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, path = tmp_path / "model.onnx", tmp_path / "calibration.json"
    onnx.save(NETWORKS["mnist"](), model)
    written = ["--prune", "measured", "--write-calibration", str(path)]
    assert main(["compile", str(model), *written]) == 0
    assert any(key.startswith("regions/") for key in read_calibration(path))
    assert main(["report", str(model), "--calibration", str(path)]) == 0
    capsys.readouterr()
    assert main(["compile", str(model), "--calibration", str(tmp_path / "nowhere.json")]) == 1
    assert "No such file" in capsys.readouterr().err


def test_what_regions_were_measured_to_take_is_kept_for_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYOC_CACHE", "on")
    monkeypatch.setenv("BYOC_CACHE_DIR", str(tmp_path))
    times = RegionTimes("npu", "measured", 2.0, 1.0)
    this_process, another_process = (
        compiler_calibration.process_calibration.__wrapped__() for _ in range(2)
    )
    for name in ("first", "second"):
        keep_times(this_process, Keys(f"like {name}", name), times)
    this_process.save()
    assert find_times(another_process, Keys("of other sizes", "first")) == times
    assert find_times(another_process, Keys("like second", "of another model")) == times
    assert find_times(another_process, Keys("of other sizes", "of a third model")) is None


def test_times_of_primitives_are_kept_for_other_models_and_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BYOC_CACHE", "on")
    monkeypatch.setenv("BYOC_CACHE_DIR", str(tmp_path))
    measured_now: list[float] = []
    milliseconds = Bench.milliseconds

    def recorded(*arguments: Any) -> float:
        measured_now.append(milliseconds(*arguments))
        return measured_now[-1]

    monkeypatch.setattr(Bench, "milliseconds", recorded)

    def compiled() -> int:
        """Returns the number of primitives that a process measures if it finds no program."""
        del measured_now[:]
        compiler_calibration.process_calibration.cache_clear()
        byoc_mlir.compile(NETWORKS["resnet18"](image=32), ("dnnl",), 1, cache=False).close()
        return len(measured_now)

    try:
        assert compiled() == 0
        with measuring():
            assert compiled() > 10
            assert compiled() == 0
    finally:
        compiler_calibration.process_calibration.cache_clear()


def test_warmup_measures_primitives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BYOC_CACHE", "off")
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17]>
        g (float[n, 8, 9, 9] x, float[8, 8, 3, 3] w) => (float[n, 8, 7, 7] y) { y = Conv (x, w) }
    """)
    weights = np.ones((8, 8, 3, 3), np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    compiler_calibration.process_calibration.cache_clear()
    try:
        with byoc_mlir.compile(model, ("dnnl",), 1, cache=False) as executable:
            executable.run([np.ones((1, 8, 9, 9), np.float32)])
            assert not calibration_of(None).group("dnnl")
            executable.warmup({"x": (2, 8, 9, 9)})
            assert calibration_of(None).group("dnnl")
    finally:
        compiler_calibration.process_calibration.cache_clear()


class _Slow:
    """Cache that is slow to write."""

    def read(self, group: str) -> list[Measurement]:
        time.sleep(0.02)
        return measured(**{group: {"swish": 2.0}})

    def write(self, group: str, new: Sequence[Measurement]) -> None:
        raise AssertionError


def test_threads_that_ask_at_once_know_the_same() -> None:
    known = Calibration(kept=_Slow())
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(lambda _: known.view(ActivationCalibration.of).swish, range(4))]
    assert found == [2.0] * 4


def test_the_cache_may_keep_calibration_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    byoc_mlir.compile(NETWORKS["mnist"](), (), 1, fallback="allow").close()  # asks for tables
    monkeypatch.setenv("BYOC_CACHE", "calibration")
    monkeypatch.setenv("BYOC_CACHE_DIR", str(tmp_path))
    benchmark = Benchmark(lambda: [8.0, 2.0], lambda of: ActivationCalibration(swish=1 / of[0]))
    monkeypatch.setitem(BENCHMARKS, ActivationCalibration, benchmark)  # pyright: ignore[reportArgumentType]
    with using(compiler_calibration.process_calibration.__wrapped__()):
        assert calibration(ActivationCalibration).swish == 1 / 8
    kept = list(tmp_path.iterdir())
    assert len(kept) == 1
    byoc_mlir.compile(NETWORKS["mnist"](), (), 1, fallback="allow").close()
    process = compiler_calibration.process_calibration.__wrapped__()
    keep_times(process, Keys("like it", "it"), RegionTimes("npu", "measured", 2.0, 1.0))
    process.save()
    assert set(kept) == set(tmp_path.iterdir())


@pytest.mark.parametrize("kind", MEASURED, ids=lambda kind: kind.name)
def test_every_rate_is_measured(kind: type[Table]) -> None:
    """Checks each measured parameter against its default, within a factor of 1,000, for any
    machine.
    """
    benchmark = BENCHMARKS[kind]
    if not benchmark.is_possible:
        pytest.skip(f"the processor has no {benchmark.feature}")
    measured, assumed = benchmark.table(benchmark.measure()).numbers(), kind().numbers()
    assert all(1e-3 < measured[name] / assumed[name] < 1e3 for name in assumed)


def test_the_first_processes_of_a_machine_measure_and_the_shortest_times_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checks that the shortest times count, since other jobs may run beside the first process.

    From the fourth process on, all find the parameters in the cache, unless the processor has
    changed.
    """
    monkeypatch.setenv("BYOC_CACHE", "on")
    monkeypatch.setenv("BYOC_CACHE_DIR", str(tmp_path))
    times = iter([[8.0, 2.0], [4.0, 4.0], [5.0, 5.0], [9.0, 9.0]])
    benchmark = Benchmark(
        lambda: next(times), lambda of: ActivationCalibration(swish=1 / of[0], gelu_erf=1 / of[1])
    )
    monkeypatch.setitem(BENCHMARKS, ActivationCalibration, benchmark)  # pyright: ignore[reportArgumentType]

    def asked() -> tuple[float, float]:
        compiler_calibration.process_calibration.cache_clear()
        with using(calibration_of(None)):
            found = calibration(ActivationCalibration)
        return 1 / found.swish, 1 / found.gelu_erf

    try:
        assert [asked() for _ in range(4)] == [(8, 2), (4, 2), (4, 2), (4, 2)]
        monkeypatch.setattr(compiler_calibration, "model_name", lambda: "another one")
        assert asked() == (9, 9)
    finally:
        compiler_calibration.process_calibration.cache_clear()


@pytest.mark.parametrize("table", [*(kind() for kind in MEASURED), ASSUMED])
def test_the_documentation_lists_every_number(table: Table) -> None:
    text = (Path(__file__).parents[3] / "docs" / "dev-notes" / "costs.md").read_text()
    for name, _, unit, _ in table.described():
        assert f"| `{name}` |" in text
        assert unit in text
