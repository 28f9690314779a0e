"""Every pass of the compiler, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module

from xdsl.passes import ModulePass

_FOLDERS: Mapping[str, Sequence[str]] = {
    "transforms": (
        "annotate-target",
        "convert-tensors-to-relay",
        "convolutions-to-float",
        "decompose-qnn",
        "drop-unused-functions",
        "fake-quantization-to-integer",
        "fold-batch-norm",
        "fold-constants",
        "halves-to-float",
        "inline-partitions",
        "limit-weight-growth",
        "merge-compiler-regions",
        "merge-composite",
        "partition-for",
        "partition-graph",
        "prune-regions",
        "simplify",
        "specialise-dims",
        "split-products",
        "to-mixed-precision",
        "unfold-transposed-convolutions",
        "unsigned-bytes",
    ),
    "compiler.partition": ("estimate-regions",),
    "lowering": (
        "add-entry-points",
        "avoid-gathers",
        "bind-sizes",
        "bufferize",
        "check-legal",
        "fuse-elementwise",
        "lower-small-types",
        "lower-softmaxes",
        "mark-cold-functions",
        "outline-kernels",
        "pack-weights",
        "plan-buffers",
        "profile-steps",
        "round-recurrent-weights",
        "widen-products",
    ),
    "lowering.convolutions": (
        "choose-convolution-algorithms",
        "decompose-transposed-convolutions",
        "keep-channels-last",
        "lower-convolutions",
    ),
    "lowering.integer_products": ("lower-integer-products",),
    "lowering.linalg_to_loops": ("choose-schedules", "convert-linalg-to-loops"),
    "lowering.relay_to_linalg": ("convert-relay-to-linalg",),
    "lowering.to_llvm": (
        "convert-to-llvm",
        "expand-math",
        "expand-memref-copy",
        "lower-scf-to-cf",
        "outline-parallel",
    ),
}
"""The passes of each folder: one in a file, which has the pass's name."""


def all_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Pass name to a function that imports and returns the pass class."""
    return {name: partial(_load, folder, name) for folder in _FOLDERS for name in _FOLDERS[folder]}


def _load(folder: str, name: str) -> type[ModulePass]:
    module = import_module(f"byoc_mlir.{folder}.{name.replace('-', '_')}")
    for found in vars(module).values():
        is_pass = isinstance(found, type) and issubclass(found, ModulePass)
        if is_pass and getattr(found, "name", "") == name:
            return found
    raise ImportError(f"{module.__name__} has no pass {name}")
