"""What the subcommands share: naming a model, choosing targets, inventing inputs."""

from __future__ import annotations

import argparse
import json
import math
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args
from zipfile import BadZipFile

import numpy as np
import onnx
from rich.markup import escape
from rich.table import Table

import byoc_mlir
from byoc_mlir.backends import load_backend_module, split_targets
from byoc_mlir.compiler.cache.folder import Folder
from byoc_mlir.compiler.options import Fallback, Prune
from byoc_mlir.compiler.request import Request
from byoc_mlir.errors import InvalidInputError, InvalidModelError
from byoc_mlir.files import open_file
from byoc_mlir.names import meant, printable, printable_lines
from byoc_mlir.rates import read_rates
from byoc_mlir.runtime import Executable
from byoc_mlir.runtime.profile import Profile
from byoc_mlir.runtime.report import Report
from byoc_mlir.tensors import TensorInfo
from byoc_mlir.tools.limits import add_limit_argument, limits_of
from byoc_mlir.tools.words import on_command_line
from byoc_mlir.transforms.to_mixed_precision import Precision

DEFAULT_MODEL = "resnet50"

_LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"


def add_model_argument(parser: argparse.ArgumentParser) -> None:
    """The model."""
    parser.add_argument(
        "model",
        nargs="?",
        default=DEFAULT_MODEL,
        help="an .onnx or .mlir file, or a network that the onnx package brings along:"
        f" {', '.join(bundled_networks())} (default: {DEFAULT_MODEL}); or one of"
        " byoc_mlir.testing.networks, with random weights, as resnet18",
    )


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """The model, and how to compile it."""
    add_model_argument(parser)
    parser.add_argument(
        "--targets",
        help="backends in order of preference, separated by commas, with options where wanted,"
        " 'dnnl{winograd=off},mine'; '' for the host alone",
    )
    parser.add_argument(
        "--threads", type=at_least(1), help="default: the cores this process may use"
    )
    parser.add_argument(
        "--fallback",
        choices=get_args(Fallback),
        default="warn",
        help="what to do about nodes that stay on the host",
    )
    parser.add_argument(
        "--prune",
        choices=get_args(Prune),
        help="send regions back to the host that do little, or that run faster there; auto:"
        " measured in small models, as the backends say in others (default: off with --targets,"
        " else auto)",
    )
    parser.add_argument(
        "--precision",
        choices=get_args(Precision),
        default="f32",
        help="bf16: products read numbers rounded to 16 bits, where that is faster here; bf16x3:"
        " products are three of bf16 each, with almost the digits of f32, where that is faster",
    )
    parser.add_argument(
        "--weight-memory",
        type=float,
        default=2.0,
        metavar="TIMES",
        help="what packed weights may take, in times of the model's; faster convolutions of larger"
        " weights are not taken then (default: 2, inf: no bound)",
    )
    parser.add_argument(
        "--rates",
        metavar="FILE",
        help="what was measured before, from `byoc compile --write-rates FILE`: the same file gives"
        " the same code",
    )
    parser.add_argument(
        "--trusted",
        action="store_true",
        help="accept ops of all dialects in an .mlir file, which may run any native code",
    )
    _add_repeated_arguments(parser)
    add_limit_argument(parser)


def _add_repeated_arguments(parser: argparse.ArgumentParser) -> None:
    def add(flag: str, metavar: str, meaning: str, **options: Any) -> None:
        parser.add_argument(
            flag,
            action="append",
            default=[],
            metavar=metavar,
            help=f"{meaning}; may be given several times",
            **options,
        )

    add("--exact", "NODE", "compute the products of a node in f32, whatever the precision")
    add(
        "--samples",
        "FILE.npz",
        "inputs by name, which are run to find the nodes that need --exact for outputs close to"
        " those in f32",
    )
    add("--backend", "FILE.py|package.module", "load a module that registers backends or passes")
    add(
        "--size",
        "NAME=8",
        "the number that a symbolic dimension is, in inputs and outputs",
        dest="sizes",
        type=size_of_dimension,
    )
    add(
        "--pass",
        "NAME",
        "run a pass of your own before the model is partitioned, with options where wanted,"
        " 'my-pass{factor=2}'",
        dest="passes",
    )
    add("--disable", "NAME", "leave out a pass, a pattern or a backend")


def compile_model(
    args: argparse.Namespace,
    cache: Folder = None,
    *,
    profile: bool = False,
    dump_ir: Path | None = None,
    eager: bool = False,
) -> Executable:
    """Compiles the model that the arguments name; the others are those of `compile`."""
    options = _options(args)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.simplefilter("ignore", DeprecationWarning)  # for who wrote a pass, as in Python
        warnings.showwarning = _print_warning
        return byoc_mlir.compile(
            find_model(args.model),
            **options,
            cache=cache,
            profile=profile,
            dump_ir=dump_ir,
            eager=eager,
            rates=args.rates,
            samples=[read_inputs(path) for path in args.samples] or None,
        )


