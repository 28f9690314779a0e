"""Models with symbolic sizes, and their shapes."""

from __future__ import annotations

from byoc_mlir.testing.networks.encoder import encoder, symbolised

__all__ = ["encoder", "encoder_shapes", "symbolised"]


def encoder_shapes(batch: int, seq: int) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the encoder's inputs."""
    return {"input_ids": (batch, seq), "attention_mask": (batch, seq)}
