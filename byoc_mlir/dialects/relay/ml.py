"""Ops of classical machine learning."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType, i32
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import (
    DataOp,
    OneResultOp,
    int_prop,
    sizes_of,
    str_prop,
    tensor_of,
    tensor_type,
    type_sizes,
)
from byoc_mlir.dialects.relay.shape import agree

AGGREGATES = ("sum", "min", "max")


@irdl_op_definition
class TreeEnsembleOp(OneResultOp):
    """Decision trees on rows of features: `data [N, F] -> output [N, targets]`.

    A walk begins at one of `roots [T]` and takes `depths [T]` steps, from a node to `lefts[node] +
    (data[n, features[node]] <= thresholds[node])`. A leaf is a node that is its own left child and
    has a threshold of NaN. The leaf at the end of the walk, number `leaves[node]`, has `weights [L,
    W]` for the targets from `firsts[leaf]` on. `aggregate` is `sum`, `min` or `max` over the trees.

    Nodes are `[M]`, integers are i32, and all operands but `data` must be constants on the host.
    """

    name = "relay.ml.tree_ensemble"
    data = operand_def(TensorType)
    roots = operand_def(TensorType)
    depths = operand_def(TensorType)
    lefts = operand_def(TensorType)
    features = operand_def(TensorType)
    thresholds = operand_def(TensorType)
    leaves = operand_def(TensorType)
    firsts = operand_def(TensorType)
    weights = operand_def(TensorType)
    targets = int_prop()
    aggregate = str_prop("sum", AGGREGATES)

    def infer_types(self) -> Sequence[Attribute]:
        data, weights = tensor_type(self.data), tensor_type(self.weights)
        if len(type_sizes(data)) != 2 or len(type_sizes(weights)) != 2:
            raise VerifyException(
                f"{self.name}: data and weights must have rank 2, found {data} and {weights}"
            )
        trees, nodes = sizes_of(self.roots), sizes_of(self.lefts)
        leaves = type_sizes(weights)[:1]
        for what, type_, shape in (
            ("roots", i32, trees),
            ("depths", i32, trees),
            ("lefts", i32, nodes),
            ("features", i32, nodes),
            ("thresholds", data.element_type, nodes),
            ("leaves", i32, nodes),
            ("firsts", i32, leaves),
            ("weights", data.element_type, type_sizes(weights)),
        ):
            expected, found = tensor_of(type_, shape), tensor_type(getattr(self, what))
            if found != expected:
                raise VerifyException(f"{self.name}: {what} must be {expected}, found {found}")
        return (tensor_of(data.element_type, [type_sizes(data)[0], self.targets.value.data]),)


@irdl_op_definition
class PairwiseCouplingOp(DataOp):
    """Probabilities of classes from pairwise ones: `data [N, pairs] -> output [N, classes]`.

    `data` has, for each pair of classes, the probability of the pair's first class; pairs are
    ordered by their first class. The result is the nearest consistent set, by the second method of
    Wu, Lin and Weng (2004): it starts from equal probabilities, and takes at most `max(100,
    classes)` rounds, until the error is below `0.005 / classes`.
    """

    name = "relay.ml.pairwise_coupling"
    classes = int_prop()

    def infer_types(self) -> Sequence[Attribute]:
        data, count = tensor_type(self.data), self.classes.value.data
        shape = type_sizes(data)
        if len(shape) != 2 or count < 2 or not agree(shape[1], count * (count - 1) // 2):
            raise VerifyException(
                f"{self.name}: {count} classes have {max(0, count * (count - 1) // 2)} pairs,"
                f" found {data}"
            )
        return (tensor_of(data.element_type, [shape[0], count]),)