def request_of(args: argparse.Namespace) -> Request:
    """What the arguments ask of the compiler, checked, for what does more than to compile."""
    known = None if args.rates is None else read_rates(args.rates)
    request = Request(find_model(args.model), **_options(args), rates=known)
    request.check()
    return request


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of `compile` that are said as they are."""
    for spec in args.backend:
        load_backend_module(spec)
    return {
        "targets": None if args.targets is None else split_targets(args.targets),
        "threads": args.threads,
        "precision": args.precision,
        "fallback": args.fallback,
        "prune": args.prune,
        "limits": limits_of(args),
        "disable": args.disable,
        "passes": args.passes,
        "sizes": dict(args.sizes),
        "exact": args.exact,
        "weight_memory": args.weight_memory,
        "trusted": args.trusted,
    }


def open_model(
    args: argparse.Namespace, *, profile: bool = False, eager: bool = False
) -> Executable:
    """As `compile_model`; a `.so` file, which is compiled already, is loaded.

    Raises:
        InvalidInputError: targets, sizes or a precision are given for such a file.
    """
    if not args.model.endswith(".so"):
        return compile_model(args, profile=profile, eager=eager)
    if args.targets is not None or args.precision != "f32" or args.sizes:
        raise InvalidInputError(
            f"{args.model} is compiled already; --targets, --size and --precision change nothing"
        )
    return byoc_mlir.load(args.model, threads=args.threads)


def at_least(least: int) -> Callable[[str], int]:
    """What reads a whole number for `argparse`."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"'{text}' is no whole number of {least} and more")
        return int(text)

    return read


def seconds(text: str) -> float:
    """A time above 0, for `argparse`."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of seconds above 0")
    return found


def size_of_dimension(text: str) -> tuple[str, int]:
    """`batch=8`, for `argparse`."""
    name, _, size = text.rpartition("=")
    if not name or not size.isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form NAME=SIZE")
    return name, int(size)


def shape_of_input(text: str) -> tuple[str, tuple[int, ...]]:
    """`x=1,3,224,224`, for `argparse`."""
    name, _, sizes = text.rpartition("=")
    try:
        shape = tuple(int(size) for size in sizes.split(",") if size)
    except ValueError:
        shape = (-1,)
    if not name or min(shape, default=0) < 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form NAME=SIZE,SIZE,…")
    return name, shape


def add_shape_argument(parser: argparse.ArgumentParser) -> None:
    """The shapes of inputs, which `shapes_of` reads."""
    parser.add_argument(
        "--shape", action="append", default=[], type=shape_of_input, metavar="NAME=1,3,…"
    )


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    """Whether a JSON document is printed."""
    parser.add_argument("--json", action="store_true", help="print a JSON document")


def add_annotate_argument(parser: argparse.ArgumentParser) -> None:
    """A file for the model with metadata, which `annotate` writes."""
    parser.add_argument(
        "--annotate",
        metavar="FILE.onnx",
        type=Path,
        help="write the model, too, its nodes with metadata on where they run, for Netron",
    )


def annotate(args: argparse.Namespace, report: Report, profile: Profile | None = None) -> None:
    """Writes the annotated model, if there is to be one."""
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
    """Adds a row of texts without markup: models choose the names in them."""
    table.add_row(*(escape(printable(cell)) for cell in cells))


def shapes_of(args: argparse.Namespace) -> dict[str, tuple[int, ...]]:
    """The shapes that the arguments say, by input."""
    return dict(args.shape)


def _print_warning(message: Warning | str, *details: object, **options: object) -> None:
    """In place of Python's form, which names a line of code."""
    print(f"warning: {on_command_line(printable_lines(str(message)))}", file=sys.stderr)


def bundled_networks() -> Sequence[str]:
    """The names of the networks inside the onnx package."""
    return sorted(path.stem.removeprefix("light_") for path in _LIGHT.glob("light_*.onnx"))


def find_model(name: str) -> Path:
    """The file of a model given by path or by a bundled network's name.

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


def read_inputs(path: str) -> dict[str, Any]:
    """The arrays of an `.npz` file, by name.

    Raises:
        InvalidInputError: it is something else.
    """
    try:
        with open_file(path, InvalidInputError) as file:
            return dict(np.load(file, allow_pickle=False))
    except (OSError, ValueError, TypeError, BadZipFile) as error:
        raise InvalidInputError(f"{path} is not an .npz file of arrays: {error}") from error


def random_inputs(
    inputs: Sequence[TensorInfo], shapes: dict[str, tuple[int, ...]], seed: int = 0
) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    """Inputs for a model: floats from a normal distribution, small integers, random booleans.

    Raises:
        InvalidInputError: a dimension is symbolic and `shapes` does not bind it, or `shapes` names
            an input that there is not.
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
