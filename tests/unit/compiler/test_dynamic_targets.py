"""Models of symbolic sizes for which the caller names no targets."""

from __future__ import annotations

from pathlib import Path

import pytest
from dynamic_models import Sizes, check_shapes, decoder, encoder
from helpers.programs import fixed_programs, generic_programs, is_symbolic
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.testing.networks import GraphBuilder


def _by_default(model: ModelProto) -> byoc_mlir.Executable:
    executable = byoc_mlir.compile(model, threads=1, cache=False)
    assert is_symbolic(executable)
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
        assert 1 <= len(generic_programs(executable)) <= most
        assert len(fixed_programs(executable)) == 0
        assert "one program of the host serves all shapes" in str(executable.report())


def test_targets_that_are_named_take_their_regions() -> None:
    model = encoder(width=8, heads=2, inner=16)
    with byoc_mlir.compile(model, targets=("dnnl",), threads=1, cache=False) as executable:
        check_shapes(executable, model, [{"batch": 2, "seq": 5}])
        assert executable.report().placed("dnnl")
        assert "one program of the host serves all shapes" not in str(executable.report())


def _pooled() -> ModelProto:
    """Returns a pool and matmuls after it, which oneDNN takes; the host takes them for any
    batch."""
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
        assert (len(generic_programs(executable)), len(fixed_programs(executable))) == (1, 0)
        executable.warmup({"x": (21, 64, 8, 8)})
        assert (len(generic_programs(executable)), len(fixed_programs(executable))) == (1, 0)


def test_a_process_takes_what_another_left_in_the_cache(tmp_path: Path) -> None:
    model = _pooled()
    with byoc_mlir.compile(model, threads=1, cache=tmp_path) as first:
        check_shapes(first, model, [{"n": 20}, {"n": 3}])
    with byoc_mlir.compile(model, threads=1, cache=tmp_path) as second:
        assert is_symbolic(second)
        check_shapes(second, model, [{"n": 5}, {"n": 20}])
        assert (len(generic_programs(second)), len(fixed_programs(second))) == (1, 0)
