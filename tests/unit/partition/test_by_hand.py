"""Regions that a user draws in a `.mlir` file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

import byoc_mlir
from byoc_mlir.backends import Backend, CSource, register_backend
from byoc_mlir.dialects import make_context
from byoc_mlir.errors import BackendError, InvalidModelError
from byoc_mlir.patterns import CompositePattern, is_op, wildcard
from byoc_mlir.transforms.merge_compiler_regions import MergeCompilerRegions
from byoc_mlir.transforms.merge_composite import MergeComposite
from byoc_mlir.transforms.partition_for import PartitionFor
from byoc_mlir.transforms.partition_graph import PartitionGraph

UNARY = "(tensor<4xf32>) -> tensor<4xf32>"
BINARY = "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"


@register_backend
class Hand(Backend):
    """Backend without rules, which runs `tanh` or `sigmoid` of one input, times two."""

    name = "by_hand"

    def patterns(self):
        return [CompositePattern("by_hand.tanh", is_op("tanh")(wildcard()))]

    def codegen(self, region, context):
        symbol = region.sym_name.data
        return CSource(
            f"int {symbol}(const float *x, float *y)"
            "{ for (int i = 0; i < 4; ++i) y[i] = 2 * x[i]; return 0; }"
        )


def parsed(text: str) -> ModuleOp:
    module = Parser(make_context(), text).parse_module()
    module.verify()
    return module


GOOD = f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = byoc.compiler_begin %x for "by_hand" : tensor<4xf32>
  %1 = relay.sigmoid %0 : {UNARY} loc("Sigmoid")
  %2 = byoc.compiler_end %1 for "by_hand" : tensor<4xf32>
  %3 = relay.tanh %2 : {UNARY} loc("Tanh")
  func.return %3 : tensor<4xf32>
}}
"""
NO_END = f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = byoc.compiler_begin %x for "by_hand" : tensor<4xf32>
  %1 = relay.sigmoid %0 : {UNARY}
  func.return %1 : tensor<4xf32>
}}
"""
NOT_CONVEX = f"""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
  %0 = byoc.compiler_begin %x for "by_hand" : tensor<4xf32>
  %1 = relay.sigmoid %0 : {UNARY}
  %2 = byoc.compiler_end %1 for "by_hand" : tensor<4xf32>
  %3 = relay.exp %2 : {UNARY}
  %4 = byoc.compiler_begin %3 for "by_hand" : tensor<4xf32>
  %5 = relay.add %1, %4 : {BINARY}
  %6 = byoc.compiler_end %5 for "by_hand" : tensor<4xf32>
  func.return %6 : tensor<4xf32>
}}
"""
REFUSED = [
    (NO_END, "region of 'by_hand' has no byoc.compiler_end: sigmoid"),
    (NOT_CONVEX, "the region of 'by_hand' with sigmoid depends on its own results, through exp"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=["no end", "not convex"])
@pytest.mark.parametrize(
    "pass_",
    [
        PartitionFor(("by_hand",)),
        MergeComposite(("by_hand",)),
        MergeCompilerRegions(),
        PartitionGraph(),
    ],
    ids=lambda pass_: pass_.name,
)
def test_nothing_is_changed_before_all_is_checked(text: str, reason: str, pass_: ModulePass):
    module = parsed(GOOD.replace("@main", "@first") + text)
    before = str(module)
    with pytest.raises(PassFailedException, match=reason):
        pass_.apply(Context(), module)
    assert str(module) == before


@pytest.mark.parametrize(("text", "reason"), REFUSED, ids=["no end", "not convex"])
def test_compile_refuses_with_the_reason(text: str, reason: str, tmp_path: Path):
    path = tmp_path / "model.mlir"
    path.write_text(text)
    with pytest.raises(InvalidModelError, match=f"regions in the module.*{reason}"):
        byoc_mlir.compile(path, targets=("by_hand",))


def test_a_region_for_no_target_is_refused():
    message = r"@by_hand_main_0 is annotated for 'by_hand', which is none of the targets: there are"
    with pytest.raises(BackendError, match=message):
        byoc_mlir.compile(parsed(GOOD), targets=())


def test_what_is_drawn_is_offloaded():
    x = np.linspace(-2, 2, 4, dtype=np.float32)
    with byoc_mlir.compile(parsed(GOOD), targets=("by_hand",), fallback="allow") as executable:
        [found] = executable.run([x]).values()
        rows = {row.node: row for row in executable.report()}
    # the region's code doubles, and tanh is a composite of the same backend, merged with it
    np.testing.assert_allclose(found, 2 * x)
    assert rows["Sigmoid"].region == rows["Tanh"].region == "by_hand_main_0"
    assert (rows["Sigmoid"].composite, rows["Tanh"].composite) == ("", "by_hand.tanh")
