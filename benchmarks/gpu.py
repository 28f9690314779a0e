"""Checks and times of a GPU with the targets cudnn, cublaslt and cuda, in at most eight minutes.

    python benchmarks/gpu.py                     all parts, each in a process with a time limit
    python benchmarks/gpu.py networks --only mlp3 bert_base
    python benchmarks/gpu.py --json result.json  also writes what each part has found

Parts are the conformance of each backend, networks against the host, times beside PyTorch, the time
to the first answer, and compute-sanitizer. Inputs and outputs of times stay on the GPU, every call
waits for its result, and the median counts. Exits with 0 if all is within its bounds, 1 if
something is not, 2 if there is no GPU.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import geometric_mean

import numpy as np
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.backends import get_backend
from byoc_mlir.errors import BackendError, ByocError
from byoc_mlir.nvidia.gpu import find_gpu
from byoc_mlir.testing.conformance import run_conformance
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import largest_relative_error, random_inputs

_ALL = ("cudnn", "cublaslt", "cuda")
_GELUS = ("dense_gelu", "dense_bias_gelu", "matmul_gelu", "matmul_bias_gelu")
_UNTESTED = ("power", *(f"cublaslt.{name}" for name in _GELUS))
"""Claims for which the kit makes no graphs; tests of their own cover them."""
_MOST_ERROR = 1e-5
_FIRST_ANSWER_SECONDS = 5.0
_PRECISIONS = ("f32", "tf32", "f16")
_RATIOS = {1: 0.65, 8: 0.85, 64: 1.0}
"""Greatest geometric mean of our time beside the best of PyTorch's, by batch."""

_BERT_BASE: Callable[..., ModelProto] = partial(
    NETWORKS["bert6"], tokens=128, width=768, heads=12, layers=12
)
_MODELS: Mapping[str, Callable[..., ModelProto]] = {**NETWORKS, "bert_base": _BERT_BASE}


@dataclass(frozen=True)
class Result:
    """One finding of a part."""

    what: str
    is_good: bool
    found: str


Part = Callable[[Sequence[str]], list[Result]]


def targets() -> tuple[str, ...]:
    """Returns the targets that this machine and this installation have."""
    found: list[str] = []
    for name in _ALL:
        try:
            if get_backend(name).unavailable() is None:
                found.append(name)
        except BackendError:
            continue  # it is not installed
    return tuple(found)


def conformance(names: Sequence[str]) -> list[Result]:
    """Tests what backends claim, by the kit."""
    return [_conformance_of(name) for name in names]


def _conformance_of(name: str) -> Result:
    if name not in targets():
        return Result(f"conformance of {name}", False, "not usable here")
    report = run_conformance(name, networks={}, known_untested=_UNTESTED)
    return Result(f"conformance of {name}", report.passed, str(report).splitlines()[-1])


def networks(names: Sequence[str]) -> list[Result]:
    """Compares networks on the GPU with the host."""
    return [_network(name) for name in names or _MODELS]


def _network(name: str) -> Result:
    model = _MODELS[name]()
    inputs = random_inputs(model)
    try:
        with byoc_mlir.compile(model, targets(), cache=False, fallback="allow") as executable:
            found = [executable.run(inputs) for _ in range(3)][-1]  # the last one is a replay
            counts = executable.report().counts()
        with byoc_mlir.compile(model, (), cache=False) as host:
            wanted = host.run(inputs)
    except ByocError as error:
        return Result(name, False, str(error))
    floats = [key for key, value in wanted.items() if value.dtype.kind == "f"]
    error = max((largest_relative_error(found[key], wanted[key]) for key in floats), default=0.0)
    return Result(name, error <= _MOST_ERROR, f"error {error:.1e}, {counts}")


def times(names: Sequence[str]) -> list[Result]:
    """Times models beside PyTorch: eager, in a CUDA graph, and compiled."""
    return [result for name in names or ("resnet50", "bert_base") for result in _times_of(name)]


def _times_of(name: str) -> list[Result]:
    results: list[Result] = []
    for batch, most in _RATIOS.items():
        ratios: list[float] = []
        for precision in _PRECISIONS:
            what = f"{name} batch {batch} {precision}"
            try:
                ours, theirs = (
                    _our_time(name, batch, precision),
                    _torch_times(name, batch, precision),
                )
            except Exception as error:  # a case that fails leaves the others
                results.append(Result(what, False, f"{type(error).__name__}: {error}"))
                continue
            ratios.append(ours / min(theirs.values()))
            said = ", ".join(f"{engine} {ms:.3f} ms" for engine, ms in theirs.items())
            results.append(Result(what, True, f"byoc {ours:.3f} ms, {said}: {ratios[-1]:.2f}"))
            print(results[-1].what, results[-1].found, flush=True)
        mean = geometric_mean(ratios) if ratios else math.inf
        results.append(Result(f"{name} batch {batch}", mean <= most, f"{mean:.2f} of {most}"))
    return results


