"""Models as exporters write them, with data-dependent sizes, branches and counts."""

from __future__ import annotations

import math

import numpy as np
from onnx import ModelProto, TensorProto

from byoc_mlir.testing.networks import GraphBuilder

VOCABULARY = 50


def encoder() -> ModelProto:
    """Builds a transformer layer with a pooled head and dynamic batch and sequence length:
    `input_ids, attention_mask [batch, tokens]` to `hidden [batch, tokens, 64]`, `label [batch, 5]`.
    """
    b = GraphBuilder("encoder", seed=1)
    width, heads = 64, 4
    ids = b.input("input_ids", ["batch", "tokens"], TensorProto.INT64)
    mask = b.input("attention_mask", ["batch", "tokens"], TensorProto.INT64)
    batch, tokens = (b.op("Slice", b.op("Shape", ids), b.ints(i), b.ints(i + 1)) for i in (0, 1))
    split = b.op("Concat", batch, tokens, b.ints(heads, width // heads), axis=0)
    joined = b.op("Concat", batch, tokens, b.ints(width), axis=0)
    positions = b.op("Slice", b.normal((1, 64, width), 0.3), b.ints(0), tokens, b.ints(1))
    x = b.add(b.op("Gather", b.normal((VOCABULARY, width), 1.0), ids), positions)
    b.channels[x] = width
    bias = b.op("Cast", b.op("Unsqueeze", mask, b.ints(1, 2)), to=TensorProto.FLOAT)
    bias = b.op("Mul", b.op("Sub", bias, b.scalar(1.0)), b.scalar(1e4))

    def heads_of(*order: int) -> str:
        return b.transpose(b.op("Reshape", b.linear(x, width), split), *order)

    scores = b.op("MatMul", heads_of(0, 2, 1, 3), heads_of(0, 2, 3, 1))
    scores = b.add(b.op("Div", scores, b.scalar(math.sqrt(width / heads))), bias)
    y = b.op("MatMul", b.op("Softmax", scores, axis=-1), heads_of(0, 2, 1, 3))
    y = b.op("Reshape", b.transpose(y, 0, 2, 1, 3), joined)
    scale, shift = b.uniform((width,), 0.7, 1.2, "scale"), b.normal((width,), 0.1, "bias")
    x = b.op("LayerNormalization", b.add(x, y), scale, shift, axis=-1)
    b.channels[x] = width
    first = b.op("Gather", x, b.constant(np.array(0, np.int64)), axis=1)
    b.channels[first] = width
    label = b.gemm(b.op("Tanh", b.gemm(first, width)), 5)
    b.output(x, "hidden", ["batch", "tokens", width])
    b.output(label, "label", ["batch", 5])
    return b.build()


def voice_activity(*, fixed_chunks: bool) -> ModelProto:
    """Builds a recurrent detector of speech with a branch for each sample rate.

    Inputs: `chunk [batch, samples], state [2, batch, 32], rate`. Outputs: `speech [batch, 1]`,
    `next_state [2, batch, 32]`.

    Args:
        fixed_chunks: if true, a branch takes only chunks of its own size, 512 or 256 samples.
    """
    b = GraphBuilder("voice_activity", seed=2)
    b.input("chunk", ["batch", "samples"])
    b.input("state", [2, "batch", 32])
    rate = b.input("rate", [], TensorProto.INT64)
    is_wide = b.op("Equal", rate, b.constant(np.array(16000, np.int64)))
    speech, state = b.ops(
        "If",
        is_wide,
        outputs=2,
        then_branch=_speech_branch(256, fixed_chunks).graph,
        else_branch=_speech_branch(128, fixed_chunks).graph,
    )
    b.output(speech, "speech", ["batch", 1])
    b.output(state, "next_state", [2, "batch", 32])
    return b.build()


def _speech_branch(window: int, fixed_chunks: bool) -> ModelProto:
    """Builds a spectrum by convolution, two convolutions, an LSTM, and the mean over time."""
    b = GraphBuilder("branch", seed=window)
    bins, hidden = window // 2 + 1, 32
    with b.scope(f"window{window}"):
        pads = b.ints(0, window // 4, 0, window // 4)
        x = b.op("Unsqueeze", b.op("Pad", "chunk", pads, mode="reflect"), b.ints(1))
        angles = 2 * np.pi / window * np.outer(np.arange(bins), np.arange(window))
        basis = np.concatenate([np.cos(angles), np.sin(angles)]) * np.hanning(window)
        basis = b.constant(basis[:, None, :].astype(np.float32), "basis")
        x = b.op("Conv", x, basis, strides=[window // 2], kernel_shape=[window])
        parts = b.ops("Split", x, b.ints(bins, bins), outputs=2, axis=1)
        x = b.op("Sqrt", b.add(*(b.op("Mul", part, part) for part in parts)))
        if fixed_chunks:
            x = b.op("Reshape", x, b.ints(0, bins, 4))
        for channels in (48, 40):
            inputs = bins if channels == 48 else 48
            weight = b.normal((channels, inputs, 3), 1 / math.sqrt(3 * inputs))
            bias = b.normal((channels,), 0.1, "bias")
            x = b.relu(b.op("Conv", x, weight, bias, pads=[1, 1], kernel_shape=[3]))
        old = b.ops("Split", "state", b.ints(1, 1), outputs=2, axis=0)
        y, *new = b.ops(
            "LSTM",
            b.transpose(x, 2, 0, 1),
            b.normal((1, 4 * hidden, 40), 0.2, "W"),
            b.normal((1, 4 * hidden, hidden), 0.2, "R"),
            b.normal((1, 8 * hidden), 0.2, "B"),
            "",
            *old,
            outputs=3,
            hidden_size=hidden,
        )
        y = b.relu(b.transpose(b.op("Squeeze", y, b.ints(1)), 1, 2, 0))
        y = b.op("Conv", y, b.normal((1, hidden, 1), 0.5), kernel_shape=[1])
        y = b.op("ReduceMean", b.op("Sigmoid", y), axes=[2], keepdims=0)
    b.output(y, f"speech{window}", ["batch", 1])
    b.output(b.op("Concat", *new, axis=0), f"state{window}", [2, "batch", hidden])
    return b.build()


def detector() -> ModelProto:
    """Builds a one-stage detector that returns the boxes it keeps: `image [1, 3, height, width]` to
    `boxes [kept, 4]`, `scores [kept]` and `classes [kept]`.
    """
    b = GraphBuilder("detector", seed=3)
    classes = 3
    x = b.input("image", [1, 3, "height", "width"])
    b.channels[x] = 3
    for channels in (16, 32):
        x = b.relu(b.batch_norm(b.conv(x, channels, 3, stride=2, bias=False)))
    corners = b.reshape(b.transpose(b.conv(x, 4, 3, gain=1.0), 0, 2, 3, 1), 1, -1, 4)
    near, size = b.ops("Split", corners, b.ints(2, 2), outputs=2, axis=2)
    boxes = b.op("Concat", near, b.add(near, b.op("Exp", size)), axis=2)
    logits = b.op("Reshape", b.conv(x, classes, 3, gain=3.0), b.ints(1, classes, -1))
    scores = b.op("Sigmoid", logits)
    limits = (b.constant(np.array([limit], np.float32)) for limit in (0.3, 0.6))
    selected = b.op("NonMaxSuppression", boxes, scores, b.ints(10), *limits)
    class_, place = (
        b.op("Gather", selected, b.constant(np.array(column, np.int64)), axis=1)
        for column in (1, 2)
    )
    kept = b.op("Gather", b.op("Squeeze", boxes, b.ints(0)), place)
    pair = b.op("Concat", *(b.op("Unsqueeze", one, b.ints(1)) for one in (class_, place)), axis=1)
    score = b.op("GatherND", b.op("Squeeze", scores, b.ints(0)), pair)
    b.output(kept, "boxes", ["kept", 4])
    b.output(score, "scores", ["kept"])
    b.output(class_, "classes", ["kept"], TensorProto.INT64)
    return b.build()
