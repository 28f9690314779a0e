"""PyTorch modules: compiled whole, or as a backend of `torch.compile`. See `docs/pytorch.md`."""

from byoc_mlir.torch.dynamo import dynamo_backend
from byoc_mlir.torch.module import CompiledModule, from_torch

__all__ = ["CompiledModule", "dynamo_backend", "from_torch"]
