"""The pass `outline-grid-kernels`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.linalg import ops as linalg

from byoc_mlir.backends.cuda.kernels.groups import group_of
from byoc_mlir.lowering.outline_kernels import OutlineKernels


@dataclass(frozen=True)
class OutlineGridKernels(OutlineKernels):
    """Moves the `linalg` ops that a GPU computes at once, row by row, into functions.

    As `outline-kernels`, with other groups: a thread or a warp computes one row of all ops of a
    function.

    ```mlir
    linalg.generic … outs(%m : memref<64xf32>) { … }                              // fill
    linalg.generic … ins(%x : memref<64x96xf32>) outs(%m : memref<64xf32>) { … }  // maximum
    // becomes
    func.call @softmax_0(%m, %x) : (memref<64xf32>, memref<64x96xf32>) -> ()
    ```
    """

    name = "outline-grid-kernels"

    def group_size(self, ops: Sequence[linalg.GenericOp]) -> int:
        return len(group_of(ops).nests)