def _our_time(name: str, batch: int, precision: str) -> float:
    model = _MODELS[name](batch=batch)
    values = (*model.graph.input, *model.graph.output)
    resident = {value.name: "cuda" for value in values}
    with byoc_mlir.compile(
        model, targets(), cache=False, precision=precision, resident=resident, fallback="allow"
    ) as executable:
        inputs = executable.to_device(random_inputs(model))
        out = executable.run(inputs)
        return _median(lambda: executable.run(inputs, out=out))


def _torch_times(name: str, batch: int, precision: str) -> dict[str, float]:
    import torch
    from gpu_modules import module_of

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    module, inputs = module_of(name, batch, precision)
    found: dict[str, float] = {}
    with torch.inference_mode():
        found["eager"] = _median(lambda: _synchronised(lambda: module(*inputs)))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            module(*inputs)
        found["graph"] = _median(lambda: _synchronised(graph.replay))
        if batch < max(_RATIOS):  # a large batch gains little and takes long to compile
            compiled = torch.compile(module, mode="reduce-overhead")
            found["compiled"] = _median(lambda: _synchronised(lambda: compiled(*inputs)))
    return found


def _synchronised(run: Callable[[], object]) -> None:
    import torch

    run()
    torch.cuda.synchronize()


def _median(run: Callable[[], object], runs: int = 50, seconds: float = 2.0) -> float:
    """Returns the median time of calls in milliseconds, after five calls that do not count."""
    for _ in range(5):
        run()
    spent: list[float] = []
    end = time.perf_counter() + seconds
    while len(spent) < runs and (not spent or time.perf_counter() < end):
        begin = time.perf_counter()
        run()
        spent.append(time.perf_counter() - begin)
    return float(np.median(spent)) * 1e3


def first_answer(names: Sequence[str]) -> list[Result]:
    """Times a process from its compilation to the first answer."""
    results: list[Result] = []
    for name in names or ("resnet50", "bert_base"):
        model = _MODELS[name]()
        inputs = random_inputs(model)
        begin = time.perf_counter()
        with byoc_mlir.compile(model, targets(), cache=False, fallback="allow") as executable:
            executable.run(inputs)
            seconds = time.perf_counter() - begin
        is_good = seconds <= _FIRST_ANSWER_SECONDS
        results.append(Result(f"first answer of {name}", is_good, f"{seconds:.2f} s"))
    return results


def sanitizer(names: Sequence[str]) -> list[Result]:
    """Runs networks under compute-sanitizer, where it is installed."""
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        return [Result("compute-sanitizer", True, "not installed, not run")]
    script = [sys.executable, __file__, "networks", "--only", *(names or ("mlp3", "vit_tiny"))]
    done = subprocess.run(
        [tool, "--error-exitcode", "9", *script], capture_output=True, text=True, check=False
    )
    last = (done.stdout + done.stderr).strip().splitlines()[-1:]
    return [Result("compute-sanitizer", done.returncode == 0, " ".join(last))]


@dataclass(frozen=True)
class Timed:
    """A part with its limit in seconds."""

    part: Part
    seconds: int


PARTS: Mapping[str, Timed] = {
    "conformance": Timed(conformance, 130),
    "networks": Timed(networks, 110),
    "times": Timed(times, 160),
    "first_answer": Timed(first_answer, 40),
    "sanitizer": Timed(sanitizer, 40),
}
"""Parts in the order in which they run; their limits make eight minutes."""


def main(given: Sequence[str] | None = None) -> int:
    """Runs a part in this process, or all of them in processes of their own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", nargs="?", choices=PARTS)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args(given)
    try:
        gpu = find_gpu()
    except BackendError as error:
        print(f"nothing was measured: {error}", file=sys.stderr)
        return 2
    if arguments.part is None:
        print(f"{gpu.identity}; targets {', '.join(targets())}")
        return _run_all(arguments.json)
    names = arguments.only or (_ALL if arguments.part == "conformance" else ())
    results = PARTS[arguments.part].part(names)
    _print(results)
    if arguments.json:
        arguments.json.write_text(json.dumps(list(map(asdict, results)), indent=1))
    return 0 if all(result.is_good for result in results) else 1


def _run_all(document: Path | None) -> int:
    status, found = 0, dict[str, object]()
    for name, timed in PARTS.items():
        made = Path(f"{document}.{name}") if document else None
        command = [sys.executable, __file__, name, *(("--json", str(made)) if made else ())]
        try:
            done = subprocess.run(command, timeout=timed.seconds, check=False).returncode
        except subprocess.TimeoutExpired:
            print(f"{name}: not done in {timed.seconds} s", flush=True)
            done = 1
        status = max(status, done)
        if made and made.exists():
            found[name] = json.loads(made.read_text())
            made.unlink()
    if document:
        document.write_text(json.dumps(found, indent=1))
    return status


def _print(results: Sequence[Result]) -> None:
    for result in results:
        print(f"{'ok ' if result.is_good else 'BAD'} {result.what}: {result.found}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
