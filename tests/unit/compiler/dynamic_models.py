"""Models of symbolic sizes, and their comparison with ONNX Runtime at many shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from helpers.programs import fixed_programs, generic_programs, is_symbolic
from onnx import ModelProto, TensorProto

import byoc_mlir
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.testing.networks import GraphBuilder
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

Sizes = Mapping[str, int]
"""Sizes of the symbols."""


def compiled(model: ModelProto, threads: int = 1) -> Executable:
    """Compiles the model for the host."""
    executable = byoc_mlir.compile(model, targets=(), threads=threads)
    assert is_symbolic(executable)
    return executable


def check_shapes(executable: Executable, model: ModelProto, sets: Sequence[Sizes]) -> None:
    """Asserts that the outputs equal ONNX Runtime's, for inputs of each set of sizes."""
    for sizes in sets:
        inputs = random_inputs(model, dims=sizes)
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs))


def check_one_program(model: ModelProto, sets: Sequence[Sizes], threads: int = 1) -> None:
    """Asserts that one program serves all sets of sizes, with ONNX Runtime's results."""
    with compiled(model, threads) as executable:
        check_shapes(executable, model, sets)
        assert len(generic_programs(executable)) == 1
        assert len(fixed_programs(executable)) == 0


def encoder(width: int = 32, heads: int = 4, inner: int = 64) -> ModelProto:
    """Returns a layer of an encoder on `x [batch, seq, 32]` with a mask: `mask [batch, seq]`."""
    b = GraphBuilder("encoder", seed=0)
    x = b.input("x", ["batch", "seq", width])
    mask = b.input("mask", ["batch", "seq"])
    b.channels[x] = width
    x = b.op("Mul", x, b.scalar(2.0))
    b.channels[x] = width
    attended = _attention(b, x, mask, heads)
    x = _norm(b, b.op("Add", x, attended), width)
    y = b.linear(x, inner)
    y = b.op("Mul", y, b.op("Sigmoid", y))
    b.channels[y] = inner
    b.output(_norm(b, b.op("Add", x, b.linear(y, width)), width), "y", ["batch", "seq", width])
    return b.build()


def _attention(b: GraphBuilder, x: str, mask: str, heads: int) -> str:
    width = b.channels[x]
    size = width // heads
    shape = b.op("Shape", x)
    batch, seq = (b.op("Gather", shape, b.ints(axis)) for axis in (0, 1))

    def split(*permutation: int) -> str:
        target = b.op("Concat", batch, seq, b.ints(heads), b.ints(size), axis=0)
        return b.transpose(b.op("Reshape", b.linear(x, width), target), *permutation)

    query, key, value = split(0, 2, 1, 3), split(0, 2, 3, 1), split(0, 2, 1, 3)
    scores = b.op("Div", b.op("MatMul", query, key), b.scalar(math.sqrt(size)))
    bias = b.op("Unsqueeze", b.op("Unsqueeze", mask, b.ints(1)), b.ints(2))
    weights = b.op("Softmax", b.op("Add", scores, bias), axis=-1)
    y = b.transpose(b.op("MatMul", weights, value), 0, 2, 1, 3)
    merged = b.op("Reshape", y, b.op("Concat", batch, seq, b.ints(width), axis=0))
    b.channels[merged] = width
    return b.linear(merged, width)


def _norm(b: GraphBuilder, x: str, width: int) -> str:
    scale, bias = b.uniform((width,), 0.7, 1.2, "scale"), b.normal((width,), 0.1, "bias")
    y = b.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)
    b.channels[y] = width
    return y


def decoder(heads: int = 2, size: int = 8, vocabulary: int = 50) -> ModelProto:
    """Returns attention over a growing cache: `ids [batch, new]`, `past_k` and `past_v [batch, 2,
    past, 8]` to `logits`, `k` and `v`.
    """
    b = GraphBuilder("decoder", seed=1, opset=18)
    width = heads * size
    ids = b.input("ids", ["batch", "new"], TensorProto.INT64)
    pasts = [b.input(name, ["batch", heads, "past", size]) for name in ("past_k", "past_v")]
    x = b.op("Gather", b.normal((vocabulary, width), 1.0, "embedding"), ids)
    b.channels[x] = width
    shape = b.op("Shape", ids)
    batch, new = (b.op("Gather", shape, b.ints(axis)) for axis in (0, 1))
    target = b.op("Concat", batch, new, b.ints(heads), b.ints(size), axis=0)
    query, *rows = (
        b.transpose(b.op("Reshape", b.linear(x, width), target), 0, 2, 1, 3) for _ in range(3)
    )
    key, value = (b.op("Concat", past, row, axis=2) for past, row in zip(pasts, rows, strict=True))
    scores = b.op("MatMul", query, b.transpose(key, 0, 1, 3, 2))
    y = b.transpose(b.op("MatMul", b.op("Softmax", scores, axis=-1), value), 0, 2, 1, 3)
    y = b.op("Reshape", y, b.op("Concat", batch, new, b.ints(width), axis=0))
    b.channels[y] = width
    b.output(b.linear(y, vocabulary), "logits", ["batch", "new", vocabulary])
    b.output(b.op("Identity", key), "k", ["batch", heads, "total", size])
    b.output(b.op("Identity", value), "v", ["batch", heads, "total", size])
    return b.build()
