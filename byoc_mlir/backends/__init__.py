"""Backends: the contract, the registry, and one folder for each built-in backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from byoc_mlir.abi import weight_symbol
    from byoc_mlir.backends.base import (
        API_VERSION,
        Backend,
        Blob,
        CodegenContext,
        CSource,
        GeneratedCode,
        NativeCode,
        OpDetail,
        Profitability,
        Rule,
    )
    from byoc_mlir.backends.options import Option, Setting, Target, split_targets
    from byoc_mlir.backends.registry import (
        backend_names,
        get_backend,
        get_backends,
        load_backend_module,
        register_backend,
    )
    from byoc_mlir.runtime.module import RegionFunction, RegionModule
    from byoc_mlir.tensors import Array

__all__ = [
    "API_VERSION",
    "Array",
    "Backend",
    "Blob",
    "CSource",
    "CodegenContext",
    "GeneratedCode",
    "NativeCode",
    "OpDetail",
    "Option",
    "Profitability",
    "RegionFunction",
    "RegionModule",
    "Rule",
    "Setting",
    "Target",
    "backend_names",
    "get_backend",
    "get_backends",
    "load_backend_module",
    "register_backend",
    "split_targets",
    "weight_symbol",
]

_HOMES = {
    **dict.fromkeys(("Option", "Setting", "Target", "split_targets"), "byoc_mlir.backends.options"),
    **dict.fromkeys(("RegionFunction", "RegionModule"), "byoc_mlir.runtime.module"),
    **dict.fromkeys(
        (
            "backend_names",
            "get_backend",
            "get_backends",
            "load_backend_module",
            "register_backend",
        ),
        "byoc_mlir.backends.registry",
    ),
    "Array": "byoc_mlir.tensors",
    "weight_symbol": "byoc_mlir.abi",
}


def __getattr__(name: str) -> Any:
    """Imports a public name on first use, so that code that only runs blobs does not load the
    compiler.
    """
    if name not in __all__:
        raise AttributeError(f"module 'byoc_mlir.backends' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES.get(name, "byoc_mlir.backends.base")), name)
