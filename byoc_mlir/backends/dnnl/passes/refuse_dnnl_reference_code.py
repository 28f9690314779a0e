"""The pass `refuse-dnnl-reference-code`: regions that are slow with oneDNN."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.dialect.quantized import is_ours
from byoc_mlir.backends.dnnl.library.algorithms import OWN_CONVOLUTIONS
from byoc_mlir.backends.dnnl.partition.reference_code import reference_name
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass
from byoc_mlir.backends.dnnl.primitives.of_ops import primitive
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.errors import CompilationError
from byoc_mlir.onednn.engine import openmp_threads


class RefuseDnnlReferenceCode(RegionPass):
    """Refuses regions with reference code that no earlier pass avoided; changes no region.

    Raises:
        CompilationError: the region has reference code, so the host is faster.
    """

    name = "refuse-dnnl-reference-code"

    def change(self, region: FuncOp) -> None:
        with openmp_threads(1):
            for op in region.body.block.ops:
                if isinstance(op, dnnl.ConvolutionOp) and op.algorithm.data in OWN_CONVOLUTIONS:
                    continue
                if is_ours(op):
                    continue
                described = primitive(op)
                name = None if described is None else reference_name(described)
                if name is not None:
                    nodes = ", ".join(node_names(op)) or op.name
                    raise CompilationError(
                        f"oneDNN has only reference code ({name}) for {nodes}, which"
                        " is slower than the host"
                    )
