"""Compilations whose IR is printed and read again after each pass.

    python tools/rereading.py --out dumps.tsv [NETWORK…]
    python tools/rereading.py --table dumps.tsv

The compilation goes on with the IR that was read, so a dump that loses anything changes the
program. Its outputs are compared with those of an ordinary compilation. Upstream's `mlir-opt` has
to accept all dumps, and `mlir-translate` the last one. By default, all bundled networks are
checked. A run leaves out the networks that the file has; the second command prints it as a table.
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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
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
    read.verify()
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


def dumps_in(folder: Path) -> list[Path]:
    """Returns the files of a dump, in order."""
    return sorted(folder.rglob("*.mlir"))


def upstream_refusals(folder: Path) -> list[str]:
    """Returns what upstream's tools say about the files of a dump that they refuse.

    `mlir-opt` has to accept all of them, with dialects that it does not know, and `mlir-translate`
    the last one.
    """
    assert UPSTREAM is not None
    refusals = list[str]()
    files = dumps_in(folder)
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


@dataclass(frozen=True)
class Checked:
    """Outcome of a network."""

    network: str
    dumps: int = 0
    megabytes: float = 0.0
    found: str = "the same numbers"
    upstream: str = "accepted"
    seconds: float = 0.0
    """Seconds of the processor."""


def checked(name: str, folder: Path, threads: int, targets: Sequence[str] | None) -> Checked:
    """Compiles a network with its dumps in a folder, and compares the outputs."""
    start = time.process_time()
    outcome = Checked(name)
    try:
        assert_same_numbers(NETWORKS[name](), folder, targets=targets, threads=threads, prune="off")
    except Exception as error:  # it is a row of the table
        text = " ".join(f"{type(error).__name__}: {error}".split())
        outcome = replace(outcome, found=text[:200])
    if UPSTREAM is None:
        outcome = replace(outcome, upstream="not installed")
    elif refusals := upstream_refusals(folder):
        outcome = replace(outcome, upstream="; ".join(refusals)[:200])
    files = dumps_in(folder)
    return replace(
        outcome,
        dumps=len(files),
        megabytes=sum(file.stat().st_size for file in files) / 1e6,
        seconds=time.process_time() - start,
    )


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yields the lines of the table."""
    yield "| network | dumps | MB | compiled from its dumps | upstream's tools | processor, s |"
    yield "| --- | ---: | ---: | --- | --- | ---: |"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _read(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text().splitlines()] if path.exists() else []


def main() -> int:
    """Checks networks, or prints the table; returns 1 if any network fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    parser.add_argument("--targets", nargs="*", help="default: as `compile`")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("dumps.tsv"))
    parser.add_argument("--table", type=Path, help="prints the table of this file")
    args = parser.parse_args()
    if args.table:
        sys.stdout.write("\n".join(table(_read(args.table))) + "\n")
        return 0
    failed = False
    known = {row[0] for row in _read(args.out)}
    for name in (name for name in args.networks if name not in known):
        with tempfile.TemporaryDirectory() as folder:
            one = checked(name, Path(folder), args.threads, args.targets)
        failed |= (one.found, one.upstream) != (Checked.found, Checked.upstream)
        with args.out.open("a") as file:
            numbers = (one.dumps, f"{one.megabytes:.1f}")
            texts = (one.found, one.upstream, f"{one.seconds:.0f}")
            file.write("\t".join(map(str, (one.network, *numbers, *texts))) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
