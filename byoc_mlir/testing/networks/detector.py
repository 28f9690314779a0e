"""Single-shot detector (Liu et al., 2016) on a small backbone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, TensorProto

from byoc_mlir.testing.networks.builder import GraphBuilder

_CLASSES = 21
_RATIOS = (1.0, 2.0, 0.5, 3.0)


def ssd(*, seed: int = 0, batch: int = 1, image: int = 256) -> ModelProto:
    """Builds the detector with `NonMaxSuppression` at its end: `image [N, 3, H, W]` to `selected
    [K, 3]`, `boxes [N, A, 4]` and `scores [N, 20, A]`.
    """
    b = GraphBuilder("ssd", seed=seed)
    boxes, scores = _detections(b, batch, image)
    b.output(_suppressed(b, boxes, scores), "selected", [None, 3], TensorProto.INT64)
    _detection_outputs(b, boxes, scores, batch, image)
    return b.build()


def detector(*, seed: int = 0, batch: int = 1, image: int = 256) -> ModelProto:
    """Builds the detector that returns only its detections: `image [N, 3, H, W]` to `boxes [K, 4]`
    in pixels and their `scores [K]`.
    """
    b = GraphBuilder("detector", seed=seed)
    boxes, scores = _detections(b, batch, image)
    selected = _suppressed(b, boxes, scores)
    places = b.op("Gather", selected, b.ints(0, 2), axis=1)
    pixels = b.op("Mul", b.op("GatherND", boxes, places), b.scalar(image))
    b.output(pixels, "boxes", [None, 4])
    b.output(b.op("GatherND", scores, selected), "scores", [None])
    return b.build()


def _suppressed(b: GraphBuilder, boxes: str, scores: str) -> str:
    """Adds suppression; returns the indices `[K, 3]` of detections: image, class, box."""
    return b.op(
        "NonMaxSuppression",
        boxes,
        scores,
        b.ints(20),
        b.constant(np.array([0.45], np.float32)),
        b.constant(np.array([0.3], np.float32)),
    )


def ssd_raw(*, seed: int = 0, batch: int = 1, image: int = 256) -> ModelProto:
    """Builds the detector without suppression: `image [N, 3, H, W]` to `boxes [N, A, 4]` and
    `scores [N, 20, A]`.
    """
    b = GraphBuilder("ssd_raw", seed=seed)
    boxes, scores = _detections(b, batch, image)
    _detection_outputs(b, boxes, scores, batch, image)
    return b.build()


def _detection_outputs(b: GraphBuilder, boxes: str, scores: str, batch: int, image: int) -> None:
    count = len(_anchors(image))
    b.output(boxes, "boxes", [batch, count, 4])
    b.output(scores, "scores", [batch, _CLASSES - 1, count])


def _detections(b: GraphBuilder, batch: int, image: int) -> tuple[str, str]:
    """Adds decoded boxes `[N, A, 4]` and class scores without background `[N, 20, A]`."""
    maps = _backbone(b, b.input("image", [batch, 3, image, image]))
    offsets = b.op("Concat", *(_head(b, x, 4, batch, 0.5) for x in maps), axis=1)
    logits = b.op("Concat", *(_head(b, x, _CLASSES, batch, 3.0) for x in maps), axis=1)
    scores = b.transpose(b.op("Softmax", logits, axis=2), 0, 2, 1)
    scores = b.op("Slice", scores, b.ints(1), b.ints(_CLASSES), b.ints(1))
    return _decode(b, offsets, _anchors(image)), scores


def _backbone(b: GraphBuilder, x: str) -> list[str]:
    """Adds feature maps at strides 8, 16 and 32."""
    maps: list[str] = []
    for stage, channels in enumerate((32, 64, 128, 256, 256)):
        with b.scope(f"stage{stage}"):
            x = b.relu(b.batch_norm(b.conv(x, channels, 3, stride=2, bias=False)))
            x = b.relu(b.batch_norm(b.conv(x, channels, 3, bias=False)))
        if stage >= 2:
            maps.append(x)
    return maps


def _head(b: GraphBuilder, x: str, values: int, batch: int, gain: float) -> str:
    """Adds a head: `[N, C, H, W]` to `[N, H*W*4, values]`."""
    y = b.conv(x, len(_RATIOS) * values, 3, gain=gain)
    return b.reshape(b.transpose(y, 0, 2, 3, 1), batch, -1, values)


def _decode(b: GraphBuilder, offsets: str, anchors: npt.NDArray[np.float32]) -> str:
    """Decodes offsets relative to the anchors into corners, both `[N, A, 4]`."""
    near, far = b.ops("Split", offsets, b.ints(2, 2), outputs=2, axis=2)
    centres, sizes = b.constant(anchors[:, :2]), b.constant(anchors[:, 2:])
    near = b.op("Mul", b.op("Mul", near, b.scalar(0.1)), sizes)
    centre = b.op("Add", near, centres)
    extent = b.op("Mul", b.op("Exp", b.op("Mul", far, b.scalar(0.2))), sizes)
    half = b.op("Mul", extent, b.scalar(0.5))
    return b.op("Concat", b.op("Sub", centre, half), b.op("Add", centre, half), axis=2)


def _anchors(image: int) -> npt.NDArray[np.float32]:
    """Returns the centres and sizes of anchors `[A, 4]`, relative to the image."""
    levels: list[npt.NDArray[np.float32]] = []
    for stride, scale in ((8, 0.1), (16, 0.3), (32, 0.6)):
        steps = (np.arange(image // stride) + 0.5) * stride / image
        rows, columns, ratios = np.meshgrid(steps, steps, np.sqrt(_RATIOS), indexing="ij")
        level = np.stack([rows, columns, scale / ratios, scale * ratios], axis=-1)
        levels.append(level.reshape(-1, 4).astype(np.float32))
    return np.concatenate(levels)
