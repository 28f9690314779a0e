"""The pass `fake-quantization-to-integer`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.locations import fused_location, node_names
from byoc_mlir.dialects.relay.qnn import DequantizeOp, QuantizeOp
from byoc_mlir.limits import in_time
from byoc_mlir.transforms import integer_moves, integer_products
from byoc_mlir.transforms.integer_products import PRODUCTS, Rule
from byoc_mlir.transforms.integer_results import integers_of
from byoc_mlir.transforms.kept_float import keep_float
from byoc_mlir.transforms.op_sequence import OpSequence
from byoc_mlir.transforms.quantised import Quantised
from byoc_mlir.transforms.rewriting import erase_dead_ops, replace_op

_RULES: dict[type[Operation], Rule] = {**integer_products.RULES, **integer_moves.RULES}


@dataclass(frozen=True)
class FakeQuantizationToInteger(ModulePass):
    """Replaces sequences of dequantise, float op and quantise by integer ops.

    ```mlir
    %0 = relay.qnn.dequantize %x, %sx, %zx : …
    %1 = relay.qnn.dequantize %w, %sw, %zw {axis = 0} : …
    %2 = relay.nn.conv2d %0, %1 : …
    %3 = relay.nn.relu %2 : …
    %4 = relay.qnn.quantize %3, %sy, %zy : …
    // becomes
    %2 = relay.qnn.conv2d %x, %w, %zx, %zw : … -> i32
    %3 = relay.qnn.requantize %2, %sx_times_sw, %c0, %sy, %zy : …
    %4 = relay.clip %3 {a_min = 128.0, a_max = 255.0} : …
    ```

    The integer results are the same, except where rounding is close to a tie. Convolutions and
    GEMMs whose result is not quantised end in a `dequantize` of their sums. Ops without an integer
    form stay, and the module records why. `products` names the `qnn` GEMMs and convolutions that
    the pass may create, if not all of them are faster than `f32`.
    """

    name = "fake-quantization-to-integer"

    products: tuple[str, ...] = tuple(sorted(PRODUCTS))

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        reasons: dict[str, str] = {}
        for block in host_blocks(op):
            for candidate in in_time(block.ops):
                reason = self._rewrite(candidate)
                if reason is not None:
                    reasons.update(dict.fromkeys(node_names(candidate), reason))
            erase_dead_ops(block)
        keep_float(op, reasons)

    def _rewrite(self, op: Operation) -> str | None:
        """Replaces an op by integer ops; returns why it stays, if its operands are quantised but it
        has no integer form.
        """
        new = OpSequence(op.location)
        if isinstance(op, QuantizeOp):
            if isinstance(op.data.owner, Operation):
                new.location = fused_location([op.data.owner, op])
            found = integers_of(op, new)
        else:
            rule = _RULES.get(type(op))
            found = rule(op, new) if rule else None
        unknown = [made.name for made in new.ops if made.name in PRODUCTS - {*self.products}]
        if found is not None and not isinstance(found, str) and not unknown:
            replace_op(op, new.ops, _values(found, new))
            return None
        new.discard()
        if unknown:
            return f"{', '.join(unknown)} is not among the enabled products"
        return found if isinstance(found, str) else None


def _values(found: SSAValue | Quantised | Sequence[Quantised], new: OpSequence) -> list[SSAValue]:
    """Returns the values that replace the op's results: integers, or their dequantised values."""
    if isinstance(found, SSAValue):
        return [found]
    each = [found] if isinstance(found, Quantised) else found
    return [
        new.add(DequantizeOp, one.data, one.scale, one.zero_point, axis=one.axis) for one in each
    ]
