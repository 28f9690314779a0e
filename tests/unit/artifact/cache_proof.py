"""Models with every kind of output, run cold and warm, and one cache under changing files.

`python tests/unit/artifact/cache_proof.py` does both at length.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count as counted
from pathlib import Path
from typing import Any

import numpy as np
from byoc_mlir_fuzz.cases import Plan
from onnx import ModelProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper, parser

import byoc_mlir
from byoc_mlir.errors import ByocError, InvalidInputError, InvalidModelError

node = helper.make_node
TEXT = helper.make_tensor_type_proto(TensorProto.STRING, None)
RANDOM = {"Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike"} | {
    "RandomUniform",
    "RandomUniformLike",
}
Wrapped = tuple[list[NodeProto], TypeProto]


def _tensor(value: str, type_: TypeProto) -> Wrapped:
    return [node("Identity", [value], ["out"])], type_


def _scalar(value: str, type_: TypeProto) -> Wrapped:
    nodes = [
        node("Cast", [value], ["f"], to=TensorProto.FLOAT),
        node("ReduceSum", ["f"], ["out"], keepdims=0),
    ]
    return nodes, helper.make_tensor_type_proto(TensorProto.FLOAT, ())


def _strings(value: str, type_: TypeProto) -> Wrapped:
    return [node("Cast", [value], ["out"], to=TensorProto.STRING)], TEXT


def _sequence(value: str, type_: TypeProto) -> Wrapped:
    nodes = [node("SequenceConstruct", [value, value], ["out"])]
    return nodes, helper.make_sequence_type_proto(type_)


def _sequence_of_strings(value: str, type_: TypeProto) -> Wrapped:
    nodes = [
        node("Cast", [value], ["s"], to=TensorProto.STRING),
        node("SequenceConstruct", ["s"], ["out"]),
    ]
    return nodes, helper.make_sequence_type_proto(TEXT)


def _empty_sequence(value: str, type_: TypeProto) -> Wrapped:
    dtype = type_.tensor_type.elem_type
    nodes = [node("SequenceEmpty", [], ["out"], dtype=dtype)]
    return nodes, helper.make_sequence_type_proto(helper.make_tensor_type_proto(dtype, None))


def _optional(value: str, type_: TypeProto) -> Wrapped:
    return [node("Optional", [value], ["out"])], helper.make_optional_type_proto(type_)


def _absent(value: str, type_: TypeProto) -> Wrapped:
    return [node("Optional", [], ["out"], type=type_)], helper.make_optional_type_proto(type_)


def _optional_sequence(value: str, type_: TypeProto) -> Wrapped:
    sequence = helper.make_sequence_type_proto(type_)
    nodes = [node("SequenceConstruct", [value], ["s"]), node("Optional", ["s"], ["out"])]
    return nodes, helper.make_optional_type_proto(sequence)


def _maps(value: str, type_: TypeProto) -> Wrapped:
    column = numpy_helper.from_array(np.array([-1, 1], np.int64))
    nodes = [
        node("Cast", [value], ["f"], to=TensorProto.FLOAT),
        node("Constant", [], ["column"], value=column),
        node("Reshape", ["f", "column"], ["rows"]),
        node("ZipMap", ["rows"], ["out"], domain="ai.onnx.ml", classlabels_strings=["a"]),
    ]
    number = helper.make_tensor_type_proto(TensorProto.FLOAT, ())
    map_ = helper.make_map_type_proto(TensorProto.STRING, number)
    return nodes, helper.make_sequence_type_proto(map_)


def _places(value: str, type_: TypeProto) -> Wrapped:
    """Returns nodes whose result's shape depends on values, so that the model is split into
    segments.
    """
    nodes = [
        node("Cast", [value], ["f"], to=TensorProto.FLOAT),
        node("Relu", ["f"], ["r"]),
        node("NonZero", ["r"], ["places"]),
        node("Neg", ["places"], ["out"]),
    ]
    return nodes, helper.make_tensor_type_proto(TensorProto.INT64, None)


def _loop(value: str, type_: TypeProto) -> Wrapped:
    """Returns nodes with a sequence that a loop extends."""
    body = helper.make_graph(
        [node("Identity", ["go"], ["on"]), node("SequenceInsert", ["s", value], ["t"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_value_info("s", helper.make_sequence_type_proto(type_)),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_value_info("t", helper.make_sequence_type_proto(type_)),
        ],
    )
    nodes = [
        node("Constant", [], ["three"], value=numpy_helper.from_array(np.array(3, np.int64))),
        node("SequenceEmpty", [], ["none"], dtype=type_.tensor_type.elem_type),
        node("Loop", ["three", "", "none"], ["out"], body=body),
    ]
    return nodes, helper.make_sequence_type_proto(type_)


KINDS: Mapping[str, Callable[[str, TypeProto], Wrapped]] = {
    one.__name__.strip("_"): one
    for one in (
        *(_tensor, _scalar, _strings, _sequence, _sequence_of_strings, _empty_sequence, _optional),
        *(_absent, _optional_sequence, _maps, _places, _loop),
    )
}


def with_output(model: ModelProto, kind: str) -> ModelProto:
    """Adds an output of a kind, computed from the model's first one."""
    first = model.graph.output[0]
    type_ = helper.make_tensor_type_proto(first.type.tensor_type.elem_type, None)
    nodes, output = KINDS[kind](first.name, type_)
    for one in nodes:
        one.input[:] = [name if name in ("", first.name) else f"added_{name}" for name in one.input]
        one.output[:] = [f"added_{name}" for name in one.output]
    model.graph.node.extend(nodes)
    model.graph.output.append(helper.make_value_info("added_out", output))
    if all(entry.domain != "ai.onnx.ml" for entry in model.opset_import):
        model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    return model


