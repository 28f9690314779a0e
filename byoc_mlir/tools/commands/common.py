"""Helpers that subcommands share: naming a model, choosing targets, generating inputs."""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from rich.markup import escape
from rich.table import Table

import byoc_mlir
from byoc_mlir.backends import load_backend_module
from byoc_mlir.compiler.cache.folder import Folder
from byoc_mlir.compiler.request import Request
from byoc_mlir.errors import InvalidInputError, InvalidModelError
from byoc_mlir.names import meant, printable, printable_lines
from byoc_mlir.runtime import Executable
from byoc_mlir.runtime.profile import Profile
from byoc_mlir.runtime.report import Report
from byoc_mlir.tensors import TensorInfo
from byoc_mlir.tools.options import add_option_arguments, at_least, options_of, read_inputs
from byoc_mlir.tools.words import on_command_line

DEFAULT_MODEL = "resnet50"

_LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"


def add_model_argument(parser: argparse.ArgumentParser) -> None:
    """Adds the argument for the model."""
    parser.add_argument(
        "model",
        nargs="?",
        default=DEFAULT_MODEL,
        help="an .onnx or .mlir file, or a network that the onnx package brings along:"
        f" {', '.join(bundled_networks())} (default: {DEFAULT_MODEL}); or one of"
        " byoc_mlir.testing.networks, with random weights, as resnet18",
    )


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments for the model and for the options of `compile`."""
    add_model_argument(parser)
    add_option_arguments(parser)
    add_backend_argument(parser)


def add_backend_argument(parser: argparse.ArgumentParser) -> None:
    """Adds the option for modules with backends, which `load_backends` reads."""
    parser.add_argument(
        "--backend",
        action="append",
        default=[],
        metavar="FILE.py|package.module",
        help="load a module that registers backends or passes; may be given several times",
    )


def compile_model(
    args: argparse.Namespace,
    cache: Folder = None,
    *,
    profile: bool = False,
    dump_ir: Path | None = None,
    interpreter: bool = False,
    load: bool = True,
) -> Executable:
    """Compiles the model that the arguments name; the other parameters are `compile`'s."""
    load_backends(args)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.simplefilter("ignore", DeprecationWarning)  # for who wrote a pass, as in Python
        warnings.showwarning = _print_warning
        return byoc_mlir.compile(
            find_model(args.model),
            **options_of(args),
            cache=cache,
            profile=profile,
            dump_ir=dump_ir,
            interpreter=interpreter,
            load=load,
        )


def request_of(args: argparse.Namespace) -> Request:
    """Returns the checked request of the arguments, for commands that do more than compile."""
    load_backends(args)
    return Request(find_model(args.model), **options_of(args)).checked()


def load_backends(args: argparse.Namespace) -> None:
    """Loads the modules with backends that the arguments name."""
    for spec in args.backend:
        load_backend_module(spec)


def open_model(
    args: argparse.Namespace, *, profile: bool = False, interpreter: bool = False
) -> Executable:
    """Compiles a model as `compile_model` does, or loads a `.so` file.

    Raises:
        InvalidInputError: targets, sizes or a precision are given for a `.so` file.
    """
    if not args.model.endswith(".so"):
        return compile_model(args, profile=profile, interpreter=interpreter)
    if args.targets is not None or args.precision != "f32" or args.sizes:
        raise InvalidInputError(
            f"{args.model} is compiled already; --targets, --size and --precision change nothing"
        )
    return byoc_mlir.load(args.model, threads=args.threads)


def seconds(text: str) -> float:
    """Parses a time above 0 in seconds, for `argparse`."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of seconds above 0")
    return found


def shape_of_input(text: str) -> tuple[str, tuple[int, ...]]:
    """Parses the shape of an input, such as `x=1,3,224,224`, for `argparse`."""
    name, _, sizes = text.rpartition("=")
    try:
        shape = tuple(int(size) for size in sizes.split(",") if size)
    except ValueError:
        shape = (-1,)
    if not name or min(shape, default=0) < 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form NAME=SIZE,SIZE,…")
    return name, shape


def add_shape_argument(parser: argparse.ArgumentParser) -> None:
    """Adds the option for shapes of inputs, which `shapes_of` reads."""
    parser.add_argument(
        "--shape", action="append", default=[], type=shape_of_input, metavar="NAME=1,3,…"
    )


def add_inputs_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options for inputs, which `inputs_of` reads."""
    parser.add_argument("--inputs", metavar="FILE.npz", help="inputs by name (default: random)")
    add_shape_argument(parser)
    parser.add_argument("--seed", type=at_least(0), default=0, help="of random inputs")


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    """Adds the option to print a JSON document."""
    parser.add_argument("--json", action="store_true", help="print a JSON document")


