"""Benchmark of this project and its peers, side by side.

    python benchmarks/run.py                                  the table of the README
    python benchmarks/run.py --models mnist mlp3 --threads 1  a call's overhead
    python benchmarks/run.py --engines byoc_host,iree --models mlp mobilenet_v2
    python benchmarks/run.py --precision int8 --models resnet50 vit_tiny

Every engine runs every model in a separate, fresh process; the runs of one model's processes are
interleaved, so that a machine that slows down affects all of them. All use the same number of
threads, and f32 unless another precision is requested. Models of int8 come from ONNX Runtime's
tools, with u8 activations and s8 weights per channel. In bf16, each engine decides what it rounds
(ONNX Runtime and IREE: nothing); a line says so if this project computes in f32, too. Errors are
against ONNX Runtime. If an engine fails on a model, its cell is `-`; the other engines go on.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from engines import ENGINES
from measure import Failure, Measurement, add_measuring_options, measure, show_progress
from models import DEFAULT, PRECISIONS, SMALL, known_models
from report import cost_table, latency_table, plot, rows_of

from byoc_mlir.compiler.options import default_targets
from byoc_mlir.transforms.profitability import why_unprofitable


def main() -> int:
    """Runs the benchmark; returns 0 if every engine returned outputs."""
    arguments = _parser().parse_args()
    results: list[Measurement | Failure] = []
    for result in measure(
        arguments.models,
        arguments.engines,
        arguments.threads,
        arguments.rounds,
        arguments.precision,
    ):
        show_progress(result)
        results.append(result)
    rows = rows_of(results, arguments.quantile)
    print(latency_table(rows, arguments.engines))
    if why := why_in_f32(arguments.precision):
        print(f"\nbyoc computes in f32: {why}")
    print("\nFrom file to first answer, and peak memory:\n")
    print(cost_table(rows, arguments.engines))
    if arguments.json:
        document = {"machine": machine(), "results": [asdict(result) for result in results]}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n")
    if arguments.plot:
        plot(rows, arguments.engines, arguments.plot)
    return int(any(isinstance(result, Failure) for result in results))


def why_in_f32(precision: str) -> str | None:
    """Returns why this project computes in f32 on this machine though bf16 was requested; `None` if
    it does not.
    """
    return why_unprofitable(precision, default_targets()[0]) if precision == "bf16" else None


def machine() -> dict[str, object]:
    """Returns the facts about machine and packages on which the measurements depend."""
    packages = ("byoc_mlir", "onnxruntime", "openvino", "iree-base-compiler", "onednn-cpu-gomp")
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: version for name in packages if (version := _version(name))},
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--models",
        nargs="+",
        type=_model,
        default=DEFAULT,
        metavar="NAME[@BATCH]",
        help=f"default: {' '.join(DEFAULT)}; tiny: {' '.join(SMALL)}; "
        f"known: {' '.join(known_models())}",
    )
    parser.add_argument(
        "--engines",
        type=engine_names,
        default=("byoc", "onnxruntime", "openvino"),
        metavar="A,B,...",
        help=f"any of {', '.join(ENGINES)}",
    )
    parser.add_argument("--precision", choices=PRECISIONS, default="f32")
    add_measuring_options(parser)
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    parser.add_argument("--plot", type=Path, help="draw the ratios into this file (SVG, PNG)")
    return parser


def _model(text: str) -> str:
    name, separator, batch = text.partition("@")
    if name not in known_models() or (separator and not batch.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r}; known models: {', '.join(known_models())}")
    return text


def engine_names(text: str) -> Sequence[str]:
    """Parses a list of engines, separated by commas."""
    engines = text.split(",")
    if unknown := [engine for engine in engines if engine not in ENGINES]:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}; known: {', '.join(ENGINES)}")
    return engines


if __name__ == "__main__":
    sys.exit(main())
