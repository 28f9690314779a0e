"""Object files of LLVM, linked without it; unknown ones are left to LLVM."""

from __future__ import annotations

import ctypes
import mmap
import platform
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from byoc_mlir_fuzz.hostile_files import hostile_object
from hypothesis import given
from hypothesis import strategies as st

from byoc_mlir.errors import ExecutionError
from byoc_mlir.runtime.linking import native_module
from byoc_mlir.runtime.linking.image import LinkedImage
from byoc_mlir.runtime.linking.llvm import LlvmImage
from byoc_mlir.runtime.linking.native_module import NativeModule
from byoc_mlir.runtime.linking.object_file import ObjectFile, UnknownObjectError

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="other processors' code is linked by LLVM"
)

_TRIPLE = "x86_64-unknown-linux-gnu"

_COUNTER = """
@count = global i64 40
@zeros = internal global [3 x i64] zeroinitializer
@primes = internal constant [4 x i64] [i64 2, i64 3, i64 5, i64 7]
@place = global ptr getelementptr ([4 x i64], ptr @primes, i64 0, i64 2)
@functions = internal constant [2 x ptr] [ptr @next, ptr @pick]
declare i64 @twice(i64)
define i64 @next(i64 %x) {
  %old = load i64, ptr @count
  %new = add i64 %old, %x
  store i64 %new, ptr @count
  %slot = getelementptr [3 x i64], ptr @zeros, i64 0, i64 2
  %zero = load i64, ptr %slot
  %sum = add i64 %new, %zero
  %result = call i64 @twice(i64 %sum)
  ret i64 %result
}
define i64 @pick(i64 %x) {
  %place = load ptr, ptr @place
  %element = getelementptr i64, ptr %place, i64 %x
  %prime = load i64, ptr %element
  ret i64 %prime
}
define i64 @chosen(i64 %which, i64 %x) noinline {
  %slot = getelementptr [2 x ptr], ptr @functions, i64 0, i64 %which
  %function = load ptr, ptr %slot
  %result = call i64 %function(i64 %x)
  ret i64 %result
}
"""
"""Object file with data of all kinds: written, zero, constant, with addresses of data and
functions.
"""

_TWICE = """
@count = external global i64
declare i64 @labs(i64)
define internal i64 @scale(i64 %x) noinline {
  %y = shl i64 %x, 1
  ret i64 %y
}
define i64 @twice(i64 %x) {
  %a = call i64 @labs(i64 %x)
  %y = call i64 @scale(i64 %a)
  ret i64 %y
}
define ptr @counter() {
  ret ptr @count
}
"""
"""Other object file, whose functions are called; it calls the C library."""


def _object(text: str, triple: str = _TRIPLE, model: str = "default") -> bytes:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(triple).create_target_machine(reloc="pic", codemodel=model)
    return machine.emit_object(llvm.parse_assembly(f'target triple = "{triple}"\n{text}'))


def _function(address: int, *arguments: Any) -> Callable[..., int]:
    return ctypes.CFUNCTYPE(ctypes.c_int64, *arguments)(address)


@pytest.fixture(scope="module")
def files() -> list[bytes]:
    return [_object(_COUNTER), _object(_TWICE)]


@pytest.mark.parametrize("kind", [LinkedImage, LlvmImage])
def test_files_refer_to_each_other(kind: Any, files: list[bytes]) -> None:
    names = ["chosen", "counter"]
    image = LinkedImage(files, {}) if kind is LinkedImage else LlvmImage(files, names, {})
    chosen, counter = map(image.address, names)
    call = _function(chosen, ctypes.c_int64, ctypes.c_int64)
    assert [call(0, 2), call(0, -50)] == [84, 16]
    assert [call(1, 0), call(1, 1), call(1, -2)] == [5, 7, 2]
    count = ctypes.c_int64.from_address(_function(counter)())
    assert count.value == -8
    count.value = 100
    assert call(0, 1) == 202
    image.close()


def test_what_is_external_may_be_anywhere() -> None:
    text = """
    @far_data = external global i64
    declare i64 @far(i64)
    define i64 @f(i64 %x) {
      %y = load i64, ptr @far_data
      %z = add i64 %x, %y
      %r = call i64 @far(i64 %z)
      ret i64 %r
    }
    define ptr @address() {
      ret ptr @far
    }
    """
    far = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: 3 * x)
    data = np.array([10], np.int64)
    place = ctypes.cast(far, ctypes.c_void_p).value
    assert place is not None
    image = LinkedImage([_object(text)], {"far": place, "far_data": int(data.ctypes.data)})
    assert _function(image.address("f"), ctypes.c_int64)(4) == 42
    assert _function(image.address("address"))() == place
    image.close()


def test_no_page_is_both_written_and_executed(files: list[bytes]) -> None:
    image = LinkedImage(files, {})
    protections = _protections()
    assert _at(protections, image.address("next")) == "r-xp"
    assert _at(protections, image.address("place")) == "rw-p"
    constant = ctypes.c_int64.from_address(image.address("place")).value
    assert _at(protections, constant) == "r--p"
    text = image.address("next")
    image.close()
    assert _at(_protections(), text) != "r-xp"


