"""Models of one node of each op, with one of its integers replaced by one near the ends of int64.

Integers are attributes, and operands that can only be integers or are sizes; scales and positions
that are floats are replaced by huge ones. The sizes of inputs are static or symbolic.

`python tests/helpers/integer_ends.py --help` runs all of them, or a part.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import onnx
from byoc_mlir_fuzz.campaign import Campaign
from byoc_mlir_fuzz.case import Array, Case, Feeds, Settings
from byoc_mlir_fuzz.report import summary
from onnx import AttributeProto, numpy_helper

from byoc_mlir.backends import split_targets
from byoc_mlir.frontend.files.check import MAX_OPSET
from byoc_mlir.frontend.schema import op_schema
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import add_node, importable_ops
from byoc_mlir.testing.samples.onnx_nodes.symbolic import with_symbols
from byoc_mlir.testing.samples.onnx_nodes.tensor import DOMAINS

GUARDS = Path(__file__).with_name("guard_pages.py")
ENDS = tuple(
    sorted(
        {
            *(-(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1, -2, -1, 0, 1),
            *(
                sign * 2**power + more
                for sign in (-1, 1)
                for power in (31, 32, 62)
                for more in (0, -1)
            ),
        }
    )
)
HUGE = (1e30, -1e30, 4e9, np.inf, -np.inf, np.nan, 0.0, 1e-30)
_FLAGS = frozenset(
    {
        *("allowzero", "antialias", "center_point_box", "ceil_mode", "count_include_pad"),
        *("exclude_outside", "exclusive", "fmod", "keepdims", "largest", "linear_before_reset"),
        *("multi_class", "new_axis", "noop_with_empty_axes", "periodic", "reverse", "saturate"),
        *("select_last_index", "sorted", "storage_order", "upper", "zeros", "align_corners"),
        *("onesided", "inverse", "is_causal", "interleaved", "unidirectional", "do_rotary"),
    }
)
"""Attributes that are true or false; ONNX does not define other values."""
_SIZES: Mapping[str, tuple[int, ...]] = {
    "AffineGrid": (0,),
    "GridSample": (1,),
    "MaxRoiPool": (1,),
    "NonMaxSuppression": (0, 3, 4),
    "OneHot": (0, 1),
    "Range": (0, 1, 2),
    "Resize": (1, 2),
    "RoiAlign": (1,),
    "Upsample": (1,),
}
"""Operands that may be floats, and are sizes or positions."""


@dataclass(frozen=True)
class Slot:
    """Number of a node: in an attribute, or in an operand."""

    node: int
    name: str
    element: int


def cases(seed: int = 0, samples: int = 1, symbolic: bool | None = None) -> Iterator[Case]:
    """Yields all cases: by op and sample the slots, and the numbers in them.

    Args:
        seed: seed of the samples.
        samples: nodes of each op.
        symbolic: if true, inputs have symbolic sizes; `None` for both kinds.
    """
    for domain, op_type in importable_ops():
        for sample in range(samples):
            rng = Random(f"{seed}/{domain}/{op_type}/{sample}")
            opset = MAX_OPSET if sample % 2 == 0 else rng.randint(7, MAX_OPSET)
            graph = RandomGraph(rng, opset, "plain", domains=DOMAINS)
            if not add_node(graph, op_type, domain):
                continue
            model = graph.model()
            name = f"{domain}.{op_type}/{sample}"
            if symbolic is not True:
                yield from _cases_of(rng, op_type, f"{name}/static", model, (graph.feeds,))
            if symbolic is not False:
                symbols = with_symbols(graph, model)
                yield from _cases_of(rng, op_type, f"{name}/symbolic", *symbols)


def _cases_of(
    rng: Random, op_type: str, name: str, model: onnx.ModelProto, feeds: tuple[Feeds, ...]
) -> Iterator[Case]:
    for slot in _slots(rng, op_type, model, feeds[0]):
        for number in HUGE if slot.name.startswith("float ") else ENDS:
            changed = onnx.ModelProto()
            changed.CopyFrom(model)
            new = _replaced(changed, feeds, slot, number)
            text = f"{name}/{slot.node}.{slot.name}[{slot.element}]={number}"
            if new is not None:
                yield Case(text, changed.SerializeToString(deterministic=True), new)


def _slots(rng: Random, op_type: str, model: onnx.ModelProto, feeds: Feeds) -> Iterator[Slot]:
    known = _arrays(model, feeds)
    for number, node in enumerate(model.graph.node):
        if node.op_type != op_type:
            continue
        for attribute in node.attribute:
            if attribute.type == AttributeProto.INT and attribute.name not in _FLAGS:
                yield Slot(number, attribute.name, 0)
            if attribute.type == AttributeProto.INTS and attribute.ints:
                yield Slot(number, attribute.name, rng.randrange(len(attribute.ints)))
        for place, name in enumerate(node.input):
            if name in known and known[name].size and _counts(model, node, place, known[name]):
                kind = "float" if known[name].dtype.kind == "f" else "int"
                yield Slot(number, f"{kind} {name}", rng.randrange(known[name].size))


def _counts(model: onnx.ModelProto, node: onnx.NodeProto, place: int, array: Array) -> bool:
    """True if an operand holds sizes or positions."""
    if place in _SIZES.get(node.op_type, ()):
        return array.dtype.kind in "if"
    if node.op_type == "Loop" and place == 0:
        return False  # as many iterations as it says are run
    if array.dtype not in (np.int64, np.int32):
        return False
    versions = {entry.domain: entry.version for entry in model.opset_import}
    schema = op_schema(node.domain, node.op_type, versions.get(node.domain, 1))
    if schema is None:
        return True
    if place >= len(schema.inputs):
        return False
    return {*schema.inputs[place].types} <= {"tensor(int64)", "tensor(int32)"}


def _arrays(model: onnx.ModelProto, feeds: Feeds) -> dict[str, Array]:
    constants = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    nodes = [node for node in model.graph.node if node.op_type == "Constant"]
    made = {
        node.output[0]: numpy_helper.to_array(node.attribute[0].t)
        for node in nodes
        if node.attribute[0].name == "value"
    }
    return {**constants, **made, **feeds}


def _replaced(
    model: onnx.ModelProto, feeds: tuple[Feeds, ...], slot: Slot, number: float
) -> tuple[Feeds, ...] | None:
    """Replaces a number in the model or the feeds and returns the feeds; `None` if it does not
    fit."""
    node = model.graph.node[slot.node]
    for attribute in node.attribute:
        if attribute.name == slot.name:
            if attribute.type == AttributeProto.INT:
                attribute.i = int(number)
            else:
                attribute.ints[slot.element] = int(number)
            return feeds
    name = slot.name.partition(" ")[2]

    def changed(array: Array) -> Array:
        copy = np.array(array)
        with np.errstate(all="ignore"):
            copy.reshape(-1)[slot.element] = number
        return copy

    array = _arrays(model, feeds[0])[name]
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        if not limits.min <= number <= limits.max:
            return None
    if any(name in each for each in feeds):
        if any(each[name].size <= slot.element for each in feeds):
            return None
        return tuple({**each, name: changed(each[name])} for each in feeds)
    for tensor in model.graph.initializer:
        if tensor.name == name:
            tensor.CopyFrom(numpy_helper.from_array(changed(array), name))
    for other in model.graph.node:
        if other.op_type == "Constant" and other.output[0] == name:
            other.attribute[0].t.CopyFrom(numpy_helper.from_array(changed(array)))
    return feeds


def settings(targets: tuple[str, ...] | None) -> Settings:
    """Returns the settings by which cases run: between guards."""
    return Settings(targets=targets, backends=(str(GUARDS),), memory=8 << 30)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Runs cases and prints the findings."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=1, help="nodes of each op")
    parser.add_argument("--every", type=int, default=1, help="run one case in so many")
    parser.add_argument("--only", default="", help="run those with this text in their names")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--targets", help="as in byoc compile; default: the host")
    parser.add_argument("--out", type=Path, help="a folder for what fails, made smaller")
    args = parser.parse_args()
    targets = () if args.targets is None else split_targets(args.targets)
    campaign = Campaign(settings(targets), args.jobs, 90.0, args.out, _say)
    listed = (case for case in cases(args.seed, args.samples) if args.only in case.name)
    chosen = (case for number, case in enumerate(listed) if number % args.every == 0)
    tally = campaign.run(chosen, None if args.minutes is None else 60 * args.minutes)
    _say(summary(tally, mutated=False))
    return 1 if tally.failures() else 0


if __name__ == "__main__":
    sys.exit(main())
