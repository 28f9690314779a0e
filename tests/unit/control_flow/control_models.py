"""Models with control flow, and ONNX Runtime's outputs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnxruntime

import byoc_mlir
from byoc_mlir.backends import Backend, Blob, RegionModule
from byoc_mlir.backends.region import elementwise_f32, kind_of, nodes_of

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Feeds: TypeAlias = Mapping[str, Array]

HOST_AND_DNNL = ((), ("dnnl",))


def f32(*shape: int, seed: int = 0) -> Array:
    """Returns seeded random values."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def expected(model: onnx.ModelProto, feeds: Feeds) -> list[Array]:
    """Returns ONNX Runtime's outputs."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return [np.asarray(value) for value in session.run(None, dict(feeds))]


def check(
    model: onnx.ModelProto,
    feeds: Sequence[Feeds],
    targets: Sequence[Sequence[str]] = HOST_AND_DNNL,
    atol: float = 1e-5,
) -> None:
    """Compares runs of one compilation with ONNX Runtime; no op may be interpreted."""
    for target in targets:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            executable = byoc_mlir.compile(model, targets=tuple(target), prune="off")
        with executable:
            for given in feeds:
                found = executable.run(given)
                wanted = expected(model, given)
                for (name, got), want in zip(found.items(), wanted, strict=True):
                    assert got.shape == want.shape, name
                    np.testing.assert_allclose(got, want, rtol=1e-5, atol=atol, err_msg=name)


CALLS: list[str] = []
"""Regions that `Counted` ran, in order."""


class CountedModule(RegionModule):
    """Module of regions of one op, `nn.relu` or `sin`; a negative sine is refused."""

    def __init__(self, kinds: Mapping[str, str]):
        self._kinds = dict(kinds)

    @classmethod
    def load(cls, data: bytes) -> CountedModule:
        return cls(dict(line.split("=") for line in data.decode().split()))

    def save(self) -> bytes:
        return "\n".join(f"{symbol}={kind}" for symbol, kind in self._kinds.items()).encode()

    def get_function(self, symbol: str) -> Any:
        kind = self._kinds[symbol]

        def run(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
            CALLS.append(kind)
            if kind == "nn.relu":
                np.maximum(inputs[0], 0, out=outputs[0])
                return
            np.sin(inputs[0], out=outputs[0])
            if outputs[0].min() < 0:
                raise ValueError("a negative sine")

        return run


class Counted(Backend):
    """Backend that records each call of a region."""

    name = "counted"

    def op_rules(self) -> dict[str, Any]:
        return dict.fromkeys(("nn.relu", "sin"), elementwise_f32)

    def codegen(self, region: Any, context: Any) -> Blob:
        (op,) = nodes_of(region)
        return Blob.of(CountedModule({region.sym_name.data: kind_of(op)}))