def _protections() -> Mapping[tuple[int, int], str]:
    found: dict[tuple[int, int], str] = {}
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, protection, *_ = line.split()
        start, end = (int(number, 16) for number in span.split("-"))
        found[start, end] = protection
    return found


def _at(protections: Mapping[tuple[int, int], str], address: int) -> str | None:
    for (start, end), protection in protections.items():
        if start <= address < end:
            return protection
    return None


_WEAK = "define weak i64 @f(i64 %x) { ret i64 %x }"
_THREADS = """
@t = thread_local global i64 7
define ptr @f() {
  ret ptr @t
}
"""
_WIDE = f"""
@w = global i64 1, align {2 * mmap.PAGESIZE}
define ptr @f() {{ ret ptr @w }}
"""
_COMMON = """
@c = common global i64 0
define ptr @f() { ret ptr @c }
"""


@pytest.mark.parametrize("text", [_WEAK, _THREADS, _WIDE, _COMMON])
def test_what_only_llvm_links(text: str) -> None:
    with pytest.raises(UnknownObjectError):
        LinkedImage([_object(text)], {})


def test_code_that_may_be_anywhere_is_for_llvm(files: list[bytes]) -> None:
    large = [_object(text, model="large") for text in (_COUNTER, _TWICE)]
    with pytest.raises(UnknownObjectError, match="a relocation of type"):
        LinkedImage(large, {})
    with NativeModule(large, ["pick"]) as module:
        assert _function(module.address("pick"), ctypes.c_int64)(0) == 5


def test_llvm_links_what_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    with NativeModule([_object(_WEAK)], ["f"]) as module:
        assert _function(module.address("f"), ctypes.c_int64)(5) == 5
    monkeypatch.setattr(native_module, "LinkedImage", LlvmImage)  # which is asked no more
    with pytest.raises(TypeError):
        NativeModule([_object(_WEAK)], ["f"])


def test_two_definitions_are_refused() -> None:
    text = "define i64 @f() { ret i64 1 }"
    with pytest.raises(ExecutionError, match="cannot be linked"):
        NativeModule([_object(text), _object(text)], ["f"])


def test_missing_names_are_told() -> None:
    code = _object(
        "declare i64 @nowhere()\ndefine i64 @f() { %x = call i64 @nowhere() ret i64 %x }"
    )
    with pytest.raises(ExecutionError, match=r"cannot be linked: .*nowhere"):
        NativeModule([code], ["f"])
    with pytest.raises(ExecutionError, match="nothing defines 'g'"):
        NativeModule([_object("define i64 @f() { ret i64 1 }")], ["g"])


def test_files_of_other_machines() -> None:
    text = "define i64 @f() { ret i64 1 }"
    for data in (_object(text, "aarch64-unknown-linux-gnu"), b"", b"not an object file" * 9):
        with pytest.raises(ExecutionError, match=r"no (whole )?object file"):
            ObjectFile.read(data)


_SAMPLE = _object(_COUNTER)


def test_files_that_end_early() -> None:
    for size in range(len(_SAMPLE)):
        with pytest.raises(ExecutionError):
            LinkedImage([_SAMPLE[:size]], {"twice": 1})


def test_damaged_files_are_not_for_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks hostile tables with which LLVM's linker ends the process."""
    monkeypatch.setattr("byoc_mlir.runtime.linking.llvm.LlvmImage", None)
    refused, for_llvm = Counter[str](), 0
    for seed in range(300):
        try:
            NativeModule([hostile_object(Random(seed), _SAMPLE)], ["next"], {"twice": 1}).close()
        except ExecutionError as error:
            refused[str(error).split(":")[1]] += 1
        except TypeError:
            for_llvm += 1
    assert refused.total() > 100
    assert len(refused) > 8
    assert for_llvm < 60


@given(st.lists(st.tuples(st.integers(0, len(_SAMPLE) - 1), st.integers(0, 255)), min_size=1))
def test_files_with_other_bytes(changes: list[tuple[int, int]]) -> None:
    """Checks that nothing is written outside of the image, and that no other errors are raised."""
    data = bytearray(_SAMPLE)
    for place, byte in changes:
        data[place] = byte
    try:
        LinkedImage([bytes(data)], {"twice": 1}).close()
    except (UnknownObjectError, ExecutionError):
        return


def test_networks_need_no_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks that LLVM's linker is not needed for compiled models, with kernels and calls of
    libraries.
    """
    from byoc_mlir import compile
    from byoc_mlir.testing.networks import NETWORKS

    monkeypatch.delattr("byoc_mlir.runtime.linking.llvm.LlvmImage")
    for name in ("mnist", "mlp3"):
        compile(NETWORKS[name](), threads=2, fallback="allow").close()
