"""Models on more than one machine: rows with Ray Data, requests with Ray Serve."""

from __future__ import annotations

from byoc_mlir.ray.dataset import apart, score
from byoc_mlir.ray.deployment import application, serving
from byoc_mlir.ray.scorer import Scorer
from byoc_mlir.ray.service import ServingLimits
from byoc_mlir.ray.shipping import ShippedModel, ship

__all__ = [
    "Scorer",
    "ServingLimits",
    "ShippedModel",
    "apart",
    "application",
    "score",
    "serving",
    "ship",
]
