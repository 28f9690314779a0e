"""One hostile case: its files, and the stage in which this process ends with it.

A case may end in a result or in a typed error. It fails if it takes more than its time, ends in an
untyped error, opens a file outside of its folder and Python's, or starts another process. With a
damaged cache, the result has to be right.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx

import byoc_mlir
from byoc_mlir.compiler.build import Stages
from byoc_mlir.dialects import make_context
from byoc_mlir.errors import ByocError, ExecutionError, InternalError, InvalidInputError
from byoc_mlir.frontend import import_model
from byoc_mlir.frontend.files.mlir_file import STORE_SUFFIX, write_mlir
from byoc_mlir.limits import Limits
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.linking.image import LinkedImage
from byoc_mlir.runtime.linking.object_file import UnknownObjectError
from byoc_mlir.runtime.program import ObjectCode
from byoc_mlir.tensors import Array
from byoc_mlir.transforms.partition_for import PartitionFor
from byoc_mlir_fuzz.hostile_files import hostile_cache, hostile_object, hostile_store
from byoc_mlir_fuzz.hostile_inputs import hostile_inputs
from byoc_mlir_fuzz.hostile_models import ATTACKS, attacked
from byoc_mlir_fuzz.hostile_text import hostile_text
from byoc_mlir_fuzz.judge import small_inputs
from byoc_mlir_fuzz.random_model import random_graph

STAGES = ("read", "import", "partition", "codegen", "link", "run")
_STAGE_OF = {
    **dict.fromkeys(("canonicalise", "partition", "prune"), "partition"),
    **dict.fromkeys(("generate", "lower", "link", "optimise", "program"), "codegen"),
}
KINDS = (*ATTACKS, "text", "trusted", "store", "object", "cache")
LIMITS = Limits(
    tensor_bytes=1 << 26,
    constant_bytes=1 << 25,
    arena_bytes=1 << 27,
    output_bytes=1 << 26,
    body_nodes=2000,
    nodes=5000,
    seconds=30,
)
SECONDS = LIMITS.seconds + 15
"""Seconds of the processor for one case: its budget, and LLVM's largest step."""
_NODES = (1, 2, 3)
"""Numbers of nodes, or of a network's blocks, in a model before it is attacked."""
TARGETS = ((), ("dnnl",), ("openblas",))


@dataclass
class Ended:
    """End of a case."""

    name: str
    stage: str
    """Stage that raised the error; `run` if none did before."""
    error: str = ""
    """Class of the error; empty for a result."""
    failure: str = ""
    """Reason why the end is none that is allowed."""
    seconds: float = 0.0
    """Seconds of the processor."""


def write_case(name: str, folder: Path) -> Path:
    """Writes the files of a case, `KIND/SEED/NUMBER`, to an empty folder; returns the model, or the
    object file.
    """
    rng = Random(f"hostile {name}")
    kind = name.split("/")[0]
    _surroundings(folder)
    if kind == "object":
        path = folder / "code.o"
        path.write_bytes(hostile_object(rng, _object_file()))
        return path
    if kind == "cache":
        path = folder / "model.onnx"
        path.write_bytes(_cached_model(0).SerializeToString())
        hostile_cache(rng, _cache_entries(), folder / "cache")
        return path
    _graph, model = random_graph(rng, _NODES)
    if kind in ATTACKS:
        path = folder / "model.onnx"
        path.write_bytes(attacked(rng, model, kind))
        return path
    path = folder / "model.mlir"
    store = path.with_suffix(STORE_SUFFIX)
    if kind in ("text", "trusted"):
        module = import_model(model).module
        if kind == "trusted":  # with regions, which strangers may not write
            PartitionFor(targets=("dnnl",)).apply(make_context(), module)
        write_mlir(module, path)
        path.write_text(hostile_text(rng, path.read_text()))
        return path
    write_mlir(import_model(onnx.parser.parse_model(_WITH_WEIGHTS)).module, path)
    store.write_bytes(hostile_store(rng, store.read_bytes()))
    return path


_WITH_WEIGHTS = f"""<ir_version: 8, opset_import: ["": 17]>
g (float[1,20] x) => (float[1,2] y)
    <float[20,2] w = {{{", ".join(["0.5"] * 40)}}}, float[40] b = {{{", ".join(["0.1"] * 40)}}}> {{
    m = MatMul (x, w) s = ReduceSum <keepdims = 0> (b) y = Add (m, s)
}}"""


