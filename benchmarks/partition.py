"""Times of the partitioner by pass, and their growth with the number of ops.

    python benchmarks/partition.py
    python benchmarks/partition.py --sizes 5000 50000

Chains of ops on vectors, of four kinds, and DenseNet-121: once for oneDNN, once with every op
annotated for one backend. Processor time, the least of several rounds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region
from xdsl.passes import ModulePass

from byoc_mlir.backends import (
    Backend,
    CodegenContext,
    GeneratedCode,
    Rule,
    register_backend,
)
from byoc_mlir.compiler.pipeline import CANONICALISATION
from byoc_mlir.dialects import core_dialects, make_context
from byoc_mlir.dialects.byoc import region_compiler
from byoc_mlir.dialects.relay.base import RelayOp
from byoc_mlir.dialects.relay.elementwise import AddOp, ExpOp, SigmoidOp, TanhOp
from byoc_mlir.dialects.relay.nn import ReluOp
from byoc_mlir.frontend.importer import import_model
from byoc_mlir.lowering.host_pipeline import all_of
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.transforms.annotate_target import AnnotateTarget
from byoc_mlir.transforms.blocks import is_constant
from byoc_mlir.transforms.merge_compiler_regions import MergeCompilerRegions
from byoc_mlir.transforms.merge_composite import MergeComposite
from byoc_mlir.transforms.partition_graph import PartitionGraph

CHAINS: Mapping[str, Sequence[type[Operation]]] = {
    "one region": (ReluOp, TanhOp),
    "host between": (ReluOp, TanhOp, ExpOp),
    "two backends": (ReluOp, SigmoidOp),
    "one input shared": (AddOp, ReluOp, ExpOp),
}


class Names(Backend):
    """Backend that accepts ops by name, and generates no code."""

    accepted: Sequence[str]

    def op_rules(self) -> Mapping[str, Rule]:
        return dict.fromkeys(self.accepted, lambda op: None)

    def codegen(self, region: FuncOp, context: CodegenContext) -> GeneratedCode:
        raise NotImplementedError


@register_backend
class First(Names):
    name = "first"
    accepted = ("nn.relu", "tanh", "add")


@register_backend
class Second(Names):
    name = "second"
    accepted = ("sigmoid",)


@register_backend
class All(Names):
    name = "all_ops"
    accepted = tuple(op.name.removeprefix("relay.") for op in core_dialects()["relay"]().operations)


def main() -> None:
    arguments = _parser().parse_args()
    print(f"{'':25}{'ops':>7}{'regions':>9}" + "".join(f"{name:>11}" for name in (*PASSES, "all")))
    for name, kinds in CHAINS.items():
        for size in arguments.sizes:
            _show(name, lambda size=size, kinds=kinds: chain(size, kinds), ("first", "second"))
    for target in ("dnnl", "all_ops"):
        _show(f"DenseNet-121, {target}", densenet, (target,))


def chain(size: int, kinds: Sequence[type[Operation]]) -> ModuleOp:
    """Returns a function of `size` ops, each on the result of the one before it."""
    vector = TensorType(f32, [1])
    block = Block(arg_types=[vector])
    (x,) = block.args
    value = x
    for number in range(size):
        kind = kinds[number % len(kinds)]
        op = kind(value, x) if kind is AddOp else kind(value)  # pyright: ignore
        block.add_op(op)
        value = op.results[0]
    block.add_op(ReturnOp(value))
    return ModuleOp([FuncOp("main", FunctionType.from_lists([vector], [vector]), Region(block))])


def densenet() -> ModuleOp:
    """Returns DenseNet-121 after canonicalisation, before partitioning."""
    module = import_model(NETWORKS["densenet121"]()).module
    for pass_ in all_of(CANONICALISATION):
        pass_.apply(make_context(), module)
    return module


PASSES: Mapping[str, Callable[[tuple[str, ...]], ModulePass]] = {
    "composites": MergeComposite,
    "annotate": AnnotateTarget,
    "merge": lambda _: MergeCompilerRegions(),
    "outline": lambda _: PartitionGraph(),
}


def _show(name: str, make: Callable[[], ModuleOp], targets: tuple[str, ...]) -> None:
    rounds: list[list[float]] = []
    ops = regions = 0
    for _ in range(3):
        module = make()
        ops = sum(isinstance(op, RelayOp) and not is_constant(op) for op in module.walk())
        rounds.append([_seconds(pass_(targets), module) for pass_ in PASSES.values()])
        regions = sum(isinstance(op, FuncOp) and bool(region_compiler(op)) for op in module.ops)
    best = min(rounds, key=sum)
    cells = "".join(f"{seconds:11.2f}" for seconds in (*best, sum(best)))
    print(f"{name:25}{ops:7}{regions:9}{cells}", flush=True)


def _seconds(pass_: ModulePass, module: ModuleOp) -> float:
    start = time.process_time()
    pass_.apply(Context(), module)
    return time.process_time() - start


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[1250, 2500, 5000, 10000])
    return parser


if __name__ == "__main__":
    main()
