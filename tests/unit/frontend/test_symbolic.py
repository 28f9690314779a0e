"""Models imported once with symbols: equal to the models imported for each shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO

import pytest
from helpers.models import parsed
from onnx import ModelProto, parser
from symbolic_models import encoder, encoder_shapes, symbolised
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.printer import Printer

from byoc_mlir.compiler.symbolic import SymbolicModel
from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.relay import GuardOp
from byoc_mlir.frontend.files.load import load_model
from byoc_mlir.frontend.files.tensors import TensorReader
from byoc_mlir.frontend.importer import import_loaded, import_symbolic
from byoc_mlir.testing.networks import NETWORKS

Shapes = Mapping[str, tuple[int, ...]]
IMAGES = [(2, 3, 64, 96), (3, 3, 96, 64), (1, 3, 64, 64)]


def _text(module: ModuleOp, *, locations: bool = True) -> str:
    stream = StringIO()
    Printer(stream, print_debuginfo=locations).print_op(module)
    return stream.getvalue()


def _check(model: ModelProto, shapes: Sequence[Shapes], *, locations: bool = True) -> None:
    loaded, reader = load_model(model), TensorReader(None)
    symbolic = SymbolicModel(loaded, reader)
    for each in shapes:
        found, expected = symbolic.at(each), import_loaded(loaded, reader, each)
        assert found is not None, symbolic.reason
        one, two = (_text(each.module, locations=locations) for each in (found, expected))
        assert one == two
        assert found.nodes == expected.nodes
        assert (found.inputs, found.outputs) == (expected.inputs, expected.outputs)


@pytest.mark.parametrize("name", ["resnet18", "squeezenet", "unet", "mobilenet_v2"])
def test_convolution_networks(name: str) -> None:
    model = symbolised(NETWORKS[name](), {"image": {0: "batch", 2: "h", 3: "w"}})
    _check(model, [{"image": shape} for shape in IMAGES])


def test_recurrent_network() -> None:
    model = symbolised(NETWORKS["lstm2"](), {"features": {0: "steps", 1: "batch"}})
    assert not _guards(_module(model, steps=4, batch=2))
    _check(model, [{"features": (steps, batch, 128)} for steps, batch in [(4, 6), (3, 2), (1, 5)]])


def test_encoder() -> None:
    _check(encoder(), [encoder_shapes(2, 16), encoder_shapes(3, 7), encoder_shapes(1, 1)])


def _module(model: ModelProto, **hints: int) -> ModuleOp:
    return import_symbolic(load_model(model), TensorReader(None), hints).module


def _guards(module: ModuleOp) -> list[str]:
    return [str(op.guard) for op in module.body.block.ops if isinstance(op, GuardOp)]


def test_the_symbolic_module_is_valid_text() -> None:
    module = _module(encoder(), batch=2, seq=16)
    module.verify()
    text = str(module)
    assert "relay.symbol @seq {min = 0, hint = 16}" in text
    assert "#relay.shape<[batch, 4, seq, 8]>" in text
    again = Parser(make_context(), text).parse_module()
    again.verify()
    assert str(again) == text


def test_an_encoder_needs_no_guard_but_its_longest_text() -> None:
    assert _guards(_module(encoder(longest=64), batch=2, seq=16)) == ["min(seq, 64) == seq"]


def test_an_import_serves_what_its_guards_allow() -> None:
    model = load_model(encoder(longest=64))
    symbolic = SymbolicModel(model, TensorReader(None))
    assert symbolic.at(encoder_shapes(2, 16)) is not None
    assert symbolic.at(encoder_shapes(1, 65)) is None  # which the model does not accept


NODES = """
<ir_version: 8, opset_import: ["" : 18]>
agraph (float[n, 4, m] x, float[k, 4, 1] y, int64[n] i) => (float[a] z) {{ {} }}
"""


def _graph(nodes: str) -> ModelProto:
    return parser.parse_model(NODES.format(nodes))


@pytest.mark.parametrize(
    ("nodes", "guards"),
    [
        ("z = Add(x, x)", []),
        ("z = Add(x, y)", ["n == k"]),
        ("s = Shape(x) z = Reshape(x, s)", []),
        ("s = Size(x) o = Constant<value_ints=[-1]>() z = Reshape(x, o)", []),
        ("z = Concat<axis=2>(x, x)", []),
        ("z = Flatten(x)", []),
        ("z = Transpose(x)", []),
        ("z = ReduceMean(x)", []),
        ("b = Constant<value_ints=[1]>() e = Constant<value_ints=[2]>() z = Slice(x, b, e, e)", []),
        ("c = Constant<value_int=2>() z = Gather<axis=2>(x, c)", ["3 <= m"]),
        ("z = Gather(x, i)", []),
        ("s = Shape<start=2>(x) z = ConstantOfShape(s)", []),
        ("f = Constant<value_floats=[1.0, 1.0, 2.0]>() z = Resize(x, , f)", []),
        ("s = Shape(x) g = Cast<to=1>(s) r = Sqrt(g) z = Concat<axis=0>(r, r)", []),
    ],
)
def test_nodes(nodes: str, guards: list[str]) -> None:
    model = _graph(nodes)
    assert sorted(_guards(_module(model, n=6, m=8, k=6))) == sorted(guards)
    sizes = [(6, 8), (3, 5), (2, 3), (1, 4)]
    _check(model, [{"x": (n, 4, m), "y": (n, 4, 1), "i": (n,)} for n, m in sizes])


def test_values_that_are_computed_need_numbers() -> None:
    loaded = load_model(_graph("s = Shape(x) g = CumSum(x, i) z = Tile(x, i)"))
    symbolic = SymbolicModel(loaded, TensorReader(None))
    assert symbolic.at({"x": (6, 4, 8), "y": (2, 4, 1), "i": (6,)}) is None
    assert symbolic.reason is not None


def test_a_computed_size_is_data_too() -> None:
    nodes = "s = Shape <end = 1> (x) f = Cast <to = 1> (s) z = Div (x, f)"
    model = parsed("(float[n, 3] x) => (float[n, 3] z)", nodes)
    assert "relay.sizes {values = #relay.shape<[n]>" in str(_module(model, n=5))
    _check(model, [{"x": (5, 3)}, {"x": (2, 3)}, {"x": (1, 3)}], locations=False)