UNARY = (
    *("Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Identity", "Neg", "Relu", "Round", "Sigmoid"),
    *("Sign", "Sin", "Softplus", "Softsign", "Tanh"),
)
BINARY = ("Add", "Sub", "Mul", "Max", "Min")


def small(number: int) -> tuple[ModelProto, Mapping[str, Any]]:
    """Returns a chain of random ops, of fixed or symbolic sizes, and its input."""
    rng, generator = random.Random(number), np.random.default_rng(number)
    rows, columns = rng.randint(1, 4), rng.randint(1, 5)
    nodes, tensors, last = list[NodeProto](), list[TensorProto](), "x"
    for step in range(rng.randint(1, 4)):
        if rng.random() < 0.5:
            nodes.append(node(rng.choice(UNARY), [last], [f"v{step}"]))
        else:
            values = generator.standard_normal(columns, np.float32)
            tensors.append(numpy_helper.from_array(values, f"w{step}"))
            nodes.append(node(rng.choice(BINARY), [last, f"w{step}"], [f"v{step}"]))
        last = f"v{step}"
    shape = ["n" if rng.random() < 0.3 else rows, columns]
    infos = [helper.make_tensor_value_info(one, TensorProto.FLOAT, shape) for one in ("x", last)]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    return model, {"x": generator.standard_normal((rows, columns), np.float32)}


def generated(number: int) -> tuple[str, bytes, tuple[Mapping[str, Any], ...]]:
    """Returns a kind of output, a random model with such an output, and inputs for it."""
    kind = list(KINDS)[number % len(KINDS)]
    if number % 13:
        model, feed = small(number)
        return kind, with_output(model, kind).SerializeToString(), (feed,)
    plan = Plan(seed=36, symbolic=number % 2 == 1)
    cases = (plan.case(trial) for trial in counted(1000 * number))
    parsed = ((case, ModelProto.FromString(case.model)) for case in cases)
    case, model = next(
        (case, model)
        for case, model in parsed
        if RANDOM.isdisjoint(one.op_type for one in model.graph.node)
    )
    return kind, with_output(model, kind).SerializeToString(), case.feeds


def answers(model: str | Path | bytes, feeds: tuple[Mapping[str, Any], ...], cache: Path) -> Any:
    """Returns the names, types, outputs and report of a model, or its errors."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            with byoc_mlir.compile(model, threads=1, cache=cache, fallback="allow") as executable:
                for (
                    feed
                ) in feeds:  # the interpreter tier, which runs until then, may round differently
                    executable.run(feed)
                executable.wait()
                found = [executable.run(feed) for feed in feeds]
                names = [str(one) for one in (*executable.inputs, *executable.outputs)]
                rows = str(executable.report().rows)
                return names, found, rows, sorted({str(one.message) for one in said})
        except (InvalidInputError, InvalidModelError) as error:
            # a process that imported the model for other sizes knows that these sizes are wrong
            return "invalid", str(error).partition("; expected")[0]
        except ByocError as error:
            return type(error).__name__, str(error)


def same(one: Any, other: Any) -> bool:
    """True if two results agree in structure, types and every bit."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return False
        return (
            one.tolist() == other.tolist()
            if one.dtype == object
            else (one.tobytes() == other.tobytes())
        )
    return one == other or one != one


