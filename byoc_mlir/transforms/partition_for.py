"""The pass `partition-for`: the whole partitioning, from patterns to outlined regions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from byoc_mlir.abi import Precision
from byoc_mlir.ir_dump import apply_pass
from byoc_mlir.transforms.annotate_target import AnnotateTarget
from byoc_mlir.transforms.fold_constants import FoldConstants
from byoc_mlir.transforms.merge_compiler_regions import MergeCompilerRegions
from byoc_mlir.transforms.merge_composite import MergeComposite
from byoc_mlir.transforms.partition_graph import PartitionGraph


@dataclass(frozen=True)
class PartitionFor(ModulePass):
    """Runs `merge-composite`, `annotate-target`, `merge-compiler-regions` and `partition-graph`.

    After the first pass run `to-mixed-precision` and `fold-constants` with `precision=bf16` or
    `f16`, `split-products` and `fold-constants` with `bf16x3`, `allow-tf32` with `tf32`.

    ```mlir
    func.func @main(%x: tensor<…>) -> tensor<…> {
      %0 = relay.nn.relu %x : (tensor<…>) -> tensor<…>
      func.return %0 : tensor<…>
    }
    ```

    becomes, with `targets=dnnl`,

    ```mlir
    func.func @main(%x: tensor<…>) -> tensor<…> {
      %0 = func.call @dnnl_main_0(%x) : (tensor<…>) -> tensor<…>
      func.return %0 : tensor<…>
    }
    func.func private @dnnl_main_0(%x: tensor<…>) -> tensor<…> attributes {byoc.compiler = "dnnl"} {
      %0 = relay.nn.relu %x : (tensor<…>) -> tensor<…>
      func.return %0 : tensor<…>
    }
    ```
    """

    name = "partition-for"

    targets: tuple[str, ...]
    bind_constants: bool = True
    precision: Precision = "f32"
    exact: tuple[str, ...] = ()
    """Names of nodes whose matmuls and convolutions stay in `f32`, whatever the precision."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for pass_ in self._passes():
            apply_pass(pass_, ctx, op)

    def _passes(self) -> Iterator[ModulePass]:
        yield MergeComposite(self.targets)
        if self.precision in ("bf16", "f16"):
            from byoc_mlir.transforms.to_mixed_precision import ToMixedPrecision

            yield ToMixedPrecision(self.precision, self.targets, self.exact)
            yield FoldConstants()
        elif self.precision == "bf16x3":
            from byoc_mlir.transforms.split_products import SplitProducts

            yield SplitProducts(self.targets, self.exact)
            yield FoldConstants()
        elif self.precision == "tf32":
            from byoc_mlir.transforms.allow_tf32 import AllowTf32

            yield AllowTf32(self.targets, self.exact)
        yield AnnotateTarget(self.targets)
        yield MergeCompilerRegions()
        yield PartitionGraph(self.bind_constants)
