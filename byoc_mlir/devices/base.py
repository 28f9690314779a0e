"""Contract between the compiler and a device with its own memory.

A device's library defines these C functions, with the device's name as their prefix; a status is 0
for success:

```c
int32_t npu_open(void **queue);
void    npu_close(void *queue);
int32_t npu_allocate(int64_t bytes, void **memory);
void    npu_free(void *memory);
int32_t npu_copy_in(void *queue, void *to, const void *from, int64_t bytes);
int32_t npu_copy_out(void *queue, void *to, const void *from, int64_t bytes);
int32_t npu_wait(void *queue);
const char *npu_message(int32_t status);
const char *npu_identity(void);
```

A device that `records` defines these, too:

```c
int32_t npu_record_begin(void *queue);
int32_t npu_record_end(void *queue, void **recording);
int32_t npu_replay(void *queue, void *recording);
void    npu_forget(void *recording);
```

Regions that are enqueued between the first two are not done, but recorded; `npu_replay` enqueues
all of them with the same addresses. `npu_record_end` ends the recording even if it fails, and then
leaves none. `npu_forget` frees a recording whose replays are done.

A queue does in order what is enqueued; each context of a program has one. Copies are enqueued: the
host neither writes the memory of a copy to the device, nor touches that of a copy from it, before
`npu_wait` has returned. `npu_wait` returns the status of the first thing that failed since the last
wait. Different threads call the functions with different queues at the same time. `npu_message` and
`npu_identity` return text that lives as long as the library; that of `npu_identity` is device,
driver and firmware, or empty if there is no device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from byoc_mlir.errors import ByocError
from byoc_mlir.runtime.devices import library_identity

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from byoc_mlir.runtime.program import SharedLibrary


class Device(ABC):
    """A device; backends that run on it have its name as their `memory_space`.

    ```python
    class Npu(Device):
        name = "npu"

        def library(self):
            return Path(__file__).with_name("libnpu.so")
    ```
    """

    name: ClassVar[str]
    """Name of the device and of its memory space, an identifier of C."""

    dlpack_type: ClassVar[int] = 12
    """Number of the device's type in DLPack: 2 for CUDA; 12 for any that has no number."""

    records: ClassVar[bool] = False
    """True if the device defines the functions that record and replay work."""

    @abstractmethod
    def library(self) -> Path | SharedLibrary:
        """Returns the shared object that defines the device's functions."""

    def module(self) -> ModuleOp | None:
        """Returns code in the `llvm` dialect that defines the device's functions by means of
        `library`; `None` if the library itself defines them.
        """
        return None

    def unavailable(self) -> str | None:
        """Returns why this machine has no such device and what to do, or `None`.

        Models are compiled where the device is missing; it is needed to run them. By default, it
        loads the library and calls `npu_identity`; with `module`, there always is a device.
        """
        if self.module() is not None:
            return None
        try:
            found = library_identity(self.name, self.library())
        except (ByocError, OSError) as error:
            return str(error)
        return None if found else f"{self.name}_identity returns an empty text: it finds no device"

    def describe(self) -> str:
        """Returns one line on the device that was found, for `byoc doctor`; by default, the
        identity.
        """
        return self.identity() or "ready"

    def identity(self) -> str:
        """Returns the device, its driver and firmware, as `npu_identity` does where models run; ""
        where there is no device.

        A program in the cache serves one identity. A program that was compiled for one refuses to
        load on another. By default, it calls `npu_identity`, if the library can be loaded and
        defines it.
        """
        try:
            return "" if self.module() is not None else library_identity(self.name, self.library())
        except (ByocError, OSError):
            return ""

    def copy_milliseconds(self, size: int) -> float | None:
        """Estimates the time of a copy of `size` bytes between host and device."""
        return None