def difference(one: str, other: str) -> str:
    """Returns the surroundings of the first difference of two texts."""
    ends = zip(one, other, strict=False)
    first = next((place for place, (a, b) in enumerate(ends) if a != b), 0)
    start = max(0, first - 100)
    return f"{one[start:][:300]} | {other[start:][:300]}"


def compare(numbers: range, cache: Path, folder: Path) -> tuple[Counter[str], list[str]]:
    """Returns the number of compared models of each kind, and the ones that differ cold and
    warm."""
    counts, differ = Counter[str](), list[str]()
    for number in numbers:
        kind, content, feeds = generated(number)
        model: Path | bytes = content
        if number % 3:
            model = folder / f"{number}.onnx"
            model.write_bytes(content)
        cold = answers(model, feeds, cache)
        warm = answers(model, feeds, cache)
        if not same(cold, warm):
            differ.append(f"{number} ({kind}): {difference(str(cold), str(warm))}")
        counts[kind if len(cold) == 4 else f"refused {kind}"] += 1
    return counts, differ


WIDTH = 2048
"""Number of elements of a weight: large enough to be stored beside its program."""


def multiplied(factor: int, rows: int | str, location: str = "") -> bytes:
    """Returns a model that multiplies by a factor, which is in its weights."""
    text = f'<ir_version: 10, opset_import: ["": 20]> g (float[{rows}, {WIDTH}] x) => ' + (
        f"(float[{rows}, {WIDTH}] y) {{ t = Mul(x, w) y = Relu(t) }}"
    )
    model = parser.parse_model(text)
    weights = np.full(WIDTH, factor, np.float32)
    tensor = numpy_helper.from_array(weights, "w")
    if location:
        tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[WIDTH])
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
    model.graph.initializer.append(tensor)
    return model.SerializeToString()


def weights(factor: int) -> bytes:
    """Returns the external data of such a model."""
    return np.full(WIDTH, factor, np.float32).tobytes()


FACTORS = range(2, 5)
ROWS: tuple[int | str, ...] = (3, "n")


def write_models(folder: Path) -> None:
    """Writes models that are never changed, each in its own folder."""
    for factor in FACTORS:
        for rows in ROWS:
            own = folder / f"{factor}-{rows}"
            own.mkdir()
            (own / "whole.onnx").write_bytes(multiplied(factor, rows))
            (own / "parts.onnx").write_bytes(multiplied(factor, rows, "w.bin"))
            (own / "w.bin").write_bytes(weights(factor))
    (folder / "moving").mkdir()
    for rows in ROWS:
        for name, content in _contents(rows, 2).items():
            (folder / "moving" / name).write_bytes(content)


def _contents(rows: int | str, factor: int) -> dict[str, bytes]:
    return {
        f"whole-{rows}.onnx": multiplied(factor, rows),
        f"parts-{rows}.onnx": multiplied(factor, rows, f"w-{rows}.bin"),
        f"w-{rows}.bin": weights(factor),
    }


