"""Linking of the host's and the regions' code into one module, and the program of its object code,
with weights, libraries and symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.ir import Operation

from byoc_mlir import abi
from byoc_mlir.backends.generate import RegionCode
from byoc_mlir.compiler.build import Build
from byoc_mlir.dialects.relay.base import Ints
from byoc_mlir.dialects.symbols import symbol_of
from byoc_mlir.dims import Size
from byoc_mlir.errors import CompilationError
from byoc_mlir.lowering.device_traffic import traffic_of
from byoc_mlir.lowering.region_calls import host_slots, int_attribute
from byoc_mlir.lowering.symbols import external_functions, is_declaration
from byoc_mlir.runtime.program import (
    ObjectCode,
    Program,
    ProgramDevice,
    SharedLibrary,
    Step,
    ValueCheck,
)
from byoc_mlir.runtime.system.cpu import target_cpu
from byoc_mlir.runtime.system.libraries import find_openmp


def join_modules(
    host: ModuleOp, others: Iterable[ModuleOp], shared: Iterable[ModuleOp] = ()
) -> None:
    """Moves functions and globals into `host`; definitions replace declarations.

    Args:
        others: modules whose definitions must be unique.
        shared: modules that may contain equal definitions of a symbol; the first one is kept.

    Raises:
        CompilationError: two of `others` define the same symbol.
    """
    symbols = {symbol_of(op): op for op in host.body.block.ops if symbol_of(op)}
    for module in dict.fromkeys(shared):
        defined = {symbol for symbol, op in symbols.items() if not is_declaration(op)}
        _join(host, [op for op in module.body.block.ops if symbol_of(op) not in defined], symbols)
    for module in others:
        _join(host, list(module.body.block.ops), symbols)


def _join(host: ModuleOp, ops: Sequence[Operation], symbols: dict[str, Operation]) -> None:
    for op in ops:
        op.detach()
        known = symbols.get(symbol_of(op))
        if known is None:
            host.body.block.add_op(op)
        elif is_declaration(op):
            continue
        elif is_declaration(known):
            host.body.block.insert_op_before(op, known)
            known.detach()
        else:
            raise CompilationError(
                f"symbol @{symbol_of(op)} is defined twice; a backend must prefix the symbols"
                " it defines with its region's"
            )
        symbols[symbol_of(op)] = op


def place_contexts(module: ModuleOp, codes: Iterable[RegionCode]) -> None:
    """Sets the first context slot of each region, which `add-entry-points` assigned, as an
    attribute of its function.
    """
    functions = {symbol_of(op): op for op in module.body.block.ops}
    first = host_slots(module)
    for code in codes:
        functions[code.function].attributes[abi.CONTEXT_OFFSET] = IntegerAttr(first, i64)
        first += code.native.context_slots


def assemble(build: Build) -> Program:
    """Assembles the program of a build that has passed all stages, for the shapes of its inputs."""
    codes, module, stages = build.codes, build.module, build.stages
    uploads = build.uploads
    devices = () if uploads is None else tuple(uploads.devices(codes, module))
    constant_bytes = {one.name: one.constant_bytes for one in devices}
    return Program(
        code=_object_code(build),
        cpu=target_cpu(),
        inputs=tuple(build.imported.inputs),
        outputs=tuple(build.imported.outputs),
        externals=_externals(build),
        libraries=_libraries(build, devices),
        library_symbols=tuple(item for code in codes for item in code.library_symbols),
        python_regions=tuple(item for code in codes for item in code.python_regions),
        regions=(*(code.symbol for code in codes), *(device.region for device in devices)),
        devices=devices,
        state_slots=int_attribute(module, abi.STATE_SLOTS),
        context_slots=int_attribute(module, abi.CONTEXT_SLOTS),
        arena_bytes=int_attribute(module, abi.ARENA_BYTES),
        threads=build.options.threads,
        sources={code.symbol: code.source for code in codes if code.source},
        steps=tuple(steps_of(build)),
        checks=tuple(_checks(build)),
        aliases=_aliases(build),
        report=replace(
            build.report,
            devices=tuple(traffic_of(module, constant_bytes, build.imported.inputs)),
            compile_seconds=tuple(stages.seconds.items()),
            pass_seconds=tuple(stages.pass_seconds.items()),
        ),
    )


def steps_of(build: Build) -> Iterator[Step]:
    """Yields the steps that `profile-steps` recorded; none if it did not run."""
    described = build.module.attributes.get(abi.STEPS)
    if not isinstance(described, ArrayAttr):
        return
    for one in cast(ArrayAttr[DictionaryAttr], described):
        nodes = tuple(name.data for name in cast(ArrayAttr[StringAttr], one.data["nodes"]))
        keys = ("region", "implementation", "layout")
        region, implementation, layout = (cast(StringAttr, one.data[key]).data for key in keys)
        named = Step(nodes, region, implementation, layout)
        device, size = one.data.get("device"), one.data.get("bytes")
        if isinstance(device, StringAttr) and isinstance(size, IntegerAttr):
            yield replace(named, device=device.data, bytes=size.value.data)
            continue
        macs, size = (size if isinstance(size, int) else 0 for size in _work(build, nodes))
        yield replace(named, multiplications=macs, bytes=size)


def work_of(build: Build, steps: Sequence[Step]) -> tuple[tuple[Size, Size], ...]:
    """Returns the MACs and the bytes of each step, in terms of the symbols in shapes."""
    return tuple(_work(build, step.nodes) for step in steps)


def _work(build: Build, nodes: tuple[str, ...]) -> tuple[Size, Size]:
    traffic = build.traffic
    assert traffic is not None, "only programs for profiles have steps"
    return traffic.multiplications(nodes), traffic.bytes(nodes)


def _checks(build: Build) -> Iterator[ValueCheck]:
    """Yields the checks of the host functions."""
    described = build.module.attributes.get(abi.CHECKS)
    for one in cast(ArrayAttr[DictionaryAttr], described) if described is not None else ():
        node, what = (cast(StringAttr, one.data[key]).data for key in ("node", "what"))
        least, most = (cast(IntegerAttr, one.data[key]).value.data for key in ("least", "most"))
        yield ValueCheck(node, what, least, most)


def _aliases(build: Build) -> dict[str, str]:
    """Returns, for each output that may share memory with an input, that input."""
    pairs = build.module.attributes.get(abi.ALIASES, ArrayAttr[Ints]([]))
    inputs, outputs = build.imported.inputs, build.imported.outputs
    numbers = [pair.get_values() for pair in cast(ArrayAttr[Ints], pairs)]
    return {outputs[output].name: inputs[input_].name for output, input_ in numbers}


def _object_code(build: Build) -> ObjectCode:
    """Returns the object files, with the weights that they use."""
    weights = list(build.constants)
    for code in build.codes:
        weights += code.native.constants
    arrays = {abi.weight_symbol(weight.digest): weight for weight in weights}
    used = [name for name in external_globals(build.module) if name not in abi.PROCESS_SYMBOLS]
    for name in used:
        if name not in arrays:
            raise CompilationError(
                f"link: the module uses the global '{name}', which is no weight; define it there"
            )
    first, *others = build.objects
    return ObjectCode(first, {name: arrays[name].data for name in used}, tuple(others))


def _externals(build: Build) -> tuple[str, ...]:
    """Returns the functions that libraries or the process have to define."""
    bound = {symbol for code in build.codes for symbol in code.bound_symbols}
    return tuple(sorted({*external_functions(build.module)} - bound))


def _libraries(build: Build, devices: Sequence[ProgramDevice]) -> tuple[SharedLibrary, ...]:
    openmp = find_openmp()
    libraries = [library for code in build.codes for library in code.native.libraries]
    libraries += [device.library for device in devices]
    known = [*libraries, *([openmp] if openmp else [])]
    return tuple(
        dict.fromkeys(
            library if isinstance(library, SharedLibrary) else SharedLibrary(library)
            for library in known
        )
    )


def external_globals(module: ModuleOp) -> Sequence[str]:
    """Returns the globals that are used and not defined, sorted."""
    return sorted(
        op.sym_name.data
        for op in module.body.block.ops
        if isinstance(op, llvm.GlobalOp) and is_declaration(op)
    )
