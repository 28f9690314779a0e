"""Models and inputs beyond a limit are refused before memory or time is spent on them."""

from __future__ import annotations

import gc
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from helpers.models import model_of
from one_node_models import X, chain, one
from onnx import helper
from xdsl.context import Context

import byoc_mlir
from byoc_mlir import Limits
from byoc_mlir.compiler.source import Source
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.nn import ReluOp
from byoc_mlir.errors import LimitExceededError, OutOfMemoryError
from byoc_mlir.frontend import import_model
from byoc_mlir.transforms.simplify import Simplify

LARGE = model_of(
    [
        helper.make_node("Concat", ["x"] * 64, ["a"], "join", axis=0),
        helper.make_node("ReduceSum", ["a"], ["y"], "sum"),
    ],
    {"x": [1024]},
)


@pytest.mark.parametrize(
    ("limits", "node"),
    [
        (Limits(tensor_bytes=1 << 17), "join"),
        (Limits(arena_bytes=1 << 17), "join"),
        (Limits(output_bytes=3), None),
        (Limits(nodes=1), None),
        (Limits(name_length=0), None),
        (Limits(seconds=1e-4), None),
    ],
    ids=lambda value: str(value)[:12] if isinstance(value, str) else None,
)
def test_a_limit(limits: Limits, node: str | None) -> None:
    with pytest.raises(LimitExceededError) as caught:
        byoc_mlir.compile(LARGE, targets=(), limits=limits)
    error = caught.value
    assert error.accepted == getattr(limits, error.limit) < error.found
    assert getattr(limits, error.limit) != getattr(Limits(), error.limit)
    assert f"pass limits=byoc_mlir.Limits({error.limit}=...) to compile" in str(error)
    if node is not None:
        assert error.node == node


def test_threads_may_be_raised() -> None:
    with pytest.raises(LimitExceededError, match="threads of a run: 100000"):
        byoc_mlir.compile(one("Relu"), targets=(), threads=100_000)
    limits = Limits(threads=100_000)
    assert byoc_mlir.compile(one("Relu"), targets=(), threads=100_000, limits=limits)


def test_limits_hold_for_shapes_that_come_later() -> None:
    executable = byoc_mlir.compile(one("Relu", ("n",)), targets=(), limits=Limits(tensor_bytes=64))
    assert executable.run({"x": X})["y"].shape == (3,)
    with pytest.raises(LimitExceededError, match=r"node 'n': bytes of a result of relay.nn.relu"):
        executable.run({"x": np.ones(17, np.float32)})


def test_what_is_refused_is_refused_where_the_cache_has_it(tmp_path: Path) -> None:
    byoc_mlir.compile(LARGE, targets=(), cache=tmp_path)
    for limits in (Limits(tensor_bytes=1 << 17), Limits(nodes=1)):
        with pytest.raises(LimitExceededError):
            byoc_mlir.compile(LARGE, targets=(), cache=tmp_path, limits=limits)


def test_limits_of_time_and_memory_are_no_part_of_what_the_cache_tells_apart(
    tmp_path: Path,
) -> None:
    byoc_mlir.compile(one("Relu"), targets=(), cache=tmp_path)
    files = sorted(tmp_path.iterdir())
    limits = Limits(seconds=50, kept_bytes=5)
    byoc_mlir.compile(one("Relu"), targets=(), cache=tmp_path, limits=limits)
    assert sorted(tmp_path.iterdir()) == files


def test_outputs_that_no_memory_holds() -> None:
    executable = byoc_mlir.compile(one("Tile", constants={"s": [2**60]}), targets=())
    with pytest.raises(OutOfMemoryError, match="the outputs of the model, 13,835,058,055,282,16"):
        executable.run({"x": X})


def test_a_tensor_beyond_all_addresses() -> None:
    names = ["x", *(f"t{number}" for number in range(60))]
    nodes = [
        helper.make_node("Concat", [name] * 2, [after], after, axis=0)
        for name, after in pairwise(names)
    ]
    with pytest.raises(LimitExceededError, match="arena_bytes"):
        byoc_mlir.compile(model_of(nodes, {"x": [3]}), targets=())


@pytest.mark.parametrize("shape", [(2**32, 2**32), (3, 2**63 - 1, 3), (3, "n", 3)])
def test_an_input_beyond_all_addresses(shape: tuple[int | str, ...]) -> None:
    sizes = {"n": 2**63 - 1} if "n" in shape else {}
    with pytest.raises(LimitExceededError, match="bytes of input 'x' of shape") as caught:
        byoc_mlir.compile(one("Relu", shape), targets=(), sizes=sizes)
    assert caught.value.stage is not None