def change_files(folder: Path, seconds: float, rng: random.Random) -> None:
    """Changes files for some seconds: replaces most, and writes some in place."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        contents = _contents(rng.choice(ROWS), rng.choice(FACTORS))
        name = rng.choice(list(contents))
        if name.endswith(".onnx") and rng.random() < 0.3:
            (folder / "moving" / name).write_bytes(contents[name])
        else:
            fresh = folder / "moving" / f"{name}.{os.getpid()}.{threading.get_ident()}"
            fresh.write_bytes(contents[name])
            fresh.replace(folder / "moving" / name)
        time.sleep(rng.random() * 0.01)


def factor_of(path: Path, cache: Path) -> int | None:
    """Returns the factor by which a model multiplies; `None` if it is refused while it changes.

    Raises:
        AssertionError: it multiplies by several factors.
    """
    x = np.ones((3, WIDTH), np.float32)
    try:
        with byoc_mlir.compile(path, (), threads=1, cache=cache) as executable:
            found = np.unique(executable.run({"x": x})["y"])
    except InvalidModelError:
        return None
    assert len(found) == 1, f"{path}: a mixture of models, {found}"
    return int(found[0])


def read_files(folder: Path, cache: Path, seconds: float, seed: int) -> tuple[int, list[str]]:
    """Returns the number of models that ran while files changed, and wrong factors."""
    rng, wrong, end = random.Random(seed), list[str](), time.monotonic() + seconds
    answered = 0
    while time.monotonic() < end:
        if rng.random() < 0.6:
            path = folder / "moving" / f"{rng.choice(('whole', 'parts'))}-{rng.choice(ROWS)}.onnx"
            accepted: set[int | None] = {None, *FACTORS}
        else:
            factor, rows = rng.choice(FACTORS), rng.choice(ROWS)
            path = folder / f"{factor}-{rows}" / f"{rng.choice(('whole', 'parts'))}.onnx"
            accepted = {factor}
        found = factor_of(path, cache)
        answered += found is not None
        if found not in accepted:
            wrong.append(f"{path.relative_to(folder)}: {found}")
    return answered, wrong


def check_all(folder: Path, cache: Path) -> list[str]:
    """Returns the wrong factors among the files that are never changed."""
    found = {
        path: factor_of(path, cache)
        for factor in FACTORS
        for rows in ROWS
        for path in sorted((folder / f"{factor}-{rows}").glob("*.onnx"))
    }
    return [
        f"{path.relative_to(folder)}: {factor}"
        for path, factor in found.items()
        if str(factor) != path.parent.name.partition("-")[0]
    ]


def share_cache(
    folder: Path, cache: Path, processes: int, threads: int, seconds: float
) -> tuple[int, list[str]]:
    """Returns the number of models that ran in processes with several threads each, which share a
    cache while files change, and the wrong factors.
    """
    write_models(folder)
    arguments = [str(folder), "--cache", str(cache), "--threads", str(threads)]
    command = [sys.executable, __file__, "--reader", *arguments, "--seconds", str(seconds)]
    readers = [
        subprocess.Popen([*command, "--seed", str(seed)], stdout=subprocess.PIPE, text=True)
        for seed in range(processes)
    ]
    writer = threading.Thread(target=change_files, args=(folder, seconds + 3, random.Random(0)))
    writer.start()
    answered, wrong = 0, list[str]()
    for reader in readers:
        output, _ = reader.communicate()
        *lines, count = output.splitlines() or ["0"]
        answered += int(count)
        wrong += lines
        wrong += ["a reader failed"] if reader.returncode else []
    writer.join()
    return answered, [*wrong, *check_all(folder, cache)]


def _read_in_threads(arguments: argparse.Namespace) -> int:
    counts, errors = list[int](), list[BaseException]()

    def read(seed: int) -> None:
        try:
            found = read_files(arguments.reader, arguments.cache, arguments.seconds, seed)
            counts.append(found[0])
            _say(*found[1])
        except BaseException as error:
            errors.append(error)
            _say(f"{type(error).__name__}: {error}")

    seeds = [arguments.seed * 100 + number for number in range(arguments.threads)]
    threads = [threading.Thread(target=read, args=(seed,)) for seed in seeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _say(str(sum(counts)))
    return len(errors)


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--models", type=int, default=500)
    options.add_argument("--processes", type=int, default=10)
    options.add_argument("--threads", type=int, default=5)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--reader", type=Path)
    options.add_argument("--cache", type=Path)
    arguments = options.parse_args()
    if arguments.reader is not None:
        return _read_in_threads(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "models").mkdir()
        counts, differ = compare(range(arguments.models), folder / "cache", folder / "models")
        _say(f"{counts.total()} models, {len(differ)} differ: {dict(counts)}", *differ)
        (folder / "shared").mkdir()
        place = folder / "shared", folder / "shared-cache"
        answered, wrong = share_cache(
            *place, arguments.processes, arguments.threads, arguments.seconds
        )
        _say(f"{answered} answers, {len(wrong)} of other models", *wrong)
    return len(differ) + len(wrong)


if __name__ == "__main__":
    sys.exit(main())
