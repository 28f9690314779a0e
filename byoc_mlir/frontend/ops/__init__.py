"""Import functions, one per ONNX op, in families; all are registered with this package."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages

for _family in walk_packages(__path__, f"{__name__}."):
    import_module(_family.name)
