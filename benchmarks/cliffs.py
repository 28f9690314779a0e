"""Cases in which a compiled model once took many times as long as elsewhere, beside their peers.

    python benchmarks/cliffs.py                         all cases, 1 and 2 threads
    python benchmarks/cliffs.py --cases float16 text --threads 1 --rounds 30

The peer is ONNX Runtime; for transforms it is the faster one of ONNX Runtime and NumPy. Calls are
interleaved in one process; a ratio is that of the medians (see `--quantile`). The column `f32` of
`float16` compares with the same op in `float32`. `sizes` and `zoo` (some minutes) run models and
the bundled networks with five sizes, and print how many compilations there were after the first
two. `neighbours` keeps every core busy, with PyTorch imported first and without it; the peer is the
same model on the idle machine.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
import onnxruntime
from measure import PAUSE_SECONDS, add_measuring_options
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from stream_models import STREAMS, Sizes

import byoc_mlir
from byoc_mlir.compiler import dynamic, pipeline
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.networks.encoder import symbolised
from byoc_mlir.testing.reference import random_inputs

Array = np.ndarray[Any, np.dtype[Any]]
Feeds = Mapping[str, Array]
Call = Callable[[], object]

_TURN_SECONDS = 0.004
"""Duration of one engine's turn."""
_ML = "ai.onnx.ml"
_RNG = np.random.default_rng(0)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add_measuring_options(parser)
    parser.add_argument("--cases", nargs="+", choices=_CASES, default=tuple(_CASES))
    options = parser.parse_args()
    print("| case | threads | ours, us | peer, us | ratio | f32 |\n| --- " + "| ---: " * 5 + "|")
    for threads in options.threads:
        for case in options.cases:
            for row in _CASES[case](threads, options):
                print(row, flush=True)


def _interleaved(calls: Mapping[str, Call], options: Namespace) -> dict[str, float]:
    """Returns the microseconds of each call, at the quantile to compare."""
    counts = {
        name: max(1, round(_TURN_SECONDS / _seconds(call, 3))) for name, call in calls.items()
    }
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(options.rounds):
        for name, call in calls.items():
            time.sleep(PAUSE_SECONDS)
            found[name].append(_seconds(call, counts[name]) * 1e6)
    return {name: float(np.quantile(times, options.quantile)) for name, times in found.items()}


def _seconds(call: Call, count: int) -> float:
    call()
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def _ours(model: ModelProto, feeds: Feeds, threads: int) -> Call:
    executable = byoc_mlir.compile(model, threads=threads)
    executable.run(feeds)
    executable.wait()
    return partial(executable.run, feeds)


def _peer(model: ModelProto, feeds: Feeds, threads: int) -> Call:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return partial(session.run, None, dict(feeds))


def _row(name: str, threads: int, found: Mapping[str, float], f32: float | None = None) -> str:
    ours, peer = found["ours"], min(value for name, value in found.items() if name[0] == "~")
    last = "" if f32 is None else f"{ours / f32:.2f}"
    return f"| {name} | {threads} | {ours:.1f} | {peer:.1f} | {ours / peer:.2f} | {last} |"


def _model(
    nodes: list[NodeProto], feeds: Feeds, output: str = "y", opset: int = 20, **constants: Array
) -> ModelProto:
    """Returns a model whose first dimension is symbolic."""
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), ["n", *array.shape[1:]]
        )
        for name, array in feeds.items()
    ]
    known = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    outputs = [helper.make_empty_tensor_value_info(output)]
    graph = helper.make_graph(nodes, "cliffs", inputs, outputs, known)
    domains = {"": opset, _ML: 3, "com.microsoft": 1}
    versions = [helper.make_opsetid(*domain) for domain in domains.items()]
    return helper.make_model(graph, opset_imports=versions, ir_version=9)


