"""All passes over oneDNN's regions, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from xdsl.passes import ModulePass

from byoc_mlir.backends.dnnl.choices import Choices
from byoc_mlir.backends.dnnl.passes.align_dnnl_results import AlignDnnlResults
from byoc_mlir.backends.dnnl.passes.bound_dnnl_weights import BoundDnnlWeights
from byoc_mlir.backends.dnnl.passes.choose_dnnl_algorithms import ChooseDnnlAlgorithms
from byoc_mlir.backends.dnnl.passes.choose_dnnl_products import ChooseDnnlProducts
from byoc_mlir.backends.dnnl.passes.convert_relay_to_dnnl import ConvertRelayToDnnl
from byoc_mlir.backends.dnnl.passes.fold_dnnl_factors import FoldDnnlFactors
from byoc_mlir.backends.dnnl.passes.fold_dnnl_zero_points import FoldDnnlZeroPoints
from byoc_mlir.backends.dnnl.passes.fuse_dnnl_concats import FuseDnnlConcats
from byoc_mlir.backends.dnnl.passes.fuse_dnnl_sums import FuseDnnlSums
from byoc_mlir.backends.dnnl.passes.place_dnnl_buffers import PlaceDnnlBuffers
from byoc_mlir.backends.dnnl.passes.place_dnnl_concats import PlaceDnnlConcats
from byoc_mlir.backends.dnnl.passes.place_dnnl_products import PlaceDnnlProducts
from byoc_mlir.backends.dnnl.passes.plan_dnnl_layouts import PlanDnnlLayouts
from byoc_mlir.backends.dnnl.passes.round_dnnl_results import RoundDnnlResults
from byoc_mlir.backends.dnnl.passes.select_dnnl_primitives import SelectDnnlPrimitives
from byoc_mlir.backends.dnnl.passes.share_dnnl_threads import ShareDnnlThreads
from byoc_mlir.backends.dnnl.passes.split_dnnl_activations import SplitDnnlActivations
from byoc_mlir.backends.dnnl.passes.split_dnnl_post_ops import SplitDnnlPostOps
from byoc_mlir.backends.dnnl.passes.unfold_dnnl_deconvolutions import UnfoldDnnlDeconvolutions


def pipeline(threads: int, choices: Choices) -> Sequence[ModulePass]:
    """Returns the passes that lower a region of `relay` ops to the input of code generation.

    Args:
        threads: the OpenMP threads that will run the region.
        choices: choices that the user requested instead of the cheapest ones.
    """
    chosen = {field.name: getattr(choices, field.name) for field in fields(Choices)}
    return (
        ConvertRelayToDnnl(),
        UnfoldDnnlDeconvolutions(),
        FoldDnnlZeroPoints(),
        SplitDnnlPostOps(),
        RoundDnnlResults(),
        FuseDnnlSums(),
        FoldDnnlFactors(),
        ChooseDnnlProducts(threads),
        PlaceDnnlProducts(),
        PlanDnnlLayouts(**chosen),
        ChooseDnnlAlgorithms(**chosen),
        SplitDnnlActivations(**chosen),
        BoundDnnlWeights(**chosen),
        FuseDnnlConcats(),
        PlaceDnnlConcats(),
        AlignDnnlResults(),
        ShareDnnlThreads(threads),
        SelectDnnlPrimitives(threads),
        PlaceDnnlBuffers(),
    )
