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
    """Tells LLVM of functions whose loads are not to be gathered, on processors with gathers. What
    a function says of features replaces those of the target, so it repeats them.

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
        features: those of the target, with commas.
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
