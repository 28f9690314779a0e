"""`byoc-opt`: runs passes over `.mlir` or `.onnx` files and prints the IR."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.universe import Universe
from xdsl.utils.arg_spec import parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError
from xdsl.utils.target import Target
from xdsl.xdsl_opt_main import xDSLOptMain

from byoc_mlir.backends import backend_names, get_backend
from byoc_mlir.boundary import boundary
from byoc_mlir.calibration import using
from byoc_mlir.compiler.calibration import calibration_of
from byoc_mlir.compiler.user_passes import user_pass, user_pass_names
from byoc_mlir.dialects import core_dialects
from byoc_mlir.dialects.boundary import node_of
from byoc_mlir.dialects.llvm_ext import to_upstream
from byoc_mlir.dialects.parsing import IRParser
from byoc_mlir.errors import ByocError, CompilationError, InvalidModelError
from byoc_mlir.files import open_file
from byoc_mlir.frontend.files.mlir_file import (
    STORE_SUFFIX,
    attach_weights,
    check_module_size,
    check_order,
    check_text,
    refusing_text,
    save_weights,
)
from byoc_mlir.limits import limited
from byoc_mlir.names import meant, printable_document, printable_lines
from byoc_mlir.runtime.report import Report
from byoc_mlir.tools.commands import common
from byoc_mlir.tools.diagnostics import Diagnostic, differences, expected_in
from byoc_mlir.tools.options import add_option_argument, limits_of
from byoc_mlir.tools.passes import all_passes

if TYPE_CHECKING:
    from byoc_mlir.frontend.model import OnnxNode


class ByocOptMain(xDSLOptMain):
    """Driver of passes: xDSL's opt tool with our dialects and passes, ONNX input and users'
    backends.
    """

    _nodes: Sequence[OnnxNode] = ()
    """Nodes of the input model, with the result of each."""
    _lines: dict[Operation, int]
    """Lines of the parsed ops, if diagnostics are verified."""

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        super().register_all_arguments(arg_parser)
        common.add_backend_argument(arg_parser)
        arg_parser.add_argument(
            "--explain",
            action="store_true",
            help="print where each op (of an .onnx file: each node) went and why, not the IR",
        )
        common.add_shape_argument(arg_parser)
        add_option_argument(arg_parser, "limits")

    def register_all_dialects(self) -> None:
        for name, factory in core_dialects().items():
            self.ctx.register_dialect(name, factory)

    def register_all_passes(self) -> None:
        ours = all_passes()
        for name, factory in Universe.get_multiverse().all_passes.items():
            if name not in ours:
                self.register_pass(name, factory)
        for name, factory in ours.items():
            self.register_pass(name, factory)

    def register_all_targets(self) -> None:
        super().register_all_targets()
        self.available_targets["llvm-ir"] = _llvm_ir_target

    def register_all_frontends(self) -> None:
        super().register_all_frontends()

        def parse_mlir(stream: IO[bytes]) -> ModuleOp:
            data, name = stream.read(), self.get_input_name()
            if self.args.shape:
                raise InvalidModelError(
                    f"{name} is in MLIR, which says its shapes; leave --shape out"
                )
            check_text(data, name)
            with refusing_text(name):
                parser = IRParser(self.ctx, data.decode("utf-8"), name)
                parser.lines = self._lines if self.args.verify_diagnostics else None
                module = parser.parse_module(not self.args.no_implicit_module)
            check_order(module)
            check_module_size(module)
            if self.args.input_file is None:
                return module
            store = self._input_path().with_suffix(STORE_SUFFIX)
            if store.is_file():
                attach_weights(module, store)
            return module

        def parse_onnx(stream: IO[bytes]) -> ModuleOp:
            from byoc_mlir.frontend.importer import import_model  # slow, and few calls need it

            source = stream.read() if self.args.input_file is None else self._input_path()
            imported = import_model(source, common.shapes_of(self.args))
            self._nodes = imported.nodes
            return imported.module

        self.available_frontends["mlir"] = parse_mlir
        self.available_frontends["onnx"] = parse_onnx

    def setup_pipeline(self) -> None:
        common.load_backends(self.args)
        for backend in map(get_backend, backend_names()):
            for dialect in backend.dialects():
                self.ctx.load_dialect(dialect)
            for name, factory in backend.passes().items():
                self.register_pass(name, factory)
        for name in user_pass_names():
            self.register_pass(name, partial(user_pass, name))
        self._check_pass_names()
        super().setup_pipeline()

    def _check_pass_names(self) -> None:
        known = self.available_passes
        unknown = [spec.name for spec in parse_pipeline(self.args.passes) if spec.name not in known]
        if unknown:
            listed = ", ".join(f"'{name}'{meant(name, known)}" for name in unknown)
            raise ByocError(f"there is no pass {listed}; --help lists all passes")

    def run(self) -> None:
        if not self.args.verify_diagnostics:
            return super().run()
        chunks, extension = self.prepare_input()
        output = self.prepare_output()
        differing: list[str] = []
        for chunk, offset in chunks:
            data = chunk.read()
            self._lines = {}
            found: list[Diagnostic] = []
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always", UserWarning)
                try:
                    module = self.available_frontends[extension](BytesIO(data))
                    self.apply_passes(module)
                    output.write(self.output_resulting_program(module))
                except (ByocError, ParseError, DiagnosticException) as error:
                    found.append(Diagnostic.of(error, self._lines))
            found += [Diagnostic("warning", str(one.message), None) for one in warned]
            expected = expected_in(data.decode("utf-8", "replace"))
            differing += differences(expected, found, offset)
        if output is not sys.stdout:
            output.close()
        if differing:
            raise InvalidModelError("\n".join(differing))

    def apply_passes(self, prog: ModuleOp) -> None:
        with redirect_stdout(sys.stderr):  # times, and the IR between passes
            super().apply_passes(prog)

    def output_resulting_program(self, prog: ModuleOp) -> str:
        if self.args.explain:
            from byoc_mlir.compiler.partition.report import report_rows  # few calls need it

            return f"{Report(tuple(report_rows(prog, self._nodes)))}\n"
        if self.args.output_file is not None:
            save_weights(prog, Path(self.args.output_file).with_suffix(STORE_SUFFIX))
        if self.args.print_op_generic:
            to_upstream(prog)
        return super().output_resulting_program(prog)

    def get_input_stream(self) -> tuple[IO[bytes], str]:
        if self.args.input_file is not None:
            open_file(self.args.input_file, InvalidModelError).close()
        return super().get_input_stream()

    def _input_path(self) -> Path:
        return Path(self.args.input_file or "")


_PIPELINE_ERRORS = (ArgSpecParseError, ValueError)
"""Errors of xDSL for a malformed pipeline; `ArgSpecParseError` is no `Exception`."""


def _llvm_ir_target() -> type[Target]:
    from byoc_mlir.lowering.llvm_ir.target import LLVMIRTarget

    return LLVMIRTarget


def main(args: Sequence[str] | None = None) -> int:
    """Runs the `byoc-opt` command.

    Returns:
        0 on success, 1 on a user's error; argparse exits with 2 on bad usage.
    """
    try:
        with boundary("byoc-opt"):
            _run(_tool(args))
    except ByocError as error:
        return _fail(error)
    return 0


def _run(tool: ByocOptMain) -> None:
    """Runs the tool; messages of xDSL's passes and parser are passed on unchanged.

    Raises:
        CompilationError: a pass failed; where it is known, the message names the ONNX node.
        InvalidModelError: the text does not parse.
    """
    try:
        with limited(limits_of(tool.args)), using(calibration_of(None)):
            tool.run()
    except ParseError as error:
        raise InvalidModelError(str(error)) from error
    except DiagnosticException as error:
        node = node_of(error)
        raise CompilationError(f"node '{node}': {error}" if node else str(error)) from error


def _tool(args: Sequence[str] | None) -> ByocOptMain:
    """Returns the tool for these arguments.

    Raises:
        ByocError: the pipeline, a backend or the input's name is invalid.
    """
    try:
        tool = ByocOptMain("modular optimizer driver of byoc_mlir", args)
    except _PIPELINE_ERRORS as error:
        raise ByocError(str(error)) from error
    for name in ("input_file", "output_file"):
        if getattr(tool.args, name) == "-":
            setattr(tool.args, name, None)
    _check_input(tool)
    return tool


def _check_input(tool: ByocOptMain) -> None:
    """Finds a bundled network; refuses a file whose name has an unknown ending."""
    name = tool.args.input_file
    if name in common.bundled_networks():
        tool.args.input_file = str(common.find_model(name))
        return
    known = tool.available_frontends
    if name is None or tool.args.frontend or Path(name).suffix.removeprefix(".") in known:
        return
    endings = ", ".join(f".{ending}" for ending in sorted(known))
    guess = meant(name, common.bundled_networks())
    raise InvalidModelError(f"'{name}' does not end in one of {endings}; or give --frontend{guess}")


def _fail(error: BaseException) -> int:
    cause = error.__cause__ or error
    for note in getattr(cause, "__notes__", ()):  # the IR with the message at the op
        print(printable_document(note), file=sys.stderr)
    print(f"error: {printable_lines(str(error))}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
