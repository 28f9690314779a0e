"""Modules of PyTorch: `torch.compile` with this backend and with its own, and ONNX Runtime.

    python benchmarks/pytorch.py                times, on one thread
    python benchmarks/pytorch.py --threads 2    the same on two, which needs an idle machine
    python benchmarks/pytorch.py --memory       what compiling a module with large parameters takes
    python benchmarks/pytorch.py --layers       dense layers with and without `copy_parameters`

Engines run interleaved in one process, by the processor's time, on several threads by the clock;
the median counts. Needs the extra `torch`, and a C++ compiler for PyTorch's own backend.
"""

from __future__ import annotations

import argparse
import io
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from targets import interleaved
from torch import Tensor, nn

import byoc_mlir

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "torch"))
from networks import Branch, Encoder, ResNet, randomised, tokens

Arguments = tuple[Tensor, ...]
Engine = Callable[..., object]

_CASES = ("resnet18", "encoder", "branch")
"""Modules; the encoder is called with 48, 128, 17 and 96 tokens, the branch once for each way."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--layers", action="store_true")
    parser.add_argument("--modules", nargs="+", choices=_CASES, default=_CASES)
    parser.add_argument("--growth-of", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.growth_of:
        print(_growth(arguments.growth_of))
    elif arguments.memory:
        _print_memory()
    elif arguments.layers:
        _print_layers(arguments.rounds)
    else:
        with torch.no_grad():
            _print_times(arguments.rounds, arguments.modules)


def _case(name: str) -> tuple[nn.Module, list[Arguments]]:
    """Returns a module, and the arguments of its calls."""
    if name == "resnet18":
        module = ResNet((64, 128, 256, 512), 2, 1000)
        return randomised(module), [(torch.randn(1, 3, 224, 224),)]
    if name == "encoder":
        calls = [tokens(length, 1) for length in (48, 128, 17, 96)]
        return randomised(Encoder(384, 12, 6, 30522)), calls
    return randomised(Branch()), [(torch.randn(3, 8),), (-torch.randn(3, 8),)]


def _print_times(rounds: int, modules: Sequence[str]) -> None:
    print("| module | engine | ms | to eager | error |")
    print("| --- | --- | ---: | ---: | ---: |")
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    for name in modules:
        module, calls = _case(name)
        torch.compiler.reset()
        engines = _engines(module, calls)
        runs = [_all_of(engine, calls) for engine in engines.values()]
        errors = [_error(engine, module, calls) for engine in engines.values()]
        times = interleaved(runs, rounds, clock)
        for engine, seconds, error in zip(engines, times, errors, strict=True):
            ratio = seconds / times[0]
            print(f"| {name} | {engine} | {1e3 * seconds:.2f} | {ratio:.2f} | {error:.0e} |")
        sys.stdout.flush()


def _engines(module: nn.Module, calls: Sequence[Arguments]) -> dict[str, Engine]:
    engines: dict[str, Engine] = {"eager": module}
    compiled: list[tuple[str, str, dict[str, bool] | None]] = [
        ("byoc_mlir", "byoc_mlir", None),
        ("the same, parameters copied", "byoc_mlir", {"copy_parameters": True}),
        ("inductor", "inductor", None),
    ]
    for name, backend, options in compiled:
        torch.compiler.reset()
        engines[name] = torch.compile(module, backend=backend, options=options)
        _all_of(engines[name], calls)()
        _all_of(engines[name], calls)()  # sizes become symbols at the second one
    if not isinstance(module, Branch):  # it is no single graph
        engines["ONNX Runtime"] = _onnxruntime(module, calls)
    return engines


def _onnxruntime(module: nn.Module, calls: Sequence[Arguments]) -> Engine:
    import onnxruntime

    sizes = {0: "batch", 1: "length"}
    shapes = {"tokens": sizes, "mask": sizes} if len(calls) > 1 else None
    file = io.BytesIO()
    program = torch.onnx.export(module, calls[0], dynamo=True, verbose=False, dynamic_shapes=shapes)
    program.save(file)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(file.getvalue(), options)
    names = [one.name for one in session.get_inputs()]

    def run(*arguments: Tensor) -> Tensor:
        given = {name: one.numpy() for name, one in zip(names, arguments, strict=True)}
        return torch.from_numpy(session.run(None, given)[0])

    return run


def _all_of(engine: Engine, calls: Sequence[Arguments]) -> Callable[[], Mapping[str, object]]:
    def run() -> Mapping[str, object]:
        return {str(number): engine(*call) for number, call in enumerate(calls)}

    return run


def _error(engine: Engine, module: nn.Module, calls: Sequence[Arguments]) -> float:
    """Returns the largest difference from eager PyTorch, relative to the largest value of the
    result.
    """
    pairs = [(engine(*call), module(*call)) for call in calls]
    return max(float((got - want).abs().max() / want.abs().max()) for got, want in pairs)


def _print_memory() -> None:
    print("| target | parameters, MB | peak of compiling and a call, MB | to the parameters |")
    print("| --- | ---: | ---: | ---: |")
    for target in ("openblas", "host", "dnnl"):
        command = [sys.executable, __file__, "--growth-of", target]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        print(done.stdout.strip().splitlines()[-1], flush=True)


def _print_layers(rounds: int) -> None:
    print("| size | rows | where they are | copied | ratio |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for size, layers in ((2400, 4), (384, 16)):
        module = nn.Sequential(*(nn.Linear(size, size) for _ in range(layers))).eval()
        for rows in (1, 4, 16, 64, 128):
            x = (torch.ones(rows, size),)
            programs = [
                byoc_mlir.from_torch(module, x, copy_parameters=copied, targets=())
                for copied in (False, True)
            ]
            runs = [_all_of(program, [x]) for program in programs]
            held, copied = interleaved(runs, rounds, time.process_time)
            ratio = held / copied
            print(f"| {size} | {rows} | {1e3 * held:.2f} | {1e3 * copied:.2f} | {ratio:.2f} |")
            sys.stdout.flush()


def _growth(target: str) -> str:
    """Returns a row with the peak growth of the process while a module was compiled and called
    once.
    """
    targets = () if target == "host" else (target,)
    small, large = nn.Linear(64, 64), nn.Sequential(*(nn.Linear(3600, 3600) for _ in range(8)))
    byoc_mlir.from_torch(small, (torch.ones(4, 64),), targets=targets, fallback="allow")
    size = sum(one.nbytes for one in large.parameters())
    before = _peak()
    x = torch.ones(4, 3600)
    compiled = byoc_mlir.from_torch(large, (x,), targets=targets, fallback="allow")
    compiled(x)
    grown = _peak() - before
    return f"| {target} | {size / 1e6:.0f} | {grown / 1e6:.0f} | {grown / size:.2f} |"


def _peak() -> float:
    return 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    main()