def _float16(threads: int, options: Namespace) -> Iterator[str]:
    """Yields rows for element-wise ops, pools and reductions."""
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}
    plain = "Floor Ceil Round Abs Relu Sqrt Exp Tanh Erf Gelu Asinh Add Max Softmax LogSoftmax"
    ops: dict[str, dict[str, Any]] = {name: {} for name in plain.split()}
    ops |= {"MaxPool": window, "AveragePool": window, "GlobalMaxPool": {}, "ReduceMax": {}}
    ops |= {"ReduceSum": {}, "ArgMax": {"axis": 3}}
    image = _RNG.standard_normal((1, 16, 128, 128))
    for op, attributes in ops.items():
        inputs = ["x", "x"] if op in ("Add", "Max") else ["x"]
        node = helper.make_node(op, inputs, ["y"], **attributes)
        calls: dict[str, Call] = {}
        for dtype in (np.float16, np.float32):
            feeds = {"x": image.astype(dtype)}
            prefix = "ours" if dtype == np.float16 else "f32"
            calls[prefix] = _ours(_model([node], feeds), feeds, threads)
        feeds = {"x": image.astype(np.float16)}
        try:
            calls["~onnxruntime"] = _peer(_model([node], feeds), feeds, threads)
        except Exception as error:  # it lacks some ops in f16, and raises classes of its own
            print(f"| {op}: ONNX Runtime has none: {str(error)[:60]!r} |")
            calls["~f32"] = calls["f32"]
        found = _interleaved(calls, options)
        yield _row(f"float16 {op}", threads, found, found["f32"])


def _transforms(threads: int, options: Namespace) -> Iterator[str]:
    """Yields rows for transforms of complex and real numbers, and their inverses."""
    for length, rows in ((512, 64), (1000, 16), (4096, 16), (4099, 8), (16384, 4)):
        for inverse, parts in ((0, 2), (1, 2), (0, 1)):
            feeds = {"x": _RNG.standard_normal((rows, length, parts)).astype(np.float32)}
            onesided = 2 - parts
            node = helper.make_node(
                "DFT", ["x", "", "axis"], ["y"], inverse=inverse, onesided=onesided
            )
            model = _model([node], feeds, axis=np.array(1))
            numbers = (
                feeds["x"][..., 0] + 1j * feeds["x"][..., 1] if parts == 2 else feeds["x"][..., 0]
            )
            numpy = np.fft.ifft if inverse else np.fft.fft if parts == 2 else np.fft.rfft
            calls = {
                "ours": _ours(model, feeds, threads),
                "~numpy": partial(numpy, numbers, axis=1),
                "~onnxruntime": _peer(model, feeds, threads),
            }
            kind = "inverse" if inverse else "complex" if parts == 2 else "real"
            yield _row(f"DFT {length} {kind}", threads, _interleaved(calls, options))


def _text(threads: int, options: Namespace) -> Iterator[str]:
    """Yields rows for columns of strings."""
    cities = [f"city {number}" for number in range(12)]
    onehot = helper.make_node(
        "OneHotEncoder", ["x"], ["y"], domain=_ML, cats_strings=cities, zeros=1
    )
    ordinal = helper.make_node(
        *("LabelEncoder", ["x"], ["code"]),
        domain=_ML,
        keys_strings=cities,
        values_floats=np.arange(12.0),
    )
    scaled = helper.make_node("Mul", ["code", "code"], ["y"])
    for name, nodes in (("one-hot", [onehot]), ("ordinal", [ordinal, scaled])):
        for rows in (1, 100, 1000):
            feeds = {"x": _RNG.choice(cities, (rows, 3)).astype(object)}
            model = _model(nodes, feeds)
            yield _compared(f"{name}, {rows} rows", model, feeds, threads, options)


def _tables(threads: int, options: Namespace) -> Iterator[str]:
    """Yields rows for classical models on rows of numbers."""
    classifier, maps = _classifier()
    imputer = helper.make_node(
        *("Imputer", ["x"], ["y"]),
        domain=_ML,
        imputed_value_floats=np.ones(8),
        replaced_value_float=np.nan,
    )
    cases = {"linear": [classifier], "linear, maps": [classifier, maps], "imputer": [imputer]}
    for name, nodes in cases.items():
        for rows in (1, 100, 1000):
            feeds = {"x": _RNG.standard_normal((rows, 8)).astype(np.float32)}
            model = _model(nodes, feeds, "p" if name == "linear" else "y")
            if name == "linear, maps":
                _declare_maps(model)
            yield _compared(f"{name}, {rows} rows", model, feeds, threads, options)


