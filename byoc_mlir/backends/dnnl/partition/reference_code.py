"""Ops for which oneDNN has only its correct but slow reference code on this machine."""

from __future__ import annotations

from xdsl.ir import Operation

from byoc_mlir.backends.dnnl.library.objects import find
from byoc_mlir.backends.dnnl.primitives.descriptions import DescribedPrimitive
from byoc_mlir.backends.dnnl.primitives.layout_choices import ways
from byoc_mlir.backends.dnnl.primitives.of_ops import primitive


def reference_name(described: DescribedPrimitive) -> str | None:
    """Returns the name of oneDNN's reference code for a primitive; `None` if oneDNN has faster
    code.

    Returns "nothing" if oneDNN has no code at all. Recurrent layers also have such names, but are
    fast: they call vectorised GEMMs.
    """
    descriptor = find(described.call)
    if descriptor is None:
        return "nothing"
    name = descriptor.implementation
    return name if name.startswith("ref") and not _is_recurrent(described) else None


def _is_recurrent(described: DescribedPrimitive) -> bool:
    return described.call.kind.endswith(("lstm_forward", "gru_forward"))


def only_reference(op: Operation) -> str | None:
    """Returns the name of oneDNN's reference code for a `dnnl` op, if there is no faster code in
    any layout.

    Returns `None` if there is faster code, or if the op needs no primitive.
    """
    found: list[str] = []
    for layout in ways(op):
        described = primitive(op, layout)
        name = None if described is None else reference_name(described)
        if name is None:
            return None
        found.append(name)
    return max(found)
