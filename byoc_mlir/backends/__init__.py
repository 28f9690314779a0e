"""Backends: the contract, the registry, and one folder for each built-in backend."""

from byoc_mlir.backends.base import (
    API_VERSION,
    Backend,
    Blob,
    CodegenContext,
    CSource,
    GeneratedCode,
    NativeCode,
    OpDetail,
    Rule,
    weight_symbol,
)
from byoc_mlir.backends.registry import (
    backend_names,
    get_backend,
    get_backends,
    load_backend_module,
    register_backend,
)

__all__ = [
    "API_VERSION",
    "Backend",
    "Blob",
    "CSource",
    "CodegenContext",
    "GeneratedCode",
    "NativeCode",
    "OpDetail",
    "Rule",
    "backend_names",
    "get_backend",
    "get_backends",
    "load_backend_module",
    "register_backend",
    "weight_symbol",
]