@cache
def _object_file() -> bytes:
    """Returns the object file of a small model, with data, calls and tables of addresses."""
    with byoc_mlir.compile(onnx.parser.parse_model(_WITH_WEIGHTS), (), threads=1) as executable:
        code = executable.program.code
        assert isinstance(code, ObjectCode)
        return code.files[0]


def _cached_model(seed: int) -> onnx.ModelProto:
    """Returns a model whose weights have an entry of their own; seeds differ in the weights."""
    weights = np.random.default_rng(seed).standard_normal((40, 40)).astype(np.float32)
    model = onnx.parser.parse_model(_WITH_CACHED_WEIGHTS)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    return model


_WITH_CACHED_WEIGHTS = """<ir_version: 8, opset_import: ["": 17]>
g (float[40,40] x) => (float[40,40] y) { y = Add (x, w) }"""
_CACHED_INPUT = np.eye(40, dtype=np.float32)


def _run_with_cache(model: onnx.ModelProto, cache: Path) -> None:
    """Runs a cached model.

    Raises:
        AssertionError: the result is wrong.
    """
    weights = onnx.numpy_helper.to_array(model.graph.initializer[0])
    with byoc_mlir.compile(model, (), threads=1, cache=cache) as executable:
        y = executable.run({"x": _CACHED_INPUT})["y"]
    np.testing.assert_array_equal(y, _CACHED_INPUT + weights)


@cache
def _cache_entries() -> dict[str, bytes]:
    """Returns the entries of two models in one cache, which differ in their weights."""
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(2):
            _run_with_cache(_cached_model(seed), Path(folder))
        return {path.name: path.read_bytes() for path in sorted(Path(folder).glob("*.byoc"))}


def _surroundings(folder: Path) -> None:
    """Writes files that a model may name, and some that it may not."""
    (folder.parent / "outside.bin").write_bytes(bytes(8192))
    (folder / "data.bin").write_bytes(bytes(range(256)) * 64)
    (folder / "folder").mkdir()
    (folder / "link").symlink_to(folder.parent / "outside.bin")
    (folder / "folder" / "link").symlink_to(folder.parent)
    os.mkfifo(folder / "pipe")


_FORBIDDEN = (
    *("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork"),
    *("socket.connect", "socket.bind", "pickle.find_class"),
)
_OF_FILES = ("open", "os.listdir", "os.scandir", "os.remove", "os.rename", "ctypes.dlopen")


@dataclass
class Watch:
    """Record of the stage that runs, and of forbidden events."""

    folder: str = ""
    """Folder of the files that may be opened; empty for all files."""
    stage: str = "read"
    forbidden: list[str] = field(default_factory=list[str])

    def install(self) -> None:
        """Starts to record the stages and events of this process, until it ends."""
        _loaded_libraries()
        sys.addaudithook(self._event)
        original: Callable[..., Any] = Stages.stage
        watch = self

        @contextmanager
        def stage(self: Stages, name: str) -> Generator[None]:
            watch.stage = _STAGE_OF.get(name, "import")
            with original(self, name):
                yield

        Stages.stage = stage

    def _event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _FORBIDDEN:
            self.forbidden.append(f"{event} {arguments!r:.200}")
        elif event in _OF_FILES and self.folder and not self._may_open(arguments[0]):
            self.forbidden.append(f"{event} {arguments[0]!r:.200}")

    def _may_open(self, path: Any) -> bool:
        if not isinstance(path, str | bytes):  # a descriptor
            return True
        named = os.path.abspath(os.fsdecode(path))
        if f"{named}/".startswith(_SYSTEM) or named in _loaded_libraries():
            return True
        return f"{os.path.realpath(named)}/".startswith(f"{self.folder}/")


