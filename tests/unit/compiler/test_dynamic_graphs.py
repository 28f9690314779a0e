"""Random graphs of symbolic sizes: one program, eight shapes, sizes 0 and 1 among them."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from dynamic_models import check_one_program
from onnx import ModelProto

from byoc_mlir.testing.networks import GraphBuilder

_WIDTH = 6
_STEPS = 8
_UNARY = ("Abs", "Exp", "Neg", "Relu", "Sigmoid", "Sqrt", "Tanh")
_BINARY = ("Add", "Div", "Max", "Min", "Mul", "Sub")


class _Graph:
    """Graph on tensors `[n, m, 6]`, whose ops change their order and elements."""

    def __init__(self, seed: int):
        self._rng = Random(seed)
        self._b = GraphBuilder(f"random_{seed}", seed=seed, opset=14)
        self._values = [self._b.input(name, ["n", "m", _WIDTH]) for name in ("x", "y")]

    def build(self) -> ModelProto:
        rules = (self._unary, self._binary, self._product, self._fold, self._moved, self._attended)
        for _ in range(_STEPS):
            self._values.append(self._bounded(self._rng.choice(rules)(self._any())))
        self._b.output(self._b.op("Add", self._values[-1], self._any()), "result", [None] * 3)
        return self._b.build()

    def _any(self) -> str:
        return self._rng.choice(self._values[-4:])

    def _bounded(self, x: str) -> str:
        """Adds a clip that keeps values small, so that rounding errors stay small."""
        return self._b.op("Clip", x, self._b.scalar(-3.0), self._b.scalar(3.0))

    def _unary(self, x: str) -> str:
        kind = self._rng.choice(_UNARY)
        return self._b.op(kind, self._b.op("Abs", x) if kind == "Sqrt" else x)

    def _binary(self, x: str) -> str:
        kind, y = self._rng.choice(_BINARY), self._any()
        if kind == "Div":
            y = self._b.op("Add", self._b.op("Abs", y), self._b.scalar(1.0))
        return self._b.op(kind, x, y)

    def _product(self, x: str) -> str:
        return self._b.op("MatMul", x, self._b.normal((_WIDTH, _WIDTH), 0.4, "weight"))

    def _fold(self, x: str) -> str:
        kind, axis = self._rng.choice([("ReduceMax", 2), ("ReduceMin", 2), ("ReduceMean", 2)])
        return self._b.op("Sub", x, self._b.op(kind, x, axes=[axis], keepdims=1))

    def _moved(self, x: str) -> str:
        b, cut = self._b, self._rng.randrange(1, _WIDTH)
        first = b.op("Slice", x, b.ints(0), b.ints(cut), b.ints(2))
        rest = b.op("Slice", x, b.ints(cut), b.ints(_WIDTH), b.ints(2))
        turned = b.transpose(b.op("Concat", rest, first, axis=2), 1, 0, 2)
        flat = b.op("Reshape", turned, b.constant(np.array([-1, _WIDTH])))
        shape = b.op("Shape", turned)
        return b.transpose(b.op("Reshape", b.op("Tanh", flat), shape, allowzero=1), 1, 0, 2)

    def _attended(self, x: str) -> str:
        b = self._b
        scores = b.op("Softmax", b.op("MatMul", x, b.transpose(self._any(), 0, 2, 1)), axis=-1)
        return b.op("MatMul", scores, x)


@pytest.mark.parametrize("seed", range(4))
def test_one_program_for_a_random_graph(seed: int) -> None:
    sizes = [(3, 4), (1, 1), (0, 3), (3, 0), (1, 9), (17, 5), (2, 33), (0, 0)]
    check_one_program(_Graph(seed).build(), [{"n": n, "m": m} for n, m in sizes])
