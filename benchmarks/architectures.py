"""Benchmark of architectures that people train, with random weights, as PyTorch's exporter writes
them.

    python benchmarks/architectures.py                                 all of the lists below
    python benchmarks/architectures.py --environment torch-env         keeps the environment
    python benchmarks/architectures.py --names timm:vit_tiny_patch16_224 transformers:bert

`timm:`, `torchvision:` and `transformers:` name the package that builds the network; the rest is
the package's own name of it. Models of `transformers` have two layers. PyTorch and the packages go
into a separate environment, where `export.py` writes the models. Then all outputs are compared with
ONNX Runtime's, and both engines are timed as in `run.py`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from recorded import compare, environment, parser_of, record

REQUIREMENTS = ("torch", "torchvision", "timm", "transformers", "onnx", "onnxscript")

TIMM = (
    "convnext_atto convmixer_768_32 crossvit_tiny_240 deit_tiny_distilled_patch16_224 dla34"
    " edgenext_xx_small efficientformerv2_s0 efficientvit_b0 fastvit_t8 ghostnetv2_100"
    " halonet26t hgnetv2_b0 levit_128s mambaout_femto mobilenetv4_conv_small mobileone_s0"
    " mobilevitv2_050 poolformer_s12 pvt_v2_b0 regnety_002 repvgg_a0 resmlp_12_224"
    " swin_tiny_patch4_window7_224 tiny_vit_5m_224 visformer_tiny xcit_nano_12_p16_224"
)
TORCHVISION = "fcn_resnet50 googlenet lraspp_mobilenet_v3_large maxvit_t r3d_18 raft_small"
"""Architectures of torchvision. Detectors with random weights find boxes whose scores are equal but
for rounding: their order differs between ONNX Runtime's own settings, too, so their outputs prove
nothing.
"""
TRANSFORMERS = (
    "albert bert bloom convbert deberta-v2 gemma2 gpt2 llama mamba modernbert opt phi3 qwen3"
    " segformer squeezebert swinv2 wav2vec2"
)
NAMES = (
    *(f"timm:{name}" for name in TIMM.split()),
    *(f"torchvision:{name}" for name in TORCHVISION.split()),
    *(f"transformers:{name}" for name in TRANSFORMERS.split()),
)

TOLERANCE = 1e-3
"""Tolerance, as in `real.py`."""


def main() -> int:
    """Runs the benchmark; returns 0 if all outputs agree."""
    arguments = _parser().parse_args()
    with ExitStack() as stack:
        prefix = "byoc-architectures-"
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=prefix)))
        python = environment(arguments.environment or folder / "environment", REQUIREMENTS)
        record(python, "export.py", folder / "models", *arguments.names)
        models = sorted((folder / "models").iterdir())
        threads, rounds = arguments.threads, arguments.rounds
        return compare(models, threads, rounds, arguments.quantile, TOLERANCE)


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(__doc__)
    parser.add_argument("--names", nargs="+", default=NAMES, metavar="PACKAGE:NAME")
    return parser


if __name__ == "__main__":
    sys.exit(main())