@cache
def _loaded_libraries() -> frozenset[str]:
    """Returns the libraries of this process when it began its first case."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return frozenset(line.split()[-1] for line in lines if ".so" in line)


_SYSTEM = (
    *(f"{os.path.abspath(path)}/" for path in sys.path if path),
    *([sys.pycache_prefix] if sys.pycache_prefix else []),
    *(sys.prefix, sys.base_prefix, os.path.dirname(os.__file__), "/usr/lib", "/lib"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/self/maps", "/proc/self/status", "/sys/"),
    *("/dev/null", "/dev/shm", "/dev/urandom"),
)
"""Files that the interpreter and the package open for themselves."""


def run_case(name: str, watch: Watch) -> Ended:
    """Writes, compiles and runs a case."""
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top) / "model"
        folder.mkdir()
        try:
            path = write_case(name, folder)
        except ByocError:  # no text, because the model is not imported
            return Ended(name, "import", "not written")
        watch.folder, watch.stage = os.path.realpath(folder), "read"
        watch.forbidden.clear()
        start = time.process_time()
        ended = _ended(name, path, watch)
        ended.seconds = time.process_time() - start
        watch.folder = ""
        if ended.seconds > SECONDS:
            ended.failure = f"it took {ended.seconds:.0f} s of the processor"
        if watch.forbidden:
            ended.failure = f"forbidden: {'; '.join(watch.forbidden[:3])}"
    return ended


def _ended(name: str, path: Path, watch: Watch) -> Ended:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if path.suffix == ".o":
                return _link(name, path.read_bytes())
            if name.startswith("cache/"):
                for _ in range(2):  # the second run may use what the first one wrote
                    _run_with_cache(onnx.load(path), path.with_name("cache"))
            elif name.startswith("trusted/"):
                _compile_trusted(name, path)
                return Ended(name, watch.stage)
            else:
                _compile_and_run(name, path, watch)
        return Ended(name, "run")
    except ByocError as error:
        ended = Ended(name, _stage_of(error, watch), type(error).__name__)
        if isinstance(error, InternalError) or type(error) is ByocError:
            ended.failure = f"{type(error).__name__}: {error}"[:500]
    except BaseException as error:
        ended = Ended(name, watch.stage, type(error).__name__)
        ended.failure = "".join(traceback.format_exception(error)[-2:])[-500:]
    return ended


def _compile_and_run(name: str, path: Path, watch: Watch) -> None:
    rng = Random(f"options {name}")
    is_tight, is_short = name.startswith("limits/"), name.startswith("time/")
    limits = _tight_limits(rng) if is_tight else LIMITS
    clock = _short_clock(rng, watch) if is_short else Clock(watch)
    with patch.object(byoc_mlir.limits, "time", clock):
        executable = byoc_mlir.compile(
            path,
            targets=rng.choices(TARGETS, [4, 1, 1])[0],
            threads=1,
            cache=False,
            limits=limits,
            fallback=rng.choice(["allow", "allow", "allow", "forbid"]),
        )
        with executable:
            feeds = small_inputs(executable)
            if feeds is not None:
                watch.stage = "run"
                if name.startswith("inputs/") and feeds:
                    _run_hostile(rng, executable, feeds)
                executable.run(feeds)


def _run_hostile(rng: Random, executable: Executable, feeds: Mapping[str, Array]) -> None:
    """Runs a program with several hostile inputs, each refused with a typed error or computed."""
    for _ in range(4):
        with suppress(InvalidInputError, ExecutionError):
            executable.run(hostile_inputs(rng, feeds))


def _compile_trusted(name: str, path: Path) -> None:
    """Compiles text whose writer may call anything; its code is not loaded."""
    rng = Random(f"options {name}")
    byoc_mlir.compile(
        path,
        targets=rng.choice([("dnnl",), ("dnnl",), ("openblas", "dnnl"), ()]),
        threads=1,
        cache=False,
        limits=LIMITS,
        fallback=rng.choice(["allow", "forbid"]),
        trusted=True,
        load=False,
    ).close()


@dataclass
class Clock:
    """Clock of time limits: the processor's, by which the time is over after so many looks at it
    in a stage.
    """

    watch: Watch
    stage: str = ""
    looks: int = 0

    def perf_counter(self) -> float:
        """Returns the seconds of the processor, by far too many after the last look."""
        if self.watch.stage != self.stage:
            return time.process_time()
        self.looks -= 1
        return time.process_time() + (0.0 if self.looks > 0 else 1e9)


def _tight_limits(rng: Random) -> Limits:
    """Returns limits of which one may be too low for the model."""
    name = rng.choice(["arena_bytes", "output_bytes", "tensor_bytes", "constant_bytes"])
    return replace(LIMITS, **{name: rng.choice([0, 16, 64, 256, 1024, 4096])})


def _short_clock(rng: Random, watch: Watch) -> Clock:
    """Returns a clock that may end the time in a stage."""
    stage = rng.choices(["import", "partition", "codegen"], [1, 4, 2])[0]
    return Clock(watch, stage, int(2 ** rng.uniform(0, 7)))


def _link(name: str, data: bytes) -> Ended:
    """Links an object file, whose code is not run."""
    try:
        LinkedImage([data], {}).close()
    except (UnknownObjectError, ExecutionError) as error:
        return Ended(name, "link", type(error).__name__)
    return Ended(name, "link")


def _stage_of(error: ByocError, watch: Watch) -> str:
    if watch.stage == "read" and error.stage == "import":
        return "import"
    return watch.stage
