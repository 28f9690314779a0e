"""The pass `simplify`."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.limits import in_time
from byoc_mlir.transforms.rewriting import erase_dead_ops
from byoc_mlir.transforms.simplify_rules import Replacements


class Simplify(ModulePass):
    """Removes ops without effect and merges adjacent ops into one, with bit-identical results.

    ```mlir
    %0 = relay.nn.pad %x {pad_width = [0, 0, 0, 0, 1, 1, 1, 1]} : …
    %1 = relay.nn.conv2d %0, %w {padding = [0, 0, 0, 0], …} : …
    %2 = relay.nn.relu %1 : …
    %3 = relay.clip %2 {a_min = 0.0, a_max = 6.0} : …
    // becomes
    %1 = relay.nn.conv2d %x, %w {padding = [1, 1, 1, 1], …} : …
    %3 = relay.clip %1 {a_min = 0.0, a_max = 6.0} : …
    ```

    Chains of reshapes, squeezes and expand_dims become one reshape, and chains of transposes one
    transpose. Paddings move into convolutions and pools; windows lose taps that read padding only.
    Nested clips and relus become one clip. Dead ops are removed. The pass walks the program once,
    in order: each op sees its simplified operands.
    """

    name = "simplify"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in host_blocks(op):
            replacements = Replacements()
            for candidate in in_time(block.ops):
                replacements.simplify(candidate)
            erase_dead_ops(block)
            replacements.locate()
