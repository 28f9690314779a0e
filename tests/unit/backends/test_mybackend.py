"""Convolution, batch norm and ReLU as one composite."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from seed_graphs import check_in_new_process, compile_and_check
from xdsl.dialects.builtin import ModuleOp

import byoc_mlir
from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.frontend import import_model
from byoc_mlir.testing.networks import NETWORKS, GraphBuilder
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime
from byoc_mlir.transforms.partition_for import PartitionFor


def _composites(module: ModuleOp) -> Counter[str]:
    PartitionFor(("mybackend",)).apply(make_context(), module)
    module.verify()
    return Counter(op.composite_name.data for op in module.walk() if isinstance(op, CompositeOp))


def test_resnet18_has_nine_of_them() -> None:
    """Checks the count: one at the beginning, and the first of two in each of eight blocks; a sum
    follows the second.
    """
    module = import_model(NETWORKS["resnet18"](image=32)).module
    assert _composites(module) == {"mybackend.conv2d_bn_relu": 9}


def test_resnet18_computes_the_same() -> None:
    model = NETWORKS["resnet18"](image=32)
    inputs = random_inputs(model)
    with byoc_mlir.compile(model, ("mybackend",), fallback="allow") as executable:
        taken = executable.report().placed("mybackend")
        assert Counter(row.op_type for row in taken) == dict.fromkeys(
            ("Conv", "BatchNormalization", "Relu"), 9
        )
        # The compiler has multiplied batch norm into the weights: what is left of it is a bias.
        assert {(row.composite, row.implementation) for row in taken} == {
            ("mybackend.conv2d_bias_relu", "C loops")
        }
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs), 1e-4)


def _conv_bn_relu(groups: int = 1) -> GraphBuilder:
    b = GraphBuilder("conv_bn_relu", seed=6)
    x = b.input("x", [2, 4, 9, 8])
    y = b.conv(x, 8, (3, 2), stride=2, padding=(1, 0), groups=groups, bias=False)
    b.output(b.relu(b.batch_norm(y)), "out", [2, 8, 5, 4])
    return b


def test_batch_norm_is_packed_into_the_weights(tmp_path: Path) -> None:
    """Checks a module that is already partitioned, so that the compiler leaves batch norm to the
    backend.
    """
    model = _conv_bn_relu().build()
    module = import_model(model).module
    assert _composites(module) == {"mybackend.conv2d_bn_relu": 1}
    inputs = random_inputs(model)
    with byoc_mlir.compile(module, ("mybackend",), fallback="forbid") as executable:
        (row,) = {row.composite for row in executable.report().placed("mybackend")}
        assert row == "mybackend.conv2d_bn_relu"
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs), 1e-5)
        assert (
            "status = conv2d_relu(in0, weight0, bias0, out0, 2, 4, 9, 8, 8, 5, 4, "
            in executable.get_source("mybackend_main_0")
        )
        check_in_new_process(executable, model, tmp_path)


def test_groups_are_refused_with_the_reason() -> None:
    with compile_and_check(_conv_bn_relu(groups=2).build(), "mybackend") as executable:
        assert not executable.report().placed("mybackend")
        (conv,) = [row for row in executable.report() if row.op_type == "Conv"]
        assert "only one group is supported, found 2" in conv.reason


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("dilation", [1, 2])
def test_windows(stride: int, dilation: int) -> None:
    b = GraphBuilder("windows", seed=7)
    x = b.input("x", [1, 3, 11, 12])
    window = {"strides": [stride, 1], "dilations": [1, dilation], "pads": [1, 0, 2, 3]}
    y = b.op("Conv", x, b.normal((5, 3, 3, 2), 0.3), b.normal((5,), 1.0, "bias"), **window)
    b.output(b.relu(y), "out", [1, 5, None, None])
    with compile_and_check(b.build(), "mybackend", fallback="forbid") as executable:
        assert "mybackend" in executable.report().counts()
