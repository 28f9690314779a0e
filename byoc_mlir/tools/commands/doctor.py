"""`byoc doctor`: show what this machine supports, and what is missing."""

from __future__ import annotations

import argparse
import importlib
import platform
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import distributions, version
from pathlib import Path, PurePath

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from byoc_mlir import __version__
from byoc_mlir.backends import backend_names, get_backend
from byoc_mlir.backends.options import describe_options
from byoc_mlir.calibration import using
from byoc_mlir.compiler.cache.folder import Cache
from byoc_mlir.compiler.calibration import calibration_of, kept_calibration
from byoc_mlir.compiler.options import why_unusable
from byoc_mlir.devices import device_names, get_device
from byoc_mlir.errors import BackendError, InvalidInputError
from byoc_mlir.kernels.costs import MEASURED, calibration
from byoc_mlir.kernels.costs import Table as Costs
from byoc_mlir.lowering.llvm_ir.codegen import CodegenTarget
from byoc_mlir.runtime.system.cpu import MAX_ISA, Cpu, missing_by_level, model_name
from byoc_mlir.runtime.system.libraries import find_openmp
from byoc_mlir.runtime.system.threads import available_threads
from byoc_mlir.tools.commands.cache import describe
from byoc_mlir.tools.commands.common import add_json_argument, print_json

_MAPS = Path("/proc/self/maps")

_NAME = re.compile(r"lib(gomp(?!-plugin)|iomp5|omp)([-.].*)?\.so(\..*)?")
"""Names of GCC's, Intel's and LLVM's OpenMP runtimes; a package's own copy has a hash in its name.
"""


def is_openmp_runtime(path: PurePath) -> bool:
    """True if a file is an OpenMP runtime, by its name."""
    return _NAME.fullmatch(path.name) is not None


def loaded_runtimes(maps: str | None = None) -> Sequence[Path]:
    """Returns the OpenMP runtimes that this process has loaded, each once.

    Args:
        maps: the text of `/proc/self/maps`, which is read if it is not given.
    """
    if maps is None:
        maps = _MAPS.read_text() if _MAPS.is_file() else ""
    fields = (line.split(maxsplit=5) for line in maps.splitlines())
    paths = (Path(parts[5]) for parts in fields if len(parts) == 6)
    return list(dict.fromkeys(path for path in paths if is_openmp_runtime(path)))


def packaged_runtimes() -> Sequence[tuple[str, Path]]:
    """Returns the OpenMP runtimes in installed packages, with the packages' names."""
    return [
        (distribution.name, Path(str(file.locate())).resolve())
        for distribution in distributions()
        for file in distribution.files or ()
        if is_openmp_runtime(file)
    ]


def describe_runtimes(
    loaded: Sequence[Path], packaged: Iterable[tuple[str, Path]]
) -> list[tuple[str, str]]:
    """Returns rows of a table on OpenMP runtimes: their paths, and a warning if there are
    several."""
    rows = [("OpenMP, loaded", str(path)) for path in loaded]
    others = [(name, path) for name, path in packaged if path not in loaded]
    rows += [("OpenMP, installed", f"{path}: comes with {name}") for name, path in others]
    if len(loaded) > 1:
        rows.append(("warning", _several(f"{len(loaded)} OpenMP runtimes are in this process")))
    elif others:
        names = ", ".join(sorted({name for name, _ in others}))
        rows.append(("warning", _several(f"with {names}, a process has two OpenMP runtimes")))
    return rows


def _several(what: str) -> str:
    return (
        f"{what}; their threads compete for the cores: let one of them have one thread"
        " (docs/processes.md)"
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.add_argument(
        "--import",
        dest="modules",
        action="append",
        default=[],
        metavar="MODULE",
        help="import this first, to see which OpenMP runtime it brings; may be repeated",
    )
    parser.add_argument(
        "--measure", action="store_true", help="measure calibration that nobody has asked for yet"
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    for module in args.modules:
        _import(module)
    rows = list(findings(measure=args.measure))
    if args.json:
        print_json([{"what": what, "found": found} for what, found in rows])
        return 0
    table = Table(show_header=False)
    for what, found in rows:
        table.add_row(what, escape(found))
    Console().print(table)
    return 0


def _import(module: str) -> None:
    try:
        importlib.import_module(module)
    except Exception as error:  # a module may raise anything where it is imported
        detail = f"{type(error).__name__}: {error}"
        raise InvalidInputError(f"module '{module}' cannot be imported: {detail}") from error


def findings(*, measure: bool) -> Iterator[tuple[str, str]]:
    """Yields rows of the table, each a name and a finding; a row that continues the one before has
    no name.
    """
    yield "byoc_mlir", __version__
    for package in ("xdsl", "llvmlite", "onnx", "numpy"):
        yield package, version(package)
    yield "Python", platform.python_version()
    yield "processor", f"{model_name()} (LLVM takes it for {CodegenTarget.host().cpu})"
    yield "instructions", _instructions()
    yield "threads", str(available_threads())
    yield "OpenMP", str(find_openmp() or "none: host loops run on one thread; install libgomp")
    yield from describe_runtimes(loaded_runtimes(), packaged_runtimes())
    for name in backend_names():
        yield from _backend(name)
    for name in device_names():
        yield f"device {name}", _device(name)
    cache = Cache.open(kept="calibration")
    yield "cache", describe(cache) if cache else "off, see `byoc cache`"
    for kind in MEASURED:
        yield from _calibration(kind, measure)


def _backend(name: str) -> Iterator[tuple[str, str]]:
    """Yields a backend's state and options, or why it cannot be loaded."""
    try:
        backend = get_backend(name)
    except BackendError as error:
        yield f"backend {name}", str(error)
        return
    yield f"backend {name}", why_unusable(backend) or backend.describe()
    for option in describe_options(backend.options):
        yield "", option


def _device(name: str) -> str:
    """Returns a device's state, or why it cannot be loaded."""
    try:
        device = get_device(name)
    except BackendError as error:
        return str(error)
    return device.unavailable() or device.describe()


def _calibration(kind: type[Costs], measure: bool) -> Iterator[tuple[str, str]]:
    """Yields the cost-model parameters of a kind: measured on this machine, or the defaults."""
    kept = kept_calibration(kind)
    if kept is None and measure:
        with using(calibration_of(None)):
            kept = calibration(kind)
    origin = "assumed until a model asks for them" if kept is None else "measured here"
    yield f"calibration of {kind.name}", f"{origin}; see docs/dev-notes/costs.md"
    for name, value, unit, source in (kept or kind()).described():
        yield "", f"{name} {value:.3g} {unit}: {source}"


def _instructions() -> str:
    """Returns the levels of `BYOC_MAX_ISA` that the processor supports, and which features the next
    lacks.
    """
    if Cpu.machine().architecture != "x86_64":
        return " ".join(Cpu.host().features)
    missing = missing_by_level(Cpu.machine().features)
    reached = " ".join(level for level, lacking in missing.items() if not lacking)
    lines = [
        reached or "none",
        *(f"{level} lacks {' '.join(lacking)}" for level, lacking in missing.items() if lacking),
    ]
    if Cpu.limit() is not None:
        lines.append(f"{MAX_ISA} lowers them to {Cpu.limit()}")
    return "\n".join(lines)
