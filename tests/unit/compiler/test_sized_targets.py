"""Models of symbolic sizes for which the caller names no targets."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from onnx import ModelProto
from sized_models import Sizes, check_shapes, decoder, encoder
from xdsl.dialects.func import FuncOp

import byoc_mlir
from byoc_mlir.compiler.cache.folder import Cache
from byoc_mlir.compiler.partition import profitability
from byoc_mlir.compiler.partition.measuring import Compile
from byoc_mlir.dialects.byoc import region_compiler
from byoc_mlir.rates import Rates, write_rates
from byoc_mlir.runtime.executables import promotion, sized_executable
from byoc_mlir.runtime.executables.sized_executable import SizedExecutable
from byoc_mlir.runtime.report import RegionTimes
from byoc_mlir.testing.networks import GraphBuilder
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime


def _by_default(model: ModelProto) -> SizedExecutable:
    executable = byoc_mlir.compile(model, threads=1, cache=False)
    assert isinstance(executable, SizedExecutable)
    return executable


@pytest.mark.parametrize(
    ("model", "sets", "most"),
    [
        (encoder(), [{"batch": 2, "seq": 5}, {"batch": 1, "seq": 1}, {"batch": 3, "seq": 4}], 1),
        (
            decoder(),
            [
                {"batch": 1, "new": 6, "past": 0},
                {"batch": 1, "new": 1, "past": 6},
                {"batch": 1, "new": 1, "past": 7},
            ],
            2,
        ),
    ],
    ids=["encoder", "decoder"],
)
def test_products_are_one_program(model: ModelProto, sets: list[Sizes], most: int) -> None:
    with _by_default(model) as executable:
        check_shapes(executable, model, sets)
        assert 1 <= len(executable.variants) <= most
        assert executable.compiled_in == 0
        assert "one program of the host serves all shapes" in str(executable.report())


def test_targets_that_are_named_take_their_regions() -> None:
    model = encoder(width=8, heads=2, inner=16)
    with byoc_mlir.compile(model, targets=("dnnl",), threads=1, cache=False) as executable:
        check_shapes(executable, model, [{"batch": 2, "seq": 5}])
        assert executable.report().placed("dnnl")
        assert "one program of the host serves all shapes" not in str(executable.report())


def _wide() -> ModelProto:
    """A convolution of much work, and more behind it."""
    b = GraphBuilder("wide", seed=0)
    x = b.input("x", ["n", 32, 64, 64])
    b.channels[x] = 32
    b.output(b.op("Relu", b.conv(x, 64, 3, padding=1)), "y", [None] * 4)
    return b.build()


def _promote_at_once(monkeypatch: pytest.MonkeyPatch, together: float, alone: float) -> None:
    """Every call takes long enough; these are the seconds that are measured."""
    monkeypatch.setattr(promotion, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(promotion, "_shortest", lambda _: [together, alone])


def _faster_in_its_backend(region: FuncOp, _: Compile) -> RegionTimes:
    """Where estimates are near, which is so on some processors."""
    return RegionTimes(str(region_compiler(region)), "measured", 1.0, 2.0)


def test_what_a_backend_runs_faster_gets_a_program_of_its_own_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _promote_at_once(monkeypatch, 0.01, 0.001)
    monkeypatch.setattr(profitability, "measured_times", _faster_in_its_backend)
    model = _wide()
    inputs = random_inputs(model, dims={"n": 2})
    with _by_default(model) as executable:
        executable.run(inputs)
        assert not executable.report().placed("dnnl")
        executable.wait()
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs))
        assert executable.compiled_in == 1
        assert executable.report().placed("dnnl")


def test_where_no_backend_is_faster_no_program_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    _promote_at_once(monkeypatch, 0.01, 0.001)
    model = encoder(width=8, heads=2, inner=16)
    with _by_default(model) as executable:
        check_shapes(executable, model, [{"batch": 2, "seq": 5}])
        executable.wait()
        check_shapes(executable, model, [{"batch": 2, "seq": 5}])
        executable.wait()
        assert executable.compiled_in == 0


@pytest.mark.parametrize(("seconds", "timed"), [(3e-4, 2), (0.002, 8)])
def test_of_short_calls_one_in_a_millisecond_is_timed(
    monkeypatch: pytest.MonkeyPatch, seconds: float, timed: int
) -> None:
    clock = itertools.count(0.0, seconds)
    asked: list[float] = []

    def now() -> float:
        asked.append(next(clock))
        return asked[-1]

    model = encoder(width=8, heads=2, inner=16)
    inputs = random_inputs(model, dims={"batch": 2, "seq": 5})
    with _by_default(model) as executable:
        monkeypatch.setattr(sized_executable.time, "thread_time", now)
        for _ in range(8):
            executable.run(inputs)
        monkeypatch.undo()
    assert len(asked) == 2 * timed


def _pooled() -> ModelProto:
    """A pool and products behind it, which oneDNN takes; the host takes them for any batch."""
    b = GraphBuilder("pooled", seed=0)
    x = b.input("x", ["n", 64, 8, 8])
    y = b.op("Flatten", b.op("GlobalAveragePool", x))
    b.channels[y] = 64
    b.output(b.linear(b.op("Relu", b.linear(y, 2048)), 1024), "y", [None, 1024])
    return b.build()


def test_all_shapes_are_one_program_on_the_host() -> None:
    model = _pooled()
    with _by_default(model) as executable:
        check_shapes(executable, model, [{"n": 20}, {"n": 3}, {"n": 20}, {"n": 1}, {"n": 4}])
        assert (len(executable.variants), executable.compiled_in) == (1, 0)
        executable.warmup({"x": (21, 64, 8, 8)})
        assert (len(executable.variants), executable.compiled_in) == (1, 1)


def test_a_process_takes_what_another_left_in_the_cache(tmp_path: Path) -> None:
    model = _pooled()
    with byoc_mlir.compile(model, threads=1, cache=tmp_path) as first:
        first.warmup({"x": (20, 64, 8, 8)})
        check_shapes(first, model, [{"n": 20}, {"n": 3}])
    with byoc_mlir.compile(model, threads=1, cache=tmp_path) as second:
        assert isinstance(second, SizedExecutable)
        check_shapes(second, model, [{"n": 5}, {"n": 20}])
        assert (len(second.variants), second.compiled_in) == (1, 1)


def test_only_what_no_program_serves_is_looked_for_in_the_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of sizes that one program serves, none is known to be faster alone."""
    model = encoder(width=8, heads=2, inner=16)
    asked: list[str] = []

    def has(cache: Cache, key: str) -> bool:
        asked.append(key)
        return False

    monkeypatch.setattr(Cache, "has", has)
    with byoc_mlir.compile(model, threads=1, cache=tmp_path) as executable:
        check_shapes(executable, model, [{"batch": 2, "seq": 5}])
        assert len(asked) == 1
        check_shapes(executable, model, [{"batch": 2, "seq": 7}, {"batch": 3, "seq": 5}])
        assert len(asked) == 1