def test_a_padded_image_beyond_all_addresses() -> None:
    shape = {"auto_pad": "SAME_LOWER", "kernel_shape": [3], "dilations": [2**63 - 1]}
    counted = one("AveragePool", (2, 3, 5), **shape, count_include_pad=1)
    with pytest.raises(LimitExceededError, match=r"bytes of what relay\.nn\.avg_pool1d needs"):
        byoc_mlir.compile(counted, targets=())


def test_padding_that_no_result_needs() -> None:
    """Checks that taps which meet no data are cut, and the padded image is never allocated."""
    data = np.random.default_rng(0).standard_normal((2, 3, 5)).astype(np.float32)
    shape = {"auto_pad": "SAME_LOWER", "kernel_shape": [3], "dilations": [2**63 - 1]}
    executable = byoc_mlir.compile(one("MaxPool", data.shape, **shape), targets=())
    np.testing.assert_array_equal(executable.run({"x": data})["y"], data)


def test_nothing_beside_a_long_axis_is_not_folded() -> None:
    constants = {"e": np.ones((0, 1), np.float32), "s": np.array([0, 2**61]), "a": np.array([1])}
    nodes = [
        helper.make_node("Expand", ["e", "s"], ["long"]),
        helper.make_node("ReduceSum", ["long", "a"], ["sums"], keepdims=0),
        helper.make_node("Concat", ["x", "sums"], ["y"], axis=0),
    ]
    executable = byoc_mlir.compile(model_of(nodes, {"x": [3]}, constants), targets=())
    assert (executable.run({"x": X})["y"] == X).all()


def test_a_module_with_many_ops(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    relus = "\n".join(
        f"  %{n + 1} = relay.nn.relu %{n} : (tensor<4xf32>) -> tensor<4xf32>" for n in range(9)
    )
    path.write_text(
        f"func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {{\n{relus}\n"
        "  func.return %9 : tensor<4xf32>\n}\n"
    )
    assert byoc_mlir.compile(path, targets=()).run([np.ones(4, np.float32)])
    with pytest.raises(LimitExceededError, match="ops of the module: 12, the limit is 11"):
        byoc_mlir.compile(path, targets=(), limits=Limits(nodes=11))


def test_long_chains_of_ops() -> None:
    ops = ("Add", "Relu", "Mul", "Sigmoid")
    executable = byoc_mlir.compile(chain(ops, 1500), targets=(), threads=1)
    (result,) = executable.run({"x": np.zeros((2, 8), np.float32)}).values()
    assert np.isfinite(result).all()
    kernels = [row for row in executable.report().rows]
    assert len(kernels) == 1500


def test_an_executable_keeps_no_model() -> None:
    executable = byoc_mlir.compile(one("Relu"), targets=(), threads=1)
    gc.collect()
    assert not [found for found in gc.get_objects() if isinstance(found, Source)]
    assert executable.run({"x": X})["y"].tolist() == [1.0, 1.0, 1.0]


def test_constants_count_together() -> None:
    names = [f"c{number}" for number in range(41)]
    doubled = [
        helper.make_node("Concat", [name] * 2, [after], after, axis=0)
        for name, after in pairwise(names)
    ]
    total = [
        helper.make_node("ReduceSum", [names[-1]], ["s"]),
        helper.make_node("Add", ["x", "s"], ["y"]),
    ]
    limits = Limits(tensor_bytes=1 << 30, constant_bytes=1 << 20)
    with pytest.raises(LimitExceededError, match="tensor_bytes"):  # what is not folded is refused
        byoc_mlir.compile(
            model_of([*doubled, *total], {"x": [4]}, {"c0": np.ones(1, np.float32)}),
            targets=(),
            limits=limits,
        )
    shapes = {f"s{number}": np.array([1 << 16]) for number in range(5)}
    ones = [helper.make_node("ConstantOfShape", [name], [f"o{name}"], name) for name in shapes]
    joined = helper.make_node("Sum", ["x", *(f"o{name}" for name in shapes)], ["y"])
    with pytest.raises(LimitExceededError, match="and of others that are computed") as caught:
        byoc_mlir.compile(
            model_of([*ones, joined], {"x": [1 << 16]}, shapes), targets=(), limits=limits
        )
    assert caught.value.node == "s4"


def test_positions_of_a_resize() -> None:
    scales = {"s": np.array([1, 1, 3e8, 1], np.float32)}
    large = one("Resize", (1, 1, 4, 4), scales, inputs="x  s")
    with pytest.raises(LimitExceededError, match="bytes of the positions of a Resize"):
        byoc_mlir.compile(large, targets=())


def test_a_chain_that_becomes_one_op() -> None:
    count = 3000
    imported = import_model(chain(("Relu",), count))
    start = time.perf_counter()
    Simplify().apply(Context(), imported.module)
    assert time.perf_counter() - start < 30  # 0.3 s; one location after the other took minutes
    (left,) = (op for op in imported.module.walk() if isinstance(op, ReluOp))
    assert len(node_names(left)) == count
