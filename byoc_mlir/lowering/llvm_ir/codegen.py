"""Compilation of a module of the `llvm` dialect to a relocatable object file, through LLVM.

llvmlite holds one lock during each call. LLVM needs no lock for modules in different contexts with
their own target machines. So the two slow calls bypass the lock, and run on several threads at
once. A fork waits for them, as it waits for llvmlite's lock (`runtime/system/forks.py`).
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar, cast

import llvmlite
import llvmlite.binding as llvm
from llvmlite.binding import ffi
from llvmlite.binding.newpassmanagers import NewPassManager
from xdsl.dialects.builtin import ModuleOp

from byoc_mlir.errors import CompilationError
from byoc_mlir.ir_dump import dump_text
from byoc_mlir.limits import check_time
from byoc_mlir.lowering.llvm_ir.parts import cut
from byoc_mlir.lowering.llvm_ir.translate import translate_module, translate_part
from byoc_mlir.runtime.system.cpu import Cpu, compiler_features_up_to, other_machine
from byoc_mlir.runtime.system.forks import llvm_at_work
from byoc_mlir.runtime.system.threads import available_threads, starts

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_OBJECT_FILE = 1
"""Code generation file type of LLVM for object code, not assembly."""


def run_passes(
    passes: llvm.ModulePassManager, module: llvm.ModuleRef, builder: llvm.PassBuilder
) -> None:
    """Runs passes on a module that no other thread uses; must be called in `at_once`."""
    _unlocked("LLVMPY_RunNewModulePassManager")(passes, module, builder)


def emit_unlocked(machine: llvm.TargetMachine, module: llvm.ModuleRef) -> bytes:
    """Returns the object code of a module; must be called in `at_once`.

    No other thread may use the module or the target machine.

    Raises:
        CompilationError: LLVM cannot generate code for the module.
    """
    library = cast(Any, ffi.lib)
    with ffi.OutputString() as error:
        buffer = _unlocked("LLVMPY_TargetMachineEmitToMemory")(machine, module, _OBJECT_FILE, error)
        if not buffer:
            raise CompilationError(f"llvm-emit-object: {error}")
    try:
        size = library.LLVMPY_GetBufferSize(buffer)
        return ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), size)
    finally:
        library.LLVMPY_DisposeMemoryBuffer(buffer)


def at_once(function: Callable[[_Item], _Result], items: Sequence[_Item]) -> list[_Result]:
    """Returns the results of `function` for each item, computed on as many threads as there are
    cores.

    The calling thread is one of them; the other threads get its context. Raises the first error of
    any thread.
    """
    results: dict[int, _Result] = {}
    errors: list[BaseException] = []
    numbers = iter(range(len(items)))

    def work() -> None:
        for number in numbers:  # the interpreter hands out each once
            try:
                results[number] = function(items[number])
            except BaseException as error:
                errors.append(error)
                return

    helpers = [
        threading.Thread(target=copy_context().run, args=(work,))
        for _ in range(1, min(available_threads(), len(items)))
    ]
    with llvm_at_work:
        started = [helper for helper in helpers if starts(helper)]
        work()
        for helper in started:
            helper.join()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(items))]


@cache
def _unlocked(name: str) -> Any:
    """Returns a function of LLVM's library that does not take llvmlite's lock, with llvmlite's
    signature of it.
    """
    library = cast(Any, ffi.lib)
    declared = getattr(library, name)
    function = ctypes.CDLL(library._name, handle=library._handle)[name]
    function.argtypes, function.restype = declared.argtypes, declared.restype
    return function


Timing = Callable[[str, float], None]
"""Function that is called after each pass with its name and its time in seconds, verification
included."""

_HIGHEST_LEVEL = 3

_LEAST_LEVEL = 1
"""Minimum level of code generation: level 0 spills every value instead of allocating registers."""

_SLOW_GATHERS = "znver"
"""Prefix of the names of processors on which gathers are slow, although LLVM's cost model counts a
gather as one instruction."""


@dataclass(frozen=True)
class CodegenTarget:
    """Machine that code is generated for: triple, CPU name and features (`+avx2,-sse4a`)."""

    triple: str
    cpu: str
    features: str

    @staticmethod
    @cache
    def host() -> CodegenTarget:
        """Returns the machine of this process, restricted to the level of `BYOC_MAX_ISA`.

        The CPU's name is not restricted: since all features are listed, it only affects instruction
        scheduling and LLVM's preferences.
        """
        name, features, level = llvm.get_host_cpu_name(), llvm.get_host_cpu_features(), Cpu.limit()
        if level is not None:
            allowed = compiler_features_up_to(level)
            features.update({each: False for each in features if each not in allowed})
        if name.startswith(_SLOW_GATHERS):
            features["prefer-no-gather"] = True
        if features.get("avx512f"):
            features["prefer-256-bit"] = False  # as kernels; LLVM would choose by the CPU's name
        return CodegenTarget(llvm.get_process_triple(), name, features.flatten())

    @staticmethod
    def current() -> CodegenTarget:
        """Returns the machine that this thread generates code for; by default, the host."""
        other = other_machine()
        return CodegenTarget.host() if other is None else CodegenTarget(other.triple, "generic", "")


def emit_object(module: ModuleOp) -> bytes:
    """Compiles a module of the `llvm` dialect to position-independent object code.

    The target is `CodegenTarget.current()`. The JIT or `ld -shared` links the code.

    Raises:
        CompilationError: the module is not legal LLVM.
    """
    unit = _Unit("model", lambda: translate_module(module), _HIGHEST_LEVEL)
    (code,) = _emitted([unit])
    return code


def emit_objects(module: ModuleOp, *, timing: Timing | None = None) -> Sequence[bytes]:
    """Compiles a module like `emit_object`, but a large module to several objects in parallel.

    The objects must be linked together. They depend only on the module.

    Args:
        timing: function that is called with the time of each step.
    """
    units = [
        _Unit(
            f"model-{number}" if number else "model",
            partial(translate_part, module, part),
            0 if part.vectorised else _HIGHEST_LEVEL,
        )
        for number, part in enumerate(cut(module))
    ]
    return _emitted(units, timing)


def emit_assembly(module: ModuleOp, target: CodegenTarget) -> str:
    """Compiles a module of the `llvm` dialect to the assembly of any target.

    Raises:
        CompilationError: the module is not legal LLVM.
    """
    _initialise_all_targets()
    machine = _target_machine(target, _HIGHEST_LEVEL)
    text = translate_module(module)
    dump_text("device.ll", lambda: text)

    def emit(assembly: str) -> str:
        return machine.emit_assembly(_optimised(assembly, target, machine, _HIGHEST_LEVEL))

    (result,) = at_once(emit, [text])
    return result


class _Unit(NamedTuple):
    """Part of a module that becomes one object."""

    name: str
    """Name of the dumped IR files."""
    assembly: Callable[[], str]
    level: int
    """LLVM's optimisation level."""


