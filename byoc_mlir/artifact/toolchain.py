"""C compiler and its tools, for this machine or for another one."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from byoc_mlir.errors import ToolchainError

_INSTALL = "install one (`apt-get install gcc`, or clang), or name it in the variable CC"

_COMPLETE = (
    "a complete toolchain has a compiler, an assembler and a linker (`apt-get install gcc"
    " binutils`); the variable CC names another one"
)


@dataclass(frozen=True)
class Toolchain:
    """Tools that compile C, assembly and object code."""

    compiler: tuple[str, ...]
    objcopy: str

    @staticmethod
    def of(triple: str | None = None) -> Toolchain:
        """Returns the tools for this machine; for a triple, the cross tools, such as
        `aarch64-linux-gnu-gcc`.

        Raises:
            ToolchainError: there is no C compiler.
        """
        if triple is None:
            return Toolchain(c_compiler(), "objcopy")
        compiler = f"{triple}-gcc"
        if shutil.which(compiler) is None:
            raise ToolchainError(
                f"a file for {triple} needs '{compiler}' and '{triple}-objcopy', and there is no"
                f" '{compiler}'; install a cross compiler (`apt-get install"
                f" gcc-{triple.replace('_', '-')}`)"
            )
        return Toolchain((compiler,), f"{triple}-objcopy")


def c_compiler() -> tuple[str, ...]:
    """Returns the C compiler's command: `$CC`, or the first of `cc`, `gcc` and `clang` that exists.

    Raises:
        ToolchainError: there is no C compiler.
    """
    command = tuple(shlex.split(os.environ.get("CC", "")))
    if command:
        if shutil.which(command[0]) is None:
            raise ToolchainError(f"there is no '{command[0]}', which CC names; {_INSTALL}")
        return command
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return (name,)
    raise ToolchainError(f"exporting needs a C compiler, and there is none; {_INSTALL}")


def run_tool(command: Sequence[str], folder: Path) -> None:
    """Runs a command in a folder.

    Raises:
        ToolchainError: the command cannot be run, or fails; the message has its output.
    """
    try:
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError as error:
        raise ToolchainError(f"'{command[0]}' cannot be run: {error}; is it installed?") from error
    if result.returncode:
        said = (result.stderr or result.stdout).strip()
        raise ToolchainError(f"`{shlex.join(command)}` failed:\n{said}\n{_COMPLETE}")
