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
    """Removes ops that change nothing and merges neighbours that one op can do; exact to the bit.

    ```mlir
    %0 = relay.nn.pad %x {pad_width = [0, 0, 0, 0, 1, 1, 1, 1]} : …
    %1 = relay.nn.conv2d %0, %w {padding = [0, 0, 0, 0], …} : …
    %2 = relay.nn.relu %1 : …
    %3 = relay.clip %2 {a_min = 0.0, a_max = 6.0} : …
    // becomes
    %1 = relay.nn.conv2d %x, %w {padding = [1, 1, 1, 1], …} : …
    %3 = relay.clip %1 {a_min = 0.0, a_max = 6.0} : …
    ```

    Reshapes, squeezes and expansions of each other become one reshape, transposes compose, paddings
    go into convolutions and pools, windows lose what reads padding only, nested clips and relus
    become one clip, and what is dead goes.
    One walk in order of the program: every op sees its operands as they are after simplification.
    """

    name = "simplify"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in host_blocks(op):
            replacements = Replacements()
            for candidate in in_time(block.ops):
                replacements.simplify(candidate)
            erase_dead_ops(block)
            replacements.locate()