def _classifier() -> list[NodeProto]:
    """Returns a linear classifier, and its scores as maps."""
    classifier = helper.make_node(
        *("LinearClassifier", ["x"], ["label", "p"]),
        domain=_ML,
        coefficients=_RNG.standard_normal(16),
        intercepts=[0.1, -0.1],
        classlabels_ints=[0, 1],
        post_transform="SOFTMAX",
    )
    maps = helper.make_node("ZipMap", ["p"], ["y"], domain=_ML, classlabels_int64s=[0, 1])
    return [classifier, maps]


def _networks(threads: int, options: Namespace) -> Iterator[str]:
    """Yields rows for small dense networks."""
    for name in ("mobilenet_v2", "unet", "vit_tiny", "bert6", "lstm2"):
        model = NETWORKS[name]()
        yield _compared(name, model, random_inputs(model), threads, options)


def _products(threads: int, options: Namespace) -> Iterator[str]:
    """Yields rows for 4-bit products of language models, of one token and of a prompt."""
    size, packed = 2048, _RNG.integers(0, 256, (2048, 64, 16), np.uint8)
    scales = _RNG.random((2048, 64), np.float32) / size
    sizes: dict[str, Any] = {"K": size, "N": size, "bits": 4, "block_size": 32}
    for level in (0, 4):
        attributes: dict[str, Any] = {**sizes, "domain": "com.microsoft", "accuracy_level": level}
        node = helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], **attributes)
        for rows in (1, 64):
            feeds = {"x": _RNG.standard_normal((1, rows, size), np.float32)}
            model = _model([node], feeds, w=packed, s=scales)
            yield _compared(f"4 bits, level {level}, {rows} rows", model, feeds, threads, options)


def _declare_maps(model: ModelProto) -> None:
    """Declares the output as a sequence of maps, as ONNX demands."""
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    kind = helper.make_map_type_proto(TensorProto.INT64, tensor)
    model.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(kind))


def _compared(name: str, model: ModelProto, feeds: Feeds, threads: int, options: Namespace) -> str:
    calls = {"ours": _ours(model, feeds, threads), "~peer": _peer(model, feeds, threads)}
    return _row(name, threads, _interleaved(calls, options))


def _sizes(threads: int, options: Namespace) -> Iterator[str]:
    """Yields the number of compilations after two sizes, of pools, resizes and maps."""
    del options
    text = f"""<ir_version: 8, opset_import: ["": 17]>
    resize (float[1, 8, h, w] x) => (float[1, 8, H, W] y) {{
        {_RESIZE}
    }}"""
    sides = [{"h": 20 + side, "w": 30} for side in (2, 3, 5, 7, 4)]
    yield _later_row("Resize, rounded", onnx.parser.parse_model(text), sides, threads)
    batches = [{"n": batch} for batch in (2, 3, 5, 7, 4)]
    for name, pads in (("AveragePool", [0] * 4), ("AveragePool, padded", [1] * 4)):
        node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[3, 3], pads=pads)
        model = _model([node], {"x": np.zeros((1, 8, 7, 7), np.float32)})
        yield _later_row(name, model, batches, threads)
    model = _model(_classifier(), {"x": np.zeros((1, 8), np.float32)})
    _declare_maps(model)
    yield _later_row("linear, maps", model, batches, threads)


_RESIZE = """
s = Shape (x)
f = Cast <to = 1> (s)
factors = Constant <value_floats = [1.0, 1.0, 0.7, 0.7]> ()
scaled = Mul (f, factors)
floored = Floor (scaled)
sizes = Cast <to = 7> (floored)
y = Resize <mode = "linear"> (x, , , sizes)
"""


def _zoo(threads: int, _: Namespace) -> Iterator[str]:
    """Yields the number of compilations after two sizes, of bundled networks and of streams."""
    for name, build in NETWORKS.items():
        yield _later_row(name, _opened(build()), _IMAGES, threads)
    for name in ("encoder", "decoder", "recogniser", "synthesiser"):
        stream = STREAMS[name]
        sizes = stream.sizes(random.Random(1), len(_IMAGES))
        yield _later_row(f"stream {name}", stream.build(), sizes, threads)


