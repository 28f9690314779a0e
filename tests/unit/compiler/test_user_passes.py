"""`compile(passes=…)`: passes of users, which are registered or installed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

import byoc_mlir
from byoc_mlir.compiler import user_passes
from byoc_mlir.dialects.byoc import CompilerEndOp
from byoc_mlir.dialects.relay.elementwise import AbsOp, ErfOp, SinOp, TanhOp
from byoc_mlir.errors import ByocError, CompilationError, InternalError
from byoc_mlir.tools.byoc import main
from byoc_mlir.tools.byoc_opt import main as opt

X = np.linspace(-2, 2, 6, dtype=np.float32)


@dataclass(frozen=True)
class Swap(ModulePass):
    """Pass that replaces `tanh` by another function."""

    name = "swap-tanh"

    by: str = "sin"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            if isinstance(inner, TanhOp):
                new = {"sin": SinOp, "erf": ErfOp}[self.by](inner.data)
                new.location = inner.location
                Rewriter.replace_op(inner, new)


@dataclass(frozen=True)
class Failing(ModulePass):
    """Pass that fails, or breaks the module."""

    name = "failing"

    how: str = "raise"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if self.how == "rename" and isinstance(inner, FuncOp):
                inner.sym_name = StringAttr("other")
            if self.how == "raise" and isinstance(inner, TanhOp):
                raise KeyError("card")
            if self.how == "reorder" and isinstance(inner, AbsOp):
                tanh, block = inner.data.owner, inner.parent_block()
                assert isinstance(tanh, TanhOp)
                assert block is not None
                inner.detach()
                block.insert_op_before(inner, tanh)
                return
            if self.how == "detach" and isinstance(inner, TanhOp):
                inner.detach()
                return
            if self.how == "mark" and isinstance(inner, TanhOp):
                end = CompilerEndOp(inner.data, "ccompiler")
                Rewriter.insert_op(end, InsertPoint.before(inner))
                inner.operands = [end.result]
                return


@pytest.fixture(autouse=True)
def passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_passes, "_passes", replace(user_passes._passes, registered={}))
    byoc_mlir.register_pass(Swap)
    byoc_mlir.register_pass(Failing)


def _model(size: int | str = 6) -> ModelProto:
    return parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]>'
        f"net (float[{size}] x) => (float[{size}] y) {{ t = Tanh (x) y = Abs (t) }}"
    )


@pytest.mark.parametrize("size", [6, "n"])
@pytest.mark.parametrize("targets", [(), ("ccompiler",)])
def test_a_pass_runs(size: int | str, targets: tuple[str, ...]) -> None:
    with byoc_mlir.compile(
        _model(size), targets, 1, fallback="allow", passes=("swap-tanh",)
    ) as executable:
        got = executable.run({"x": X})["y"]
        assert [row.op_type for row in executable.report()] == ["Tanh", "Abs"]
    np.testing.assert_allclose(got, np.abs(np.sin(X)), rtol=1e-5)


def test_options_and_the_order(tmp_path: Path) -> None:
    names = ("swap-tanh{by=erf}", "swap-tanh")
    byoc_mlir.compile(_model(), (), 1, passes=names, dump_ir=tmp_path).close()
    ran = (tmp_path / "passes.txt").read_text()
    assert ran.count("swap-tanh: relay.erf +1, relay.tanh -1") == 1
    assert ran.count("swap-tanh: nothing") == 1


def test_it_can_be_left_out() -> None:
    with byoc_mlir.compile(_model(), (), passes=("swap-tanh",), disable=("swap-tanh",)) as exe:
        np.testing.assert_allclose(exe.run({"x": X})["y"], np.abs(np.tanh(X)), rtol=1e-5)


def test_bisect_finds_it() -> None:
    with byoc_mlir.compile(_model(), (), passes=("swap-tanh",)) as executable:
        found = executable.bisect({"x": X}, model=_model())
    assert (found.kind, found.names) == ("pass", ("swap-tanh",))


def test_it_is_part_of_the_cache_key(tmp_path: Path) -> None:
    def run(*names: str) -> tuple[Any, bool]:
        with byoc_mlir.compile(_model(), (), 1, cache=tmp_path, passes=names) as executable:
            stages = [name for name, _ in executable.report().compile_seconds]
            return executable.run({"x": X})["y"], stages == ["cache"]

    wanted = {"": np.tanh(X), "swap-tanh": np.sin(X)}
    for was_cached in (False, True):
        for name, right in wanted.items():
            got, cached = run(*([name] if name else []))
            np.testing.assert_allclose(got, np.abs(right), rtol=1e-5)
            assert cached == was_cached


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("raise", r"pass 'failing' failed: KeyError\('card'\)"),
        ("rename", "changed the functions"),
        ("reorder", r"pass 'failing' failed: relay.abs \(.*\) reads .* relay.tanh .* comes later"),
        ("detach", "pass 'failing' failed: the module does not verify: .*relay.abs"),
        ("mark", "pass 'failing' failed: the regions .* which no region computes"),
    ],
)
def test_a_pass_that_fails(how: str, said: str) -> None:
    with pytest.raises(CompilationError, match=said) as caught:
        byoc_mlir.compile(_model(), (), passes=(f"failing{{how={how}}}",))
    assert not isinstance(caught.value, InternalError)
    assert caught.value.stage == "pass failing"
    assert (caught.value.node == "Tanh_0") == (how == "raise")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("swap-tanh", "accepted is a sequence of names"),
        ([3], "accepted is a sequence of names"),
        (["swap-tan"], "no pass of a user is named 'swap-tan'; .* did you mean 'swap-tanh'"),
        (["fold-constants"], "no pass of a user is named 'fold-constants'"),
        (["swap-tanh{by="], "accepted is a name, or a name with options"),
        (["swap-tanh{to=sin}"], "pass 'swap-tanh{to=sin}': .*not found in expected"),
        (["swap-tanh{by=3}"], "Incompatible types"),
    ],
)
def test_refused(names: Any, said: str) -> None:
    with pytest.raises(ByocError, match=said) as caught:
        byoc_mlir.compile(_model(), (), passes=names)
    assert not isinstance(caught.value, InternalError)


def _named(given: object) -> type[ModulePass]:
    class Pass(ModulePass):
        name = given  # pyright: ignore[reportAssignmentType]

        def apply(self, ctx: Context, op: ModuleOp) -> None: ...

    return Pass


@pytest.mark.parametrize(
    ("cls", "said"),
    [
        (5, "the pass is 5"),
        (int, "int is no pass"),
        (_named("My Pass"), "lower-case words with hyphens"),
        (_named(None), "found None"),
        (_named("swap-tanh"), "registered already"),
    ],
)
def test_register_refuses(cls: Any, said: str) -> None:
    with pytest.raises(ByocError, match=said):
        byoc_mlir.register_pass(cls)


PACKAGE = """
from dataclasses import dataclass, replace
from xdsl.passes import ModulePass

