"""Encoder with symbolic sizes, in the forms that exporters write."""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import deepcopy

import numpy as np
from onnx import ModelProto, TensorProto

from byoc_mlir.testing.networks.builder import GraphBuilder


def symbolised(model: ModelProto, names: Mapping[str, Mapping[int, str]]) -> ModelProto:
    """Returns the model with symbolic dimensions for some sizes of its inputs."""
    result = deepcopy(model)
    for value in result.graph.input:
        for axis, name in names.get(value.name, {}).items():
            value.type.tensor_type.shape.dim[axis].dim_param = name
    for value in result.graph.output:
        value.type.tensor_type.ClearField("shape")
    del result.graph.value_info[:]
    return result


class _Encoder:
    """Builder of an encoder that reads its sizes with Shape and Gather, and reshapes by them."""

    def __init__(self, width: int, heads: int, layers: int, longest: int):
        self.b = GraphBuilder("encoder", seed=0)
        self.width, self.heads, self.layers, self.longest = width, heads, layers, longest

    def size(self, of: str, axis: int) -> str:
        """Adds the size of an axis, as a vector of one element."""
        b = self.b
        index = b.constant(np.array(axis, np.int64))
        return b.op("Unsqueeze", b.op("Gather", b.op("Shape", of), index, axis=0), b.ints(0))

    def reshaped(self, x: str, *sizes: str | int) -> str:
        """Adds a reshape to computed sizes."""
        b = self.b
        parts = [size if isinstance(size, str) else b.ints(size) for size in sizes]
        return b.op("Reshape", x, b.op("Concat", *parts, axis=0))

    def attention(self, x: str, bias: str) -> str:
        b, size = self.b, self.width // self.heads
        batch, seq = self.size(x, 0), self.size(x, 1)
        query, key, value = (
            b.transpose(
                self.reshaped(b.linear(x, self.width), batch, seq, self.heads, size), 0, 2, 1, 3
            )
            for _ in range(3)
        )
        scores = b.op("MatMul", query, b.transpose(key, 0, 1, 3, 2))
        scores = b.op("Add", b.op("Div", scores, b.scalar(math.sqrt(size))), bias)
        mixed = b.transpose(b.op("MatMul", b.op("Softmax", scores, axis=-1), value), 0, 2, 1, 3)
        b.channels[mixed] = self.width
        joined = self.reshaped(mixed, batch, seq, -1)
        b.channels[joined] = self.width
        return b.linear(joined, self.width)

    def norm(self, x: str) -> str:
        b = self.b
        scale, shift = (
            b.constant(np.ones(self.width, np.float32)),
            b.constant(np.zeros(self.width, np.float32)),
        )
        y = b.op("LayerNormalization", x, scale, shift, axis=-1)
        b.channels[y] = self.width
        return y

    def mask_bias(self, mask: str, batch: str, seq: str) -> str:
        """Adds the mask expanded to `[batch, 1, seq, seq]`, as PyTorch's exporter writes it."""
        b = self.b
        spread = b.op("Unsqueeze", mask, b.ints(1, 2))
        wanted = b.op("Concat", batch, b.ints(1), seq, seq, axis=0)
        ones = b.op("ConstantOfShape", b.op("Shape", wanted), value=_scalar(1))
        unknown = b.op("Equal", wanted, b.op("Mul", ones, b.constant(np.array(-1, np.int64))))
        expanded = b.op("Expand", spread, b.op("Where", unknown, ones, wanted))
        kept = b.op("Cast", expanded, to=TensorProto.FLOAT)
        return b.op("Mul", b.op("Sub", b.scalar(1.0), kept), b.scalar(-10000.0))

    def positions(self, seq: str) -> str:
        """Adds embeddings of the first positions: one by a slice of a table of positions, one by a
        `Range`.
        """
        b = self.b
        table = b.normal((self.longest, self.width), 0.3, "position_embeddings")
        places = b.constant(np.arange(self.longest, dtype=np.int64)[None], "position_ids")
        cut = b.op("Slice", places, b.ints(0), seq, b.ints(1), b.ints(1))
        zero, one = (b.constant(np.array(n, np.int64)) for n in (0, 1))
        counted = b.op("Range", zero, b.op("Squeeze", seq, b.ints(0)), one)
        again = b.op("Gather", b.normal((self.longest, self.width), 0.1, "more"), counted, axis=0)
        return b.op("Add", b.op("Gather", table, cut, axis=0), again)

    def build(self) -> ModelProto:
        b = self.b
        ids = b.input("input_ids", ["batch", "seq"], TensorProto.INT64)
        mask = b.input("attention_mask", ["batch", "seq"], TensorProto.INT64)
        batch, seq = self.size(ids, 0), self.size(ids, 1)
        bias = self.mask_bias(mask, batch, seq)
        x = b.op("Gather", b.normal((1000, self.width), 1.0, "words"), ids)
        x = b.op("Add", x, self.positions(seq))
        b.channels[x] = self.width
        for index in range(self.layers):
            with b.scope(f"layer.{index}"):
                x = self.norm(b.add(self.attention(x, bias), x))
                y = b.op("Relu", b.linear(x, 4 * self.width))
                b.channels[y] = 4 * self.width
                x = self.norm(b.add(b.linear(y, self.width), x))
        b.output(x, "last_hidden_state", ["batch", "seq", self.width])
        return b.build()


def _scalar(number: int) -> TensorProto:
    return TensorProto(dims=[1], data_type=TensorProto.INT64, int64_data=[number])


def encoder(*, width: int = 32, heads: int = 4, layers: int = 2, longest: int = 512) -> ModelProto:
    """Builds an encoder: `input_ids, attention_mask [batch, seq]` to `last_hidden_state [batch,
    seq, width]`.
    """
    return _Encoder(width, heads, layers, longest).build()
