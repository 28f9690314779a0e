"""Parts of whole networks that oneDNN takes: regions, composites, single ops, and the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import onnx
import pytest

from byoc_mlir.compiler.pipeline import CANONICALISATION
from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.frontend.importer import import_model
from byoc_mlir.frontend.stages.split import first_stage
from byoc_mlir.lowering.host_pipeline import run_passes
from byoc_mlir.testing.light import light_networks
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.transforms.partition_for import PartitionFor
from byoc_mlir.transforms.placement import HOST, placements


@dataclass(frozen=True)
class Counts:
    """Names and their numbers, as `"nn.relu*2 tanh*1"`; sorted by name."""

    regions: int
    composites: str
    alone: str
    """Ops that oneDNN runs without a composite."""
    host: str


EXPECTED = {
    "resnet18": Counts(
        regions=1,
        composites="conv2d_bias*3 conv2d_bias_relu*9 conv2d_bias_sum_relu*8 dense_bias*1",
        alone="nn.global_avg_pool2d*1 nn.max_pool2d*1 reshape*1",
        host="",
    ),
    "resnet50": Counts(
        regions=1,
        composites="conv2d_bias*4 conv2d_bias_relu*33 conv2d_bias_sum_relu*16 dense_bias*1",
        alone="nn.global_avg_pool2d*1 nn.max_pool2d*1 reshape*1",
        host="",
    ),
    "mobilenet_v2": Counts(
        regions=1,
        composites="conv2d_bias*7 conv2d_bias_clip*35 conv2d_bias_sum*10 dense_bias*1",
        alone="nn.global_avg_pool2d*1 reshape*1",
        host="",
    ),
    "densenet121": Counts(
        regions=1,
        composites="batch_norm_relu*62 conv2d_bias_relu*59 dense_bias*1",
        alone="concatenate*58 nn.avg_pool2d*3 nn.conv2d*61 nn.global_avg_pool2d*1 nn.max_pool2d*1"
        " reshape*1",
        host="",
    ),
    "inception_v3": Counts(
        regions=1,
        composites="conv2d_bias_relu*94 dense_bias*1",
        alone="concatenate*15 nn.avg_pool2d*9 nn.global_avg_pool2d*1 nn.max_pool2d*4 reshape*1",
        host="",
    ),
    "squeezenet": Counts(
        regions=1,
        composites="conv2d_bias_relu*26",
        alone="concatenate*8 nn.global_avg_pool2d*1 nn.max_pool2d*3 reshape*1",
        host="",
    ),
    "vit_tiny": Counts(
        regions=16,
        composites="conv2d_bias*1 dense_bias*13 dense_bias_gelu_erf*12 dense_bias_sum*24",
        alone="concatenate*1 nn.layer_norm*25 nn.matmul*24 nn.softmax*12 reshape*25 squeeze*12"
        " transpose*24",
        host="add*1 multiply*12 split*12 squeeze*24 take*1 transpose*13",
    ),
    "bert6": Counts(
        regions=1,
        composites="dense_bias*18 dense_bias_gelu_erf*6 dense_bias_sum*12 layer_norm*13"
        " matmul_scale_sum*6",
        alone="nn.matmul*6 nn.softmax*6 reshape*24 transpose*24",
        host="add*2 cast*1 multiply*1 reshape*1 subtract*1 take*2",
    ),
    "ssd": Counts(
        regions=4,
        composites="conv2d_bias*6 conv2d_bias_relu*10",
        alone="concatenate*3 nn.softmax*1 reshape*6",
        host="add*2 exp*1 multiply*5 split*1 strided_slice*1 subtract*1 transpose*7"
        " vision.non_max_suppression*1",
    ),
    "light_bvlc_alexnet": Counts(
        regions=1,
        composites="conv2d_bias_relu*5 dense_bias*1 dense_bias_relu*2",
        alone="nn.lrn*2 nn.max_pool2d*3 nn.softmax*1 reshape*1",
        host="",
    ),
    "light_densenet121": Counts(
        regions=1,
        composites="batch_norm_relu*62 conv2d_bias*1 conv2d_bias_relu*59",
        alone="concatenate*58 nn.avg_pool2d*3 nn.conv2d*61 nn.global_avg_pool2d*1 nn.max_pool2d*1",
        host="",
    ),
    "light_inception_v1": Counts(
        regions=1,
        composites="conv2d_bias_relu*57 dense_bias*1",
        alone="concatenate*9 nn.avg_pool2d*1 nn.lrn*2 nn.max_pool2d*13 nn.softmax*1 reshape*1",
        host="",
    ),
    "light_inception_v2": Counts(
        regions=1,
        composites="conv2d_bias_relu*69 dense_bias*1",
        alone="concatenate*10 nn.avg_pool2d*8 nn.max_pool2d*5 nn.softmax*1 reshape*1",
        host="",
    ),
    "light_resnet50": Counts(
        regions=1,
        composites="conv2d_bias*4 conv2d_bias_relu*33 conv2d_bias_sum_relu*16 dense_bias*1",
        alone="nn.avg_pool2d*1 nn.max_pool2d*1 nn.softmax*1 reshape*1",
        host="",
    ),
    "light_shufflenet": Counts(
        regions=1,
        composites="channel_shuffle*16 conv2d_bias*19 conv2d_bias_relu*17 conv2d_bias_sum_relu*13"
        " dense_bias*1",
        alone="concatenate*3 nn.avg_pool2d*4 nn.max_pool2d*1 nn.relu*3 nn.softmax*1 reshape*1",
        host="",
    ),
    "light_squeezenet": Counts(
        regions=1,
        composites="conv2d_bias_relu*26",
        alone="concatenate*8 nn.global_avg_pool2d*1 nn.max_pool2d*3 nn.softmax*1",
        host="",
    ),
    "light_vgg19": Counts(
        regions=1,
        composites="conv2d_bias_relu*16 dense_bias*1 dense_bias_relu*2",
        alone="nn.max_pool2d*5 nn.softmax*1 reshape*1",
        host="",
    ),
    "light_zfnet512": Counts(
        regions=1,
        composites="conv2d_bias_relu*5 dense_bias*1 dense_bias_relu*2",
        alone="nn.lrn*2 nn.max_pool2d*3 nn.softmax*1 reshape*1",
        host="",
    ),
}


def network(name: str) -> onnx.ModelProto:
    if name.startswith("light_"):
        return onnx.load(light_networks()[name])
    return first_stage(NETWORKS[name]())


def listed(names: Iterable[str]) -> str:
    return " ".join(f"{name}*{count}" for name, count in sorted(Counter(names).items()))


@pytest.mark.parametrize("name", EXPECTED)
def test_counts(name: str):
    module = import_model(network(name)).module
    passes = (*CANONICALISATION, PartitionFor(targets=("dnnl",)))
    run_passes(make_context(), module, passes, verify=True)
    composites = [op.composite_name.data for op in module.walk() if isinstance(op, CompositeOp)]
    rows = placements(module)
    assert all(row.nodes for row in rows)
    assert (
        Counts(
            regions=len({row.region for row in rows} - {""}),
            composites=listed(composite.removeprefix("dnnl.") for composite in composites),
            alone=listed(row.op for row in rows if row.backend != HOST and not row.composite),
            host=listed(row.op for row in rows if row.backend == HOST),
        )
        == EXPECTED[name]
    )


def test_every_light_network_is_listed():
    assert set(light_networks()) <= EXPECTED.keys()
