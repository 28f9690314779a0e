"""Random ops: moments, ranges and types, with and without a seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import model_of, node

import byoc_mlir
from byoc_mlir.dialects.relay.evaluate.random import threefry

Array = np.ndarray[Any, np.dtype[Any]]


def _runs(op: str, x: Array | None = None, runs: int = 1, **attributes: Any) -> list[Array]:
    """Returns the outputs of several runs of a model of one node, all of which has native code."""
    shape = (1,) if x is None else x.shape
    kind = TensorProto.FLOAT if x is None else helper.np_dtype_to_tensor_dtype(x.dtype)
    nodes = [node(op, "" if x is None else "x", "y", **attributes)]
    model = model_of(nodes, [("x", kind, shape)], opset=17)
    with byoc_mlir.compile(model, targets=(), threads=2, fallback="allow") as executable:
        assert {row.placement for row in executable.report()} <= {"host", "folded", "removed"}
        feeds = [np.zeros(1, np.float32) if x is None else x]
        return [executable.run(feeds)["y"] for _ in range(runs)]


def test_the_generator_gives_the_published_words() -> None:
    """Checks the known answers that come with Random123."""

    def words(*values: int) -> list[Array]:
        return [np.array([value], np.uint32) for value in values]

    full = 0xFFFFFFFF
    for key, counter, answer in (
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((full, full), (full, full), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ):
        found = threefry(np.concatenate(words(*key)), *words(*counter))
        assert [int(word[0]) for word in found] == list(answer)


UNIFORM: dict[str, Any] = {"low": -2.0, "high": 3.0}
NORMAL: dict[str, Any] = {"mean": 1.5, "scale": 0.5}
SHAPE = [40, 30, 20]


@pytest.mark.parametrize("seed", [{"seed": 7.0}, {}], ids=["seed", "no seed"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16], ids=lambda t: t.__name__)
def test_uniform(seed: dict[str, Any], dtype: type[np.floating[Any]]) -> None:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    (found,) = _runs("RandomUniform", shape=SHAPE, dtype=kind, **UNIFORM, **seed)
    assert found.dtype == dtype
    assert found.shape == tuple(SHAPE)
    assert found.min() >= -2
    assert found.max() <= 3
    wide = found.astype(np.float64).reshape(-1)
    shares = np.histogram(wide, 10, (-2, 3))[0] / found.size
    np.testing.assert_allclose(shares, 0.1, atol=0.01)
    assert abs(np.corrcoef(wide[1:], wide[:-1])[0, 1]) < 0.03
    assert len(np.unique(found)) > (0.99 * found.size if dtype is not np.float16 else 2000)


@pytest.mark.parametrize("seed", [{"seed": 7.0}, {}], ids=["seed", "no seed"])
def test_normal(seed: dict[str, Any]) -> None:
    x = np.zeros(SHAPE, np.float64)
    (found,) = _runs("RandomNormalLike", x, dtype=TensorProto.FLOAT, **NORMAL, **seed)
    assert found.dtype == np.float32
    assert found.shape == tuple(SHAPE)
    standard = (found.astype(np.float64) - 1.5) / 0.5
    moments = [np.mean(standard**power) for power in range(1, 5)]
    deviations = np.sqrt(np.array([1, 2, 15, 96]) / found.size)
    assert (np.abs(np.array(moments) - [0, 1, 0, 3]) < 6 * deviations).all(), moments
    np.testing.assert_allclose(np.mean(np.abs(standard) < 1), 0.6827, atol=0.018)


def test_bernoulli_follows_its_input() -> None:
    x = np.repeat(np.array([0, 0.25, 0.75, 1], np.float32), 8000)
    (found,) = _runs("Bernoulli", x, dtype=TensorProto.BOOL)
    assert found.dtype == np.bool_
    shares = found.reshape(4, -1).mean(1)
    assert shares[0] == 0
    assert shares[3] == 1
    np.testing.assert_allclose(shares, [0, 0.25, 0.75, 1], atol=0.025)


def test_multinomial_follows_its_input() -> None:
    likely = np.array([[0.1, 0.2, 0.0, 0.7], [0.4, 0.0, 0.6, 0.0]])
    with np.errstate(divide="ignore"):
        x = np.log(likely).astype(np.float32) + 3
    (found,) = _runs("Multinomial", x, sample_size=20000, dtype=TensorProto.INT64)
    assert found.dtype == np.int64
    assert found.shape == (2, 20000)
    shares = [np.bincount(row, minlength=4) / 20000 for row in found]
    np.testing.assert_allclose(shares, likely, atol=0.02)
    assert not np.array(shares)[likely == 0].any()


@pytest.mark.parametrize("op", ["RandomUniformLike", "RandomNormalLike", "Bernoulli"])
def test_seeds(op: str) -> None:
    """Checks that a seed fixes the values; another seed has others, and without a seed each run has
    others.
    """
    x = np.full(500, 0.5, np.float32)
    one, again = _runs(op, x, 2, seed=1.0)
    np.testing.assert_array_equal(one, again)
    np.testing.assert_array_equal(one, _runs(op, x, seed=1.0)[0])
    others = [_runs(op, x, seed=2.0)[0], *_runs(op, x, 2)]
    for number, first in enumerate([one, *others]):
        assert all((first != other).any() for other in [one, *others][number + 1 :])


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=lambda t: t.__name__)
def test_dropout_in_training(dtype: type[np.floating[Any]]) -> None:
    x = np.linspace(1, 2, 20_000, dtype=np.float32).astype(dtype)
    constants = {"ratio": np.float32(0.25), "training": np.bool_(True)}
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    model = model_of(
        [
            node("Dropout", "x ratio training", "y mask", seed=3),
            node("Dropout", "x ratio training", "z"),
        ],
        [("x", kind, x.shape)],
        ["y", "mask", "z"],
        initializers=[numpy_helper.from_array(np.array(c), name) for name, c in constants.items()],
    )
    with byoc_mlir.compile(model, targets=(), threads=2, fallback="allow") as executable:
        first, second = executable.run([x]), executable.run([x])
    wanted = np.where(first["mask"], x.astype(np.float32) / 0.75, 0)
    np.testing.assert_allclose(first["y"].astype(np.float32), wanted, rtol=1e-3)
    assert first["y"].dtype == dtype
    assert abs(first["mask"].mean() - 0.75) < 0.02
    np.testing.assert_array_equal(first["y"], second["y"])
    assert (first["z"] != second["z"]).mean() > 0.2