@pytest.mark.parametrize(("milliseconds", "programs"), [(1.0, 2), (9.5, 1)])
def test_shapes_that_take_long_get_a_program_if_it_is_faster(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, milliseconds: float, programs: int
) -> None:
    _promote_at_once(monkeypatch, 0.01, milliseconds / 1e3)
    model = _pooled()
    with byoc_mlir.compile(model, threads=1, cache=tmp_path) as executable:
        assert isinstance(executable, SizedExecutable)
        check_shapes(executable, model, [{"n": 3}])
        executable.wait()
        check_shapes(executable, model, [{"n": 3}])
        text = f"{milliseconds:.3f} ms in one of its own"
        before = len(executable.variants)
        check_shapes(executable, model, [{"n": 20}])
        assert len(executable.variants) == before == 1
        assert text in str(executable.report())
    with byoc_mlir.compile(model, threads=1, cache=tmp_path) as again:
        assert isinstance(again, SizedExecutable)
        check_shapes(again, model, [{"n": 3}])
        assert again.compiled_in == programs - 1
        check_shapes(again, model, [{"n": 5}])
        again.wait()
        report = str(again.report())
        assert "measured: 10.000 ms in the program for all shapes" in report
        assert text in report


def test_rates_of_a_file_decide_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(promotion, "WORTH_SECONDS", 0.0)
    rates = tmp_path / "rates.json"
    write_rates(Rates(), rates)
    model = _pooled()
    with byoc_mlir.compile(model, threads=1, cache=False, rates=rates) as executable:
        assert isinstance(executable, SizedExecutable)
        check_shapes(executable, model, [{"n": 20}, {"n": 3}, {"n": 3}])
        executable.wait()
        assert executable.compiled_in == 0
