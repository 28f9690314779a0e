"""What the library has only reference code for, on the machine at hand: correct, and slow."""

from __future__ import annotations

from xdsl.ir import Operation

from byoc_mlir.backends.dnnl.library.objects import find
from byoc_mlir.backends.dnnl.primitives.descriptions import DescribedPrimitive
from byoc_mlir.backends.dnnl.primitives.layout_choices import ways
from byoc_mlir.backends.dnnl.primitives.of_ops import primitive


def reference_name(described: DescribedPrimitive) -> str | None:
    """The name of the reference code that the library has for a primitive, if that is all it has;
    "nothing" if it has not even that.

    Its recurrent layers are called so too, and are fast: products of matrices with vector code.
    """
    descriptor = find(described.call)
    if descriptor is None:
        return "nothing"
    name = descriptor.implementation
    return name if name.startswith("ref") and not _is_recurrent(described) else None


def _is_recurrent(described: DescribedPrimitive) -> bool:
    return described.call.kind.endswith(("lstm_forward", "gru_forward"))


def only_reference(op: Operation) -> str | None:
    """The library's name for what it has for a `dnnl` op, if that is reference code in all layouts;
    `None` where it has anything else, or where the op needs no primitive.
    """
    found: list[str] = []
    for layout in ways(op):
        described = primitive(op, layout)
        name = None if described is None else reference_name(described)
        if name is None:
            return None
        found.append(name)
    return max(found)
