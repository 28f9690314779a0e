"""Generator of `tables.h` and `data.s`, the parts of the C glue that depend on the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from byoc_mlir.abi import ARENA_ALIGNMENT, FOUND_SLOT, REGION_SHIFT, RUNTIME_FUNCTIONS, SLOT_BYTES
from byoc_mlir.artifact.header import ERROR_CODES
from byoc_mlir.artifact.interface import Interface
from byoc_mlir.artifact.sizes import greatest_size, size_functions
from byoc_mlir.runtime.files.serialise import array_bytes
from byoc_mlir.runtime.program import Array, Program, SharedLibrary, ValueCheck
from byoc_mlir.runtime.symbolic_sizes import SymbolicSizes
from byoc_mlir.runtime.system.cpu import Cpu
from byoc_mlir.runtime.system.libraries import open_system_libraries
from byoc_mlir.runtime.system.spins import SPIN_SECONDS, USUAL_SPINS

WEIGHTS_FILE = "weights.bin"
_WEIGHTS_SECTION = '.section .byoc.weights,"a",%progbits'
_LARGE_SECTION = '.section .lrodata.byoc,"al",%progbits'
_LARGE_BYTES = 1 << 30
"""Bytes of weights that count as large data: distances in code are below 2 GiB."""


STUBS = {
    "aarch64": "adrp x16, {0}\nldr x16, [x16, :lo12:{0}]\nbr x16",
    "x86_64": "jmp *{0}(%rip)",
}
"""Stub that jumps to the address in a slot, by architecture; it keeps the registers of a call."""


@dataclass(frozen=True)
class Import:
    """Function that the object code calls under the name `symbol`.

    `image` is the number of the embedded library that defines `function`, or -1 if a shared library
    of the machine defines it.
    """

    symbol: str
    function: str
    image: int = -1


def imports(program: Program, images: Sequence[bytes]) -> tuple[Import, ...]:
    """Returns the functions to bind at load time, except the C library's, which the linker
    resolves.
    """
    system = open_system_libraries()
    functions = [
        Import(name, name)
        for name in program.externals
        if name not in RUNTIME_FUNCTIONS
        if not any(hasattr(library, name) for library in system)
    ]
    functions += [
        Import(item.symbol, item.name, images.index(item.image()))
        for item in program.library_symbols
    ]
    return (*functions, *(Import(region.symbol, "") for region in program.python_regions))


_RECORDS = """typedef struct {
  const char *name, *path, *environment, *version_function;
  int version[3];
} library;
typedef struct {
  const unsigned char *begin, *end;
} image;
typedef struct {
  const char *what;
  long long least, most;
} check;
typedef struct {
  int image;
  const char *function;
} import;"""


def tables_header(
    interface: Interface,
    name: str,
    imported: Sequence[Import],
    images: Sequence[bytes],
    symbols: Mapping[str, str],
) -> str:
    """Returns the text of `tables.h`.

    Args:
        name: prefix of the C functions.
        symbols: symbol of each table, by the table's name in `glue.c`.
    """
    program = interface.program
    counts = {"IMAGE_COUNT": len(images), "IMPORT_COUNT": len(imported)}
    defined = {**_numbers(program), **counts, **_parameters(interface), **symbols}
    features = program.cpu.optional_features
    libraries = [_library(library) for library in program.libraries]
    image_ends = [f"{{byoc_image_{index}, byoc_image_{index}_end}}" for index in range(len(images))]
    functions = [f"{{{item.image}, {quoted(item.function)}}}" for item in imported]
    return "\n".join(
        [
            *defines(defined),
            f"#define C_NAME(function) {name}_##function",
            _RECORDS,
            *(
                f"extern const unsigned char byoc_image_{index}[], byoc_image_{index}_end[];"
                for index in range(len(images))
            ),
            c_array("char *const", "region_names", map(quoted, program.regions)),
            c_array("check", "checks", map(_check, program.checks)),
            c_array("char *const", "feature_names", map(quoted, features)),
            c_array("char *const", "import_names", [quoted(item.symbol) for item in imported]),
            *_size_tables(program.sizes),
            size_functions(program),
            c_array("library", "libraries", libraries),
            c_array("image", "images", image_ends),
            c_array("import", "imports", functions),
            "",
        ]
    )


def _numbers(program: Program) -> dict[str, int | str]:
    """Returns the macros for the numbers of a program."""
    python = next((region.region for region in program.python_regions), "")
    return {
        **error_codes(),
        "STATE_SLOTS": program.state_slots,
        "CONTEXT_SLOTS": program.context_slots,
        "ARENA_ALIGNMENT": ARENA_ALIGNMENT,
        "REGION_SHIFT": REGION_SHIFT,
        "THREADS": program.threads,
        "SPIN_SECONDS": str(SPIN_SECONDS),
        "USUAL_SPINS": USUAL_SPINS,
        "REGION_COUNT": len(program.regions),
        "CHECK_COUNT": len(program.checks),
        "FOUND_SLOT": FOUND_SLOT,
        "FEATURE_COUNT": len(program.cpu.optional_features),
        "LIBRARY_COUNT": len(program.libraries),
        "PYTHON_REGION": quoted(python),
    }


def _parameters(interface: Interface) -> dict[str, int | str]:
    """Returns the macros for the parameters of the model's C functions."""
    tensors, inputs = interface.tensors, len(interface.program.inputs)
    declared = [
        replace(tensor, name=f"tensor_{index}").declaration for index, tensor in enumerate(tensors)
    ]
    named = [f"tensor_{index}" for index in range(len(tensors))]
    sizes = [f"size_{index}" for index in range(len(interface.sizes))]
    shapes = [f"shape_{index}" for index in range(len(interface.outputs))]
    declared_sizes = [f"int64_t {size}" for size in sizes]
    sizes_taken = interface.program.sizes
    hidden = [] if sizes_taken is None else ["sizes"]
    return {
        "INPUT_COUNT": inputs,
        "OUTPUT_COUNT": len(tensors) - inputs,
        "HIDDEN_INPUTS": len(hidden),
        "SIZE_COUNT": len(sizes),
        "SIZES": ", ".join(sizes) or "0",
        "GUARD_COUNT": 0 if sizes_taken is None else len(sizes_taken.guards),
        "SHAPES_PARAMETERS": ", ".join(declared_sizes + [f"int64_t *{shape}" for shape in shapes]),
        "SHAPES": ", ".join(shapes) or "NULL",
        "RUN_PARAMETERS": ", ".join(declared_sizes + declared) or "void",
        "RUN_INPUTS": ", ".join(hidden + named[:inputs]) or "NULL",
        "RUN_OUTPUTS": ", ".join(named[inputs:]) or "NULL",
    }


