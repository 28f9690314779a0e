"""Compilations whose IR is printed and read again after each pass.

The compilation goes on with the IR that was read, so a dump that loses anything changes the
program. `python tests/helpers/rereading.py [NETWORK…]` compares the outputs of networks with those
of an ordinary compilation; by default of all bundled ones.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from helpers.verified import verify_module
from onnx import ModelProto
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, Region
from xdsl.passes import ModulePass
from xdsl.printer import Printer

import byoc_mlir
from byoc_mlir import ir_dump
from byoc_mlir.backends import get_backend
from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.llvm_ext import to_upstream
from byoc_mlir.dialects.relay import WeightAttr
from byoc_mlir.frontend.files.mlir_file import check_order, parse_module
from byoc_mlir.ir_dump import IrDump, located_text
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import random_inputs


class RereadingDump(IrDump):
    """Dump that replaces the IR by what `byoc-opt` reads of it, after each pass that changed it."""

    _read = ""
    """Text that was read last."""

    def apply(self, pass_: ModulePass, context: Context, module: ModuleOp) -> None:
        super().apply(pass_, context, module)
        text = located_text(module)
        if text != self._read:
            reread(module, text, f"the IR after {pass_.name}")
            self._read = text


@contextmanager
def rereading() -> Generator[None]:
    """Replaces the dumps of compilations in the context by ones that read their IR again."""
    original = ir_dump.IrDump
    ir_dump.IrDump = RereadingDump
    try:
        yield
    finally:
        ir_dump.IrDump = original


def reread(module: ModuleOp, text: str, name: str) -> None:
    """Replaces the content of a module by the IR that its text stands for, with its weights."""
    weights = {attribute.data.digest: attribute for _, _, attribute in _weights(module)}
    read = parse_module(text.encode(), name, _context())
    check_order(read)
    verify_module(read)
    for named, key, attribute in _weights(read):
        array = weights[attribute.data.digest].data.array
        named[key] = WeightAttr(replace(attribute.data, array=array))
    again = located_text(read)
    if again != text:
        raise AssertionError(f"{name} is printed otherwise:\n{_first_difference(text, again)}")
    _replace(module, read)


def _replace(module: ModuleOp, read: ModuleOp) -> None:
    """Moves what was read into a module; functions that callers know remain the same objects."""
    known = {_symbol(op): op for op in module.body.block.ops if _symbol(op) is not None}
    old = module.body.detach_block(module.body.block)
    module.body.add_block(read.body.detach_block(read.body.block))
    for new in list(module.body.block.ops):
        op = known.get(_symbol(new))
        if op is None or op.name != new.name:
            continue
        op.detach()
        op.properties, op.attributes, op.location = new.properties, new.attributes, new.location
        for region, content in zip(op.regions, new.regions, strict=True):
            for block in list(region.blocks):
                region.detach_block(block)
            for block in list(content.blocks):
                region.add_block(content.detach_block(block))
        module.body.block.insert_op_before(op, new)
        new.detach()
    assert old.parent is None


def _symbol(op: Operation) -> Attribute | None:
    return op.properties.get("sym_name")


def _weights(module: ModuleOp) -> Iterator[tuple[dict[str, Attribute], str, WeightAttr]]:
    """Yields the weights of a module, with the properties or attributes that hold them."""
    for op in module.walk():
        for held in (op.properties, op.attributes):
            for key, value in held.items():
                if isinstance(value, WeightAttr):
                    yield held, key, value


def _context() -> Context:
    context = make_context()
    for dialect in get_backend("dnnl").dialects():
        context.load_dialect(dialect)
    return context


def _first_difference(one: str, two: str) -> str:
    pairs = zip(one.splitlines(), two.splitlines(), strict=False)
    return next((f"- {a}\n+ {b}" for a, b in pairs if a != b), "one of them is longer")


def assert_same_numbers(model: ModelProto, folder: Path, **options: Any) -> None:
    """Compares the outputs of a model with those of a compilation that reads its dumps again."""
    inputs = random_inputs(model)
    with byoc_mlir.compile(model, cache=False, **options) as executable:
        wanted = {name: np.array(value) for name, value in executable.run(inputs).items()}
    with (
        rereading(),
        byoc_mlir.compile(model, cache=False, dump_ir=folder, **options) as executable,
    ):
        found = executable.run(inputs)
        for name, value in wanted.items():
            np.testing.assert_array_equal(found[name], value)


_TOOLS = [
    shutil.which(name) or shutil.which(f"{name}-19") for name in ("mlir-opt", "mlir-translate")
]
UPSTREAM = None if None in _TOOLS else [name for name in _TOOLS if name is not None]
"""Upstream's tools, `mlir-opt` and `mlir-translate`, if both are installed."""


def upstream_refusals(folder: Path) -> list[str]:
    """Returns what upstream's tools say about the files of a dump that they refuse.

    `mlir-opt` has to accept all of them, with dialects that it does not know, and `mlir-translate`
    the last one.
    """
    assert UPSTREAM is not None
    refusals = list[str]()
    files = sorted(folder.rglob("*.mlir"))
    for file in files:
        done = [_run([UPSTREAM[0], "--allow-unregistered-dialect"], _generic(file))]
        if file == files[-1]:
            done.append(_run([UPSTREAM[1], "--mlir-to-llvmir"], done[0].stdout))
        errors = [line for one in done for line in one.stderr.splitlines() if "error" in line]
        if any(one.returncode for one in done):
            refusals.append(f"{file.name}: {next(iter(errors), 'no message')}")
    return refusals


def _generic(file: Path) -> str:
    """Returns a dump as `byoc-opt --print-op-generic` prints it, with one difference.

    Ops that upstream does not know have a second region there: with one, they could be tables of
    symbols, in which upstream does not find the functions of the module.
    """
    module = parse_module(file.read_bytes(), file.name, _context())
    to_upstream(module)
    for op in module.walk():
        if op.dialect_name() in _OWN_DIALECTS and len(op.regions) == 1:
            op.add_region(Region())
    text = io.StringIO()
    Printer(text, print_generic_format=True).print_op(module)
    return text.getvalue()


_OWN_DIALECTS = ("relay", "host", "byoc", "dnnl")


def _run(command: Sequence[str], text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=text, capture_output=True, text=True)


def main() -> int:
    """Checks networks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--targets", nargs="*", help="default: as `compile`")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a folder for the dumps")
    args = parser.parse_args()
    failed = False
    for name in args.networks:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            kept = (args.keep or Path(folder)) / name
            try:
                assert_same_numbers(
                    NETWORKS[name](), kept, targets=args.targets, threads=args.threads, prune="off"
                )
                refusals = upstream_refusals(kept) if UPSTREAM else []
                found = f"FAIL upstream: {'; '.join(refusals)}" if refusals else "OK"
                failed |= bool(refusals)
            except Exception as error:
                failed, found = True, f"FAIL {type(error).__name__}: {error}"
            sys.stdout.write(f"{name}: {found} ({time.perf_counter() - start:.0f} s)\n")
            sys.stdout.flush()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
