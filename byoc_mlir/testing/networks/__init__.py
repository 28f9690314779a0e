"""Real networks with seeded random weights, built with `onnx.helper`.

Every entry of `NETWORKS` takes `seed` and `batch` as keywords, image networks also `image`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import ModelProto

from byoc_mlir.testing.networks.builder import GraphBuilder
from byoc_mlir.testing.networks.convnet import densenet121, inception_v3, unet, vgg16
from byoc_mlir.testing.networks.decoder import DecoderSizes, decoder
from byoc_mlir.testing.networks.detector import ssd, ssd_raw
from byoc_mlir.testing.networks.lstm import lstm2
from byoc_mlir.testing.networks.mlp import mlp, mlp3, mnist
from byoc_mlir.testing.networks.mobile import (
    efficientnet_b0,
    mobilenet_v2,
    shufflenet,
    squeezenet,
)
from byoc_mlir.testing.networks.resnet import resnet18, resnet50
from byoc_mlir.testing.networks.transformer import bert6, gpt4, vit_tiny

NETWORKS: Mapping[str, Callable[..., ModelProto]] = {
    "mlp3": mlp3,
    "mnist": mnist,
    "mlp": mlp,
    "resnet18": resnet18,
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
    "efficientnet_b0": efficientnet_b0,
    "vgg16": vgg16,
    "inception_v3": inception_v3,
    "densenet121": densenet121,
    "squeezenet": squeezenet,
    "shufflenet": shufflenet,
    "unet": unet,
    "vit_tiny": vit_tiny,
    "bert6": bert6,
    "gpt4": gpt4,
    "lstm2": lstm2,
    "ssd": ssd,
    "ssd_raw": ssd_raw,
}

__all__ = ["NETWORKS", "DecoderSizes", "GraphBuilder", "decoder"]
