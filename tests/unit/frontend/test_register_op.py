"""Importers that a user registers, as in `docs/custom-ops.md`."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import pytest
from registered import hide_own_ops

from byoc_mlir.compiler.cache import fingerprint
from byoc_mlir.compiler.cache.fingerprint import machine_and_software
from byoc_mlir.dialects.relay import elementwise
from byoc_mlir.errors import ByocError
from byoc_mlir.frontend import NodeContext, Value, register_op
from byoc_mlir.frontend.known_ops import misfit
from byoc_mlir.frontend.registry import OpFunction, all_ops, find_op


@pytest.fixture(autouse=True)
def nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    hide_own_ops(monkeypatch)


def importer() -> Callable[[NodeContext, Value], Value]:
    def negated(context: NodeContext, data: Value) -> Value:
        return context.emit(elementwise.NegativeOp, data)

    return negated


def test_versions_hold_up_to_the_next_one() -> None:
    old, new = importer(), importer()
    register_op("com.example", "Op", since=2)(old)
    register_op("com.example", "Op", since=5)(new)
    found: list[OpFunction | None] = []
    for opset in (1, 2, 4, 5, 9):
        op = find_op("com.example", "Op", opset)
        found.append(op and op.function)
    assert found == [None, old, old, new, new]


def test_a_function_defined_again_takes_the_place_of_the_first() -> None:
    first, second = importer(), importer()
    register_op("com.example", "Op")(first)
    register_op("com.example", "Op")(second)
    op = find_op("com.example", "Op", 1)
    assert op is not None
    assert op.function is second


def test_another_function_for_the_same_version_is_refused() -> None:
    def other(context: NodeContext, data: Value) -> Value:
        return data

    register_op("com.example", "Op")(importer())
    with pytest.raises(ByocError, match=r"com.example.Op, version 1, is registered already, for"):
        register_op("com.example", "Op")(other)


def test_the_first_version_is_1() -> None:
    with pytest.raises(ByocError, match="`since` is 0, accepted are 1 and more"):
        register_op("com.example", "Op", since=0)


@dataclass(frozen=True, kw_only=True)
class Affine:
    """Attributes of several ops."""

    scale: float = 2.0
    shift: float


def test_attributes_may_come_together() -> None:
    seen: list[tuple[Affine, int]] = []

    @register_op("com.example", "Op", attributes=Affine)
    def affine(context: Any, data: Any, *, attributes: Affine, axis: int = 0) -> tuple[Any, ...]:
        seen.append((attributes, axis))
        return (data,)

    op = find_op("com.example", "Op", 1)
    assert op is not None
    given: Any = object()
    op(given, (given,), {"shift": 1.0, "axis": 3})
    op(given, (given,), {"shift": 0.5, "scale": 4.0})
    assert seen == [(Affine(shift=1.0), 3), (Affine(scale=4.0, shift=0.5), 0)]


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"shift": 1.0, "axis": 1}, None),
        ({"scale": 1.0}, "the attribute 'shift' is required"),
        ({"shift": 1}, "attribute 'shift' is INT, accepted is FLOAT"),
        ({"shift": 1.0, "size": 1}, "accepted are axis, scale, shift"),
    ],
)
def test_each_of_them_is_checked(attributes: dict[str, Any], reason: str | None) -> None:
    @register_op("com.example", "Op", attributes=Affine)
    def affine(context: Any, data: Any, *, attributes: Affine, axis: int = 0) -> tuple[Any, ...]:
        return (data,)

    op = find_op("com.example", "Op", 1)
    assert op is not None
    found = misfit(op, onnx.helper.make_node("Op", ["x"], ["y"], **attributes))
    assert (found is None) == (reason is None)
    assert reason is None or reason in str(found)


def test_cached_programs_are_for_the_importers_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # other tests of this process may have registered backends that stand in no file
    monkeypatch.setattr(fingerprint, "_registered_classes", list[str])
    before = machine_and_software()
    register_op("com.example", "Op")(importer())
    assert machine_and_software() != before
    names: dict[str, OpFunction] = {}
    exec("def anywhere(context, data):\n    return data", names)
    names["anywhere"].__module__ = "__main__"
    register_op("com.example", "Other")(names["anywhere"])
    assert machine_and_software() is None


@pytest.fixture
def installed_op(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yields the module of an installed package that registers com.example.Installed."""
    info = tmp_path / "example_ops-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: example-ops\nVersion: 1.0\n\n")
    (info / "entry_points.txt").write_text(
        "[byoc_mlir.ops]\ncom.example.Installed = example_ops_module\n"
    )
    module = tmp_path / "example_ops_module.py"
    module.write_text(
        "from byoc_mlir.frontend import register_op\n"
        "@register_op('com.example', 'Installed')\n"
        "def installed(context, data):\n    return data\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield module
    sys.modules.pop("example_ops_module", None)


def test_an_installed_module_is_imported_for_its_op_alone(installed_op: Path) -> None:
    assert find_op("com.example", "Other", 1) is None
    assert "example_ops_module" not in sys.modules
    before = machine_and_software()
    op = find_op("com.example", "Installed", 1)
    assert op is not None
    assert op.function.__module__ == "example_ops_module"
    assert machine_and_software() == before, "it is the same program, loaded or not"


def test_an_importer_of_the_process_comes_first(installed_op: Path) -> None:
    own = importer()
    register_op("com.example", "Installed")(own)
    op = find_op("com.example", "Installed", 1)
    assert op is not None
    assert op.function is own
    assert "example_ops_module" not in sys.modules


def test_an_installed_module_that_fails_is_named(installed_op: Path) -> None:
    installed_op.write_text("raise RuntimeError('no licence')")
    with pytest.raises(ByocError, match=r"com\.example\.Installed, example_ops_module.*no licence"):
        find_op("com.example", "Installed", 1)


LOADED = """
import sys
from byoc_mlir.frontend import registry

def extra():
    return [name for name in sys.modules if name.startswith("byoc_mlir.extra_ops.")]

assert registry.find_op("", "Relu", 17) and not extra()
assert registry.find_op("ai.onnx.preview.training", "Adam", 1)
assert extra() == ["byoc_mlir.extra_ops.training"]
found = {op.op_type for op in registry.all_ops() if "extra_ops" in op.function.__module__}
print(*sorted(found))
"""


def test_rare_ops_are_found_as_those_of_installed_packages() -> None:
    command = [sys.executable, "-c", LOADED]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.split() == [
        *("Adagrad", "Adam", "Momentum", "SVMClassifier", "SVMRegressor", "TfIdfVectorizer")
    ]


def test_the_versions_of_an_op_are_in_one_family() -> None:
    places: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for op in all_ops():
        places[op.domain, op.op_type].add(op.function.__module__)
    assert not {name: found for name, found in places.items() if len(found) > 1}


def test_an_op_imports_its_family_alone() -> None:
    script = """
import sys
from byoc_mlir.frontend.registry import all_ops, find_op
assert find_op("", "DepthToSpace", 17) and find_op("", "ReduceMean", 17)
print("byoc_mlir.frontend.ops.depth" in sys.modules, "byoc_mlir.frontend.ops.lstm" in sys.modules)
"""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["True", "False"]


def test_an_importer_of_a_known_op_is_refused_before_its_family_is_loaded() -> None:
    script = """
from byoc_mlir.frontend import register_op
try:
    @register_op("", "DepthToSpace")
    def own(context, data, *, blocksize, mode="DCR"):
        return data
except Exception as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "is registered already" in result.stdout