def add_annotate_argument(parser: argparse.ArgumentParser) -> None:
    """Adds the option for the file with metadata that `annotate` writes."""
    parser.add_argument(
        "--annotate",
        metavar="FILE.onnx",
        type=Path,
        help="write the model, too, its nodes with metadata on where they run, for Netron",
    )


def annotate(args: argparse.Namespace, report: Report, profile: Profile | None = None) -> None:
    """Writes the annotated model, if the arguments name a file for it."""
    if args.annotate is None:
        return
    from byoc_mlir.compiler.debugging.annotate import write_annotated  # few calls need it

    write_annotated(
        args.model if args.model.endswith(".so") else find_model(args.model),
        report,
        args.annotate,
        profile,
    )


def print_json(document: object) -> None:
    """Prints a JSON document."""
    print(json.dumps(document, indent=2))


def add_row(table: Table, *cells: str) -> None:
    """Adds a row of texts without markup, since models choose the names in them."""
    table.add_row(*(escape(printable(cell)) for cell in cells))


def shapes_of(args: argparse.Namespace) -> dict[str, tuple[int, ...]]:
    """Returns the shapes given on the command line, by input."""
    return dict(args.shape)


def _print_warning(message: Warning | str, *details: object, **options: object) -> None:
    """Prints a warning without the line of code that Python's own form names."""
    print(f"warning: {on_command_line(printable_lines(str(message)))}", file=sys.stderr)


def bundled_networks() -> Sequence[str]:
    """Returns the names of the networks inside the onnx package."""
    return sorted(path.stem.removeprefix("light_") for path in _LIGHT.glob("light_*.onnx"))


def find_model(name: str) -> Path:
    """Returns the file of a model, given by path or by a bundled network's name.

    Raises:
        InvalidModelError: there is neither.
    """
    if name in bundled_networks():
        return _LIGHT / f"light_{name}.onnx"
    path = Path(name)
    if path.is_file():
        return path
    from byoc_mlir.testing.networks import NETWORKS  # few calls need it

    if name in NETWORKS:
        return _built_network(name)
    names = sorted({*bundled_networks(), *NETWORKS})
    raise InvalidModelError(
        f"there is no file '{name}', and no network of that name; there are"
        f" {', '.join(names)}{meant(name, names)}"
    )


@cache
def _built_network(name: str) -> Path:
    """Writes a network of the package, with random weights, to a folder of this process."""
    from byoc_mlir.testing.networks import NETWORKS  # few calls need it

    path = Path(_scratch_folder().name, f"{name}.onnx")
    onnx.save(NETWORKS[name](), path)
    return path


@cache
def _scratch_folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="byoc-")


def inputs_of(args: argparse.Namespace, inputs: Sequence[TensorInfo]) -> dict[str, Any]:
    """Returns the inputs given on the command line, or random ones."""
    if args.inputs:
        return read_inputs(args.inputs)
    return random_inputs(inputs, shapes_of(args), args.seed)


def random_inputs(
    inputs: Sequence[TensorInfo], shapes: dict[str, tuple[int, ...]], seed: int = 0
) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    """Returns random inputs for a model: floats from a normal distribution, integers 0 and 1,
    booleans.

    Raises:
        InvalidInputError: a dimension is symbolic and `shapes` does not bind it, or `shapes` names
            an unknown input.
    """
    for name in shapes.keys() - {info.name for info in inputs}:
        listed = ", ".join(map(str, inputs))
        raise InvalidInputError(f"the model has no input '{name}'; its inputs are {listed}")
    generator = np.random.default_rng(seed)
    arrays: dict[str, np.ndarray[Any, np.dtype[Any]]] = {}
    for info in inputs:
        shape = shapes.get(info.name, info.shape)
        sizes = [size for size in shape if isinstance(size, int)]
        if len(sizes) != len(shape):
            raise InvalidInputError(f"give the shape of {info} with --shape {info.name}=1,2,3")
        if info.dtype.kind in "iub":
            arrays[info.name] = generator.integers(0, 2, sizes).astype(info.dtype)
        else:
            arrays[info.name] = generator.standard_normal(sizes).astype(info.dtype)
    return arrays