def _emitted(units: Sequence[_Unit], timing: Timing | None = None) -> Sequence[bytes]:
    """Returns the object code of units; while LLVM compiles some units, the next ones are
    translated.
    """
    target = CodegenTarget.current()
    machines = [_target_machine(target, max(unit.level, _LEAST_LEVEL)) for unit in units]
    clock, start = _Clock(), time.perf_counter()
    codes = at_once(
        lambda pair: _object_of(*pair, target, clock), [*zip(units, machines, strict=True)]
    )
    if timing is not None:
        for name, seconds in clock.shares(time.perf_counter() - start):
            timing(name, seconds)
    return codes


def _object_of(
    unit: _Unit, machine: llvm.TargetMachine, target: CodegenTarget, clock: _Clock
) -> bytes:
    """Returns the object code of one unit; must be called in `at_once`."""
    check_time()
    with clock.measured("translate-to-llvm-ir"):
        assembly = unit.assembly()
    dump_text(f"{unit.name}.ll", lambda: assembly)
    with clock.measured("llvm-optimise"):
        module = _optimised(assembly, target, machine, unit.level)
    dump_text(f"{unit.name}-optimised.ll", lambda: str(module))
    dump_text(f"{unit.name}.s", lambda: machine.emit_assembly(module))
    with clock.measured("llvm-emit-object"):
        return emit_unlocked(machine, module)


