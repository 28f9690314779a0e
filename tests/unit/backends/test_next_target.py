"""Fallback to the next target for ops that a target cannot compile, and the default order of
targets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import onnx
import pytest
from ccompiler import CCompilerBackend
from xdsl.context import Context
from xdsl.dialects.func import FuncOp

import byoc_mlir
from byoc_mlir.backends import CodegenContext, CSource, register_backend, registry
from byoc_mlir.backends.region import elementwise_f32
from byoc_mlir.compiler.options import default_targets
from byoc_mlir.compiler.partition.next_targets import hand_on
from byoc_mlir.errors import BackendError, FallbackForbiddenError
from byoc_mlir.frontend import import_model
from byoc_mlir.transforms.partition_for import PartitionFor
from byoc_mlir.transforms.prune_regions import prune_regions

MODEL = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
    g (float[4] x) => (float[4] y) { a = Relu(x) b = Exp(a) c = Relu(b) y = Tanh(c) }""")


class _Relus(CCompilerBackend):
    is_cacheable: ClassVar[bool] = False

    def op_rules(self):
        return {"nn.relu": elementwise_f32}


@register_backend
class Full(_Relus):
    """Backend that fails for each region."""

    name: ClassVar[str] = "next_full"

    def codegen_regions(
        self, regions: Sequence[FuncOp], context: CodegenContext
    ) -> Sequence[CSource]:
        raise RuntimeError("the device is full")


@register_backend
class Works(_Relus):
    name: ClassVar[str] = "next_works"


def placed(executable: byoc_mlir.Executable) -> dict[str, str]:
    return {row.node: row.placement for row in executable.report()}


def check_values(executable: byoc_mlir.Executable) -> None:
    x = np.linspace(-1, 1, 4, dtype=np.float32)
    wanted = np.tanh(np.exp(np.maximum(x, 0)))
    np.testing.assert_allclose(executable.run({"x": x})["y"], wanted, rtol=1e-6)


def test_a_region_that_fails_goes_to_the_next_target():
    with byoc_mlir.compile(MODEL, targets=("next_full", "next_works"), fallback="allow") as found:
        assert placed(found)["Relu_0"] == placed(found)["Relu_2"] == "next_works"
        assert placed(found)["Exp_1"] == "host"
        assert [problem for problem in found.report().warnings if "device is full" in problem]
        check_values(found)


def test_without_a_next_target_it_goes_to_the_host():
    with byoc_mlir.compile(MODEL, targets=("next_works", "next_full"), fallback="allow") as found:
        assert placed(found)["Relu_0"] == "next_works"
    with byoc_mlir.compile(MODEL, targets=("next_full",), fallback="allow") as found:
        assert placed(found)["Relu_0"] == "host"
        check_values(found)


def test_where_the_host_is_forbidden_the_next_target_is_asked_first():
    relu = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[4] x) => (float[4] y) { y = Relu(x) }""")
    targets = ("next_full", "next_works")
    with byoc_mlir.compile(relu, targets=targets, fallback="forbid") as found:
        assert placed(found) == {"Relu_0": "next_works"}
    with pytest.raises(FallbackForbiddenError, match="the device is full"):
        byoc_mlir.compile(relu, targets=("next_full",), fallback="forbid")


def test_what_does_not_pay_goes_to_the_next_target_with_reasons():
    module = import_model(MODEL).module
    PartitionFor(("next_full",)).apply(Context(), module)

    def send(module, reasons):
        hand_on(module, reasons, Context(), ("ccompiler", "next_works"))

    assert prune_regions(module, lambda region: "too small", send) == [
        "next_full_main_0",
        "next_full_main_1",
    ]
    module.verify()
    names = [op.sym_name.data for op in module.ops if isinstance(op, FuncOp)]
    assert names[0] == "main"
    assert len(names) == 3
    assert all(name.startswith("ccompiler_next_full_main_") for name in names[1:])


@pytest.fixture
def registered() -> Iterator[None]:
    known = registry._backends.registered
    before = dict(known)
    yield
    known.clear()
    known.update(before)


def test_backends_used_by_default_have_an_order(registered: None):
    for name_, first in (("a_card", 100), ("z_card", 100), ("best_card", 101), ("b_slow", -1)):

        class Card(_Relus):
            name: ClassVar[str] = name_
            used_by_default: ClassVar[bool] = True
            priority: ClassVar[int] = first

        register_backend(Card)
    assert default_targets()[0] == ("best_card", "a_card", "z_card", "dnnl", "b_slow")


def test_a_backend_that_cannot_be_loaded_holds_up_no_model(registered: None):
    class Gone(_Relus):
        name: ClassVar[str] = "gone_card"

        def __init__(self) -> None:
            raise ImportError("no driver")

    register_backend(Gone)
    usable, missing = default_targets()
    assert "dnnl" in usable
    assert missing["gone_card"].endswith("cannot be loaded: ImportError: no driver")


def test_a_backend_whose_own_question_fails_holds_up_no_model(registered: None):
    class Mute(_Relus):
        name: ClassVar[str] = "mute_card"
        used_by_default: ClassVar[bool] = True

        def unavailable(self) -> str | None:
            raise BackendError("the card does not answer")

    register_backend(Mute)
    usable, missing = default_targets()
    assert "dnnl" in usable
    assert missing["mute_card"] == "the card does not answer"


def test_a_priority_is_a_number(registered: None):
    class Card(_Relus):
        name: ClassVar[str] = "next_card"
        priority: ClassVar[Any] = "high"

    with pytest.raises(BackendError, match="the priority of backend 'next_card' is 'high'"):
        register_backend(Card)