@dataclass(frozen=True)
class Installed(ModulePass):
    name = "installed-pass"
    def apply(self, ctx, op):
        raise RuntimeError("it ran")
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Creates a distribution with a pass, as pip would install it."""
    (tmp_path / "installed_pass.py").write_text(PACKAGE)
    info = tmp_path / "installed_pass-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: installed-pass\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[byoc_mlir.passes]\ninstalled-pass = installed_pass:Installed\ngone = no_module:Gone\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_an_installed_pass(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CompilationError, match="it ran"):
        byoc_mlir.compile(_model(), (), passes=("installed-pass",))
    with pytest.raises(ByocError, match="pass 'gone' cannot be loaded: ModuleNotFoundError"):
        byoc_mlir.compile(_model(), (), passes=("gone",))
    path = package / "model.mlir"
    path.write_text("builtin.module {}")
    assert opt([str(path), "-p", "installed-pass"]) == 1
    assert "it ran" in capsys.readouterr().err


FILE = """
import byoc_mlir
from byoc_mlir.dialects.byoc import CompilerEndOp
from byoc_mlir.dialects.relay.elementwise import AbsOp, ErfOp, TanhOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

@byoc_mlir.register_pass
class ToErf(ModulePass):
    name = "to-erf"
    def apply(self, ctx, op):
        for inner in list(op.walk()):
            if isinstance(inner, TanhOp):
                Rewriter.replace_op(inner, ErfOp(inner.data))
"""


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, model = tmp_path / "mine.py", tmp_path / "model.onnx"
    file.write_text(FILE)
    model.write_bytes(_model().SerializeToString())
    assert main(["report", str(model), "--backend", str(file), "--pass", "to-erf"]) == 0
    assert opt([str(model), "--backend", str(file), "-p", "to-erf"]) == 0
    assert "relay.erf" in capsys.readouterr().out