_IMAGES: Sequence[Sizes] = [
    {"batch": batch, "height": side, "width": side}
    for batch, side in ((1, 224), (2, 192), (3, 256), (1, 160), (4, 288))
]


def _opened(model: ModelProto) -> ModelProto:
    """Returns a network with a symbolic batch, and symbolic images if all sizes are averaged."""
    names = [one.name for one in model.graph.input]
    images = {2: "height", 3: "width"}
    is_averaged = any(node.op_type == "GlobalAveragePool" for node in model.graph.node)
    batch = 1 if "features" in names else 0
    axes = {batch: "batch", **(images if is_averaged or model.graph.name == "unet" else {})}
    return symbolised(model, {name: axes for name in names})


def _later_row(name: str, model: ModelProto, sizes: Sequence[Sizes], threads: int) -> str:
    try:
        found = str(_later(model, sizes, threads))
    except InvalidModelError:
        found = "its sizes are fixed"
    return f"| {name}: compilations after two sizes | {threads} | {found} | | | |"


def _later(model: ModelProto, sizes: Sequence[Sizes], threads: int) -> int:
    """Returns the number of compilations in calls with further sizes than the first two."""
    with (
        patch.object(dynamic, "build_dynamic", wraps=dynamic.build_dynamic) as polymorphic,
        patch.object(pipeline, "build_program", wraps=pipeline.build_program) as specialised,
        byoc_mlir.compile(model, threads=threads, cache=False, interpreter=False) as executable,
    ):
        for number, dims in enumerate(sizes):
            if number == 2:
                polymorphic.reset_mock()
                specialised.reset_mock()
            executable.run(random_inputs(model, dims=dims))
        return polymorphic.call_count + specialised.call_count


_NEIGHBOUR = """
import sys, time
if sys.argv[1] == "torch":
    import torch
import numpy as np, onnx, byoc_mlir
x = np.ones((64, 192), np.float32)
model = onnx.load(sys.argv[3])
with byoc_mlir.compile(model, threads=int(sys.argv[2])) as executable:
    executable.run({"x": x})
    executable.wait()
    times, end = [], time.perf_counter() + 3
    while time.perf_counter() < end:
        start = time.perf_counter()
        executable.run({"x": x})
        times.append(time.perf_counter() - start)
print(1e6 * np.mean(times[len(times) // 3 :]))
"""
"""Prints the mean microseconds of a call, in a process of its own."""


def _neighbours(threads: int, options: Namespace) -> Iterator[str]:
    """Yields rows for calls beside a busy process on each core; the peer is the idle machine."""
    del options
    weights: dict[str, Any] = {f"w{n}": _RNG.random((192, 192), np.float32) for n in range(12)}
    names = ["x", *(f"h{number}" for number in range(11)), "y"]
    steps = zip(names, weights, names[1:], strict=False)
    nodes = [helper.make_node("MatMul", [x, w], [y]) for x, w, y in steps]
    model = _model(nodes, {"x": np.ones((64, 192), np.float32)}, **weights)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.onnx"
        onnx.save(model, path)
        for first in ("torch", "alone"):
            command = [sys.executable, "-c", _NEIGHBOUR, first, str(threads), path]
            idle = float(subprocess.check_output(command))
            endless = [sys.executable, "-c", "while True: pass"]
            busy = [subprocess.Popen(endless) for _ in range(os.cpu_count() or 1)]
            try:
                ours = float(subprocess.check_output(command))
            finally:
                for one in busy:
                    one.kill()
                    one.wait()
            yield _row(f"neighbours, {first}", threads, {"ours": ours, "~idle": idle})


_CASES: Mapping[str, Callable[[int, Namespace], Iterator[str]]] = {
    "float16": _float16,
    "transforms": _transforms,
    "text": _text,
    "tables": _tables,
    "networks": _networks,
    "products": _products,
    "sizes": _sizes,
    "neighbours": _neighbours,
    "zoo": _zoo,
}


if __name__ == "__main__":
    main()
