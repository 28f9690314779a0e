"""The pass `avoid-gathers`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.passes import ModulePass

from byoc_mlir.abi import PREFER_NO_GATHER


@dataclass(frozen=True)
class AvoidGathers(ModulePass):
    """Tells LLVM not to use gather instructions in marked functions, on processors with AVX2.

    A function's `target_features` replace the features of the target, so the pass repeats these.

    ```mlir
    llvm.func @walk() attributes {byoc.prefer_no_gather} { … }
    ```

    becomes, for `+avx2,+fma`,

    ```mlir
    llvm.func @walk() attributes {
        byoc.prefer_no_gather,
        target_features = #llvm.target_features<["+avx2", "+fma", "+prefer-no-gather"]>} { … }
    ```

    Args:
        features: features of the target, separated by commas.
    """

    name = "avoid-gathers"

    features: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        features = self.features.split(",")
        if "+avx2" not in features:
            return
        said = ArrayAttr([StringAttr(each) for each in (*features, "+prefer-no-gather")])
        for function in op.ops:
            if isinstance(function, llvm.FuncOp) and PREFER_NO_GATHER in function.attributes:
                function.attributes["target_features"] = llvm.TargetFeaturesAttr(said)