def _size_tables(sizes: SymbolicSizes | None) -> Sequence[str]:
    """Returns the tables of symbolic sizes: their names, their ranges, and the texts of guards."""
    symbols = () if sizes is None else sizes.symbols
    guards = () if sizes is None else sizes.guards
    greatest = [str(greatest_size(info)) for info in symbols]
    return [
        c_array("char *const", "size_names", [quoted(info.name) for info in symbols]),
        c_array("int64_t", "least_sizes", [str(info.min) for info in symbols] or ["0"]),
        c_array("int64_t", "greatest_sizes", greatest or ["0"]),
        c_array("char *const", "guard_texts", [quoted(str(one)) for one in guards]),
    ]


def _check(check: ValueCheck) -> str:
    what = f"node '{check.node}': {check.what}"
    return f"{{{quoted(what)}, {check.least}, {check.most}}}"


def _library(library: SharedLibrary) -> str:
    texts = (library.path.name, str(library.path), library.environment, library.version_function)
    version = ", ".join(map(str, library.version))
    return f"{{{', '.join(map(quoted, texts))}, {{{version}}}}}"


def data_assembly(
    weights: Mapping[str, Array], imported: Sequence[Import], images: Sequence[bytes], cpu: Cpu
) -> str:
    """Returns the text of `data.s`: the weights, embedded libraries, and stubs of imports.

    A stub jumps to the address in its slot of `byoc_imports`, as a procedure linkage table does. So
    the dynamic loader resolves nothing, and models in one process share no names.
    """
    lines = ['.section .note.GNU-stack,"",%progbits', _weights_section(weights, cpu)]
    offset = 0
    for symbol, array in weights.items():
        lines += [
            f".balign {ARENA_ALIGNMENT}",
            *_symbol(symbol, "object"),
            f'.incbin "{WEIGHTS_FILE}", {offset}, {array.nbytes}' if array.nbytes else ".byte 0",
        ]
        offset += array.nbytes
    lines.append(_WEIGHTS_SECTION)
    for index in range(len(images)):
        lines += [
            *_symbol(f"byoc_image_{index}", "object"),
            f'.incbin "{image_file(index)}"',
            *_symbol(f"byoc_image_{index}_end", "object"),
            ".byte 0",
        ]
    lines.append(".text")
    for slot, item in enumerate(imported):
        stub = STUBS[cpu.architecture].format(f"byoc_imports+{SLOT_BYTES * slot}")
        lines += [*_symbol(item.symbol, "function"), stub]
    return "\n".join([*lines, ""])


def _weights_section(weights: Mapping[str, Array], cpu: Cpu) -> str:
    """Returns the directive of the weights' section; linkers place a section of large data last, so
    that it does not separate code from what code refers to.
    """
    is_large = sum(array.nbytes for array in weights.values()) >= _LARGE_BYTES
    return _LARGE_SECTION if is_large and cpu.architecture == "x86_64" else _WEIGHTS_SECTION


def write_weights(folder: Path, weights: Mapping[str, Array], images: Sequence[bytes]) -> None:
    """Writes the files that `data.s` includes."""
    with (folder / WEIGHTS_FILE).open("wb") as file:
        for array in weights.values():
            file.write(array_bytes(array))
    for index, image in enumerate(images):
        (folder / image_file(index)).write_bytes(image)


def image_file(index: int) -> str:
    """Returns the name of the file with an embedded library."""
    return f"image_{index}.so"


def error_codes() -> dict[str, int]:
    """Returns the numbers of the codes that C functions return."""
    return {code: number for number, code in enumerate(ERROR_CODES)}


def defines(values: Mapping[str, int | str]) -> list[str]:
    """Returns a macro definition for each value."""
    return [f"#define {key} {value}" for key, value in values.items()]


def quoted(text: str) -> str:
    """Returns a C string literal."""
    escaped = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\?' else f"\\{byte:03o}"
        for byte in text.encode()
    )
    return f'"{escaped}"'


def _symbol(name: str, kind: str) -> list[str]:
    return [f".globl {name}", f".hidden {name}", f".type {name}, %{kind}", f"{name}:"]


def c_array(kind: str, name: str, items: Iterable[str]) -> str:
    """Returns a C array; without items, it gets a placeholder, as C has no empty arrays."""
    rows = list(items) or ["0" if kind.startswith(("char", "int")) else "{0}"]
    return f"static const {kind} {name}[] = {{{', '.join(rows)}}};"
