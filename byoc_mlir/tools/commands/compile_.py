"""`byoc compile`: compile a model, print the time of each stage, write it to a file."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from rich.console import Console
from rich.table import Table

from byoc_mlir.calibration import write_calibration
from byoc_mlir.compiler.calibration import calibration_of
from byoc_mlir.errors import ExportError, InvalidInputError
from byoc_mlir.runtime import Executable, Program
from byoc_mlir.runtime.arguments import Shape
from byoc_mlir.runtime.program import ObjectCode
from byoc_mlir.tools.commands import common
from byoc_mlir.tools.options import read_inputs

_Shapes: TypeAlias = dict[str, Shape]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    common.add_model_arguments(parser)
    common.add_shape_argument(parser)
    parser.add_argument(
        "--time-passes",
        action="store_true",
        help="times of passes, not stages; the model is compiled, even if the cache has it",
    )
    parser.add_argument(
        "--dump-dir",
        metavar="FOLDER",
        type=Path,
        help="write the IR after each pass there, LLVM's IR and assembly, and generated code",
    )
    parser.add_argument(
        "--write-calibration",
        metavar="FILE",
        help="write the machine's calibration, for --calibration; compiles the model even if"
        " the cache has it",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE.so|FILE.o",
        type=Path,
        help="write a shared object for `byoc run`, byoc_mlir.load and C programs, or an object"
        " file for C programs, and a C header next to it",
    )
    parser.add_argument(
        "--triple",
        help="compile for another machine, 'aarch64-linux-gnu', by the host compiler alone",
    )
    parser.add_argument(
        "--inputs",
        metavar="FILE.npz",
        help="inputs by name: the model is run on them before it is written, which compiles the"
        " segments of one that is split",
    )
    common.add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    shapes = common.shapes_of(args)
    if args.triple is None:
        program, files = _compile_here(args, shapes)
    else:
        program, files = _cross_compile(args, shapes)
    times = program.report.pass_seconds if args.time_passes else program.report.compile_seconds
    if args.json:
        common.print_json(
            {
                "seconds": dict(times),
                **_sizes(program),
                "arena_bytes": program.arena_bytes,
                "regions": list(program.regions),
                "files": list(map(str, files)),
            }
        )
        return 0
    if files:
        print(f"wrote {' and '.join(map(str, files))}")
    table = Table()
    table.add_column("pass" if args.time_passes else "stage")
    table.add_column("seconds", justify="right")
    for name, seconds in times:
        common.add_row(table, name, f"{seconds:.3f}")
    common.add_row(table, "total", f"{sum(seconds for _, seconds in times):.3f}")
    console = Console()
    console.print(table)
    console.print(
        f"{_code_size(program)}, arena {program.arena_bytes / 1e6:.1f} MB,"
        f" regions {len(program.regions)}"
    )
    return 0


def _compile_here(args: argparse.Namespace, shapes: _Shapes) -> tuple[Program, list[Path]]:
    """Compiles for this machine; returns the program and the files that were written."""
    cache = False if args.time_passes or args.write_calibration else None
    with common.compile_model(args, cache, dump_ir=args.dump_dir, load=False) as executable:
        if args.inputs:
            executable.run(read_inputs(args.inputs))
        elif shapes:
            executable.warmup(shapes)
        files = _export(executable, args.output, shapes) if args.output else []
        program = executable.program
        if args.write_calibration:
            write_calibration(calibration_of(None), args.write_calibration)
    return program, files


def _cross_compile(args: argparse.Namespace, shapes: _Shapes) -> tuple[Program, list[Path]]:
    """Compiles for another machine; returns the program and the files that were written."""
    from byoc_mlir.compiler.cross import program_for, write_program  # the rest of the compiler

    if args.inputs:
        raise InvalidInputError(
            "--inputs runs the model, and a program for another machine does not run here; leave it"
            " out, or --triple"
        )
    if args.write_calibration:
        raise InvalidInputError(
            "--write-calibration writes the calibration of this machine, and --triple names another"
            " machine; pass one of them"
        )
    request = replace(common.request_of(args), dump_ir=args.dump_dir)
    program = program_for(request, args.triple, shapes or None)
    files: list[Path] = []
    if args.output:
        files = [args.output, write_program(program, args.output, args.triple)]
    return program, files


def _code_size(program: Program) -> str:
    sizes = _sizes(program)
    if not sizes:
        return "code of a file"
    code, weights = sizes["code_bytes"] / 1e3, sizes["weight_bytes"] / 1e6
    return f"object code {code:.0f} kB, weights {weights:.1f} MB"


def _sizes(program: Program) -> dict[str, int]:
    """Returns the bytes of code and weights; an empty mapping for a program that was loaded from a
    file.
    """
    code = program.code
    if not isinstance(code, ObjectCode):
        return {}
    weights = sum(array.nbytes for array in code.weights.values())
    return {"code_bytes": sum(map(len, code.files)), "weight_bytes": weights}


def _export(executable: Executable, path: Path, shapes: _Shapes) -> list[Path]:
    """Writes a program to a file; returns the paths of the file and of the header."""
    writers = {".so": executable.export_library, ".o": executable.export_object}
    if path.suffix not in writers:
        raise ExportError(f"'{path}' must end in .so (a shared object) or .o (an object file)")
    return [path, writers[path.suffix](path, shapes=shapes or None)]
