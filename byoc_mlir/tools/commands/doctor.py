"""`byoc doctor`: what this machine offers, and what is missing."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import version
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from byoc_mlir import __version__
from byoc_mlir.backends import backend_names, get_backend
from byoc_mlir.backends.options import describe_options
from byoc_mlir.lowering.llvm_ir.codegen import Target
from byoc_mlir.runtime.libraries import find_openmp
from byoc_mlir.runtime.threads import available_threads


def register(commands: Any) -> None:
    """Adds the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser("doctor", help=__doc__)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    table = Table(show_header=False)
    table.add_row("byoc_mlir", __version__)
    for package in ("xdsl", "llvmlite", "onnx", "numpy"):
        table.add_row(package, version(package))
    table.add_row("Python", platform.python_version())
    table.add_row("processor", Target.host().cpu)
    table.add_row("threads", str(available_threads()))
    openmp = find_openmp()
    table.add_row("OpenMP", str(openmp or "none: host loops run on one thread; install libgomp"))
    for name in backend_names():
        backend = get_backend(name)
        table.add_row(f"backend {name}", backend.unavailable() or backend.describe())
        for option in describe_options(backend.options):
            table.add_row("", escape(option))
    Console().print(table)
    return 0
