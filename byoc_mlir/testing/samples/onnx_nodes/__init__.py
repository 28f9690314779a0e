"""Random valid nodes of each ONNX op, in all opset versions, types and forms.

Ops whose inputs depend on each other have a recipe in one of the families; the schema alone
suffices for the others.
"""

from byoc_mlir.testing.samples.onnx_nodes import (
    classical,
    control,
    elementwise,
    image,
    index,
    matrix,
    quantised,
    rearrange,
    recurrent,
    trees,
    vendor,
    vendor_attention,
    window,
)

FAMILIES = (
    *(classical, control, elementwise, image, index, matrix, quantised, rearrange, recurrent),
    *(trees, vendor, vendor_attention, window),
)
"""Modules that register recipes."""