class _Clock:
    """Times of steps that several threads run in parallel."""

    def __init__(self) -> None:
        self._steps: list[tuple[str, float]] = []

    @contextmanager
    def measured(self, step: str) -> Generator[None]:
        """Measures the time of a step in the `with` body."""
        start = time.perf_counter()
        yield
        self._steps.append((step, time.perf_counter() - start))

    def shares(self, seconds: float) -> Iterator[tuple[str, float]]:
        """Yields each step with its share of the wall time `seconds`."""
        whole = sum(taken for _, taken in self._steps)
        for name in dict.fromkeys(step for step, _ in self._steps):
            own = sum(taken for step, taken in self._steps if step == name)
            yield name, seconds * own / whole


_FEWEST_VECTOR_ITERATIONS = 4
"""Minimum number of iterations of a loop that LLVM vectorises; its default, 16, excludes the rows
of small images."""

_OPTIONS = (
    f"-vectorizer-min-trip-count={_FEWEST_VECTOR_ITERATIONS}",
    # LLVM would write a vectorised version of a loop for a stride of 1, but the strides that are
    # arguments are not 1.
    "-enable-mem-access-versioning=false",
)


@cache
def _initialise_llvm() -> None:
    for option in _OPTIONS:
        llvm.set_option("byoc_mlir", option)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def _initialise_all_targets() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def _target_machine(target: CodegenTarget, opt_level: int) -> llvm.TargetMachine:
    _initialise_llvm()
    if other_machine() is not None:
        _initialise_all_targets()
    return _llvm_target(target.triple).create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=opt_level,
        reloc="pic",
        codemodel="default",
    )


def _llvm_target(triple: str) -> llvm.Target:
    try:
        return llvm.Target.from_triple(triple)
    except RuntimeError as error:
        raise CompilationError(
            f"LLVM of llvmlite {llvmlite.__version__} was built without {triple}: {error}"
        ) from error


def _optimised(
    assembly: str, target: CodegenTarget, machine: llvm.TargetMachine, opt_level: int
) -> llvm.ModuleRef:
    """Returns the optimised module, which owns its LLVM context; must be called in `at_once`."""
    try:
        module = llvm.parse_assembly(assembly, llvm.create_context())
        module.triple = target.triple
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise CompilationError(f"llvm-ir: LLVM rejects the module: {error}") from error
    # Each run has its own builder, because the builder refers to the run afterwards.
    builder = llvm.create_pass_builder(machine, _tuning_options(opt_level))
    with _pipeline(builder) as passes:
        run_passes(passes, module, builder)
    return module


@contextmanager
def _pipeline(builder: llvm.PassBuilder) -> Generator[llvm.ModulePassManager]:
    """Yields the passes of a builder, and frees them afterwards, since their class inherits a wrong
    `_dispose`.
    """
    passes = builder.getModulePassManager()
    try:
        yield passes
    finally:
        NewPassManager._dispose(passes)  # pyright: ignore[reportPrivateUsage]
        passes.detach()


_HIGHEST_PIPELINE = 2
"""Maximum level of LLVM's passes: -O3 takes 1.17 times as long as -O2, and its code is not faster
here."""


def _tuning_options(opt_level: int) -> llvm.PipelineTuningOptions:
    level = min(opt_level, _HIGHEST_PIPELINE)
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = opt_level >= 2
    options.slp_vectorization = opt_level >= 2
    options.loop_interleaving = opt_level >= 2
    options.loop_unrolling = False  # loops come unrolled where it pays; the rest is compile time
    return options
