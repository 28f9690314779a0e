"""Counter of the concepts of a checkout: `python tools/concepts.py [--root CHECKOUT] [--json]`.

Most counts come from the sources below `byoc_mlir`, independent of names there; the last two come
from a process that compiles a model. So an older checkout is counted by the same definitions;
`--python` names the interpreter of an environment in which it is installed.

- *executables*: classes that are or derive from `Executable` and have no abstract method left.
- *kinds of program*: dataclasses and records of `runtime` whose name is or ends with `Program`.
- *specialisers*: classes but executables and protocols with a public method that takes `shapes` or
  `arrays` and returns a `Program`.
- *bindings of oneDNN*: folders with a module that imports `ctypes` and names at least eight
  functions `dnnl_…`.
- *meanings*: ops that more than one module computes with NumPy. A module computes an op if it
  imports NumPy, is below `interpreter`, `numpy_ops` or `evaluate`, and has a table in which the
  op's name, or its class, stands for a function, or a class of the op's name.
- *caches*: functions that keep all of their results (`functools.cache`, `lru_cache`, and
  `cached_property`), and *memos*: containers of a module or an object, empty at first, that one
  function both looks up and fills.
- *cost files*: files outside of `testing` that define a class or a function named after time and
  what it decides: milliseconds, rates, decisions, gains, profitability, trials, tuning,
  calibration, measurements.
- *classes of one name*: names that classes of several modules have. Ops, attributes and types of
  dialects are omitted: the dialect is a part of their names.
- *code lines*: without docstrings, comments and blanks.
- *files that run*: files of `compiler`, `runtime`, `artifact` and `interpreter` (`eager` in older
  checkouts) of which a function runs while a fresh process with an empty cache compiles the
  perceptron of `byoc_mlir.testing.networks`.
- *modules loaded*: in that process, when the model is compiled: all, and those of `byoc_mlir`.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Counts: TypeAlias = dict[str, int]

_CACHES = {"cache", "lru_cache", "cached_property"}
_CONTAINERS = {"dict", "OrderedDict", "WeakValueDictionary", "WeakKeyDictionary", "defaultdict"}
_FUNCTIONS = ast.Name | ast.Attribute | ast.Lambda | ast.Call
_COST = re.compile(
    r"millisecond|rates?(?![a-z])|verdict|gains?(?![a-z])|profitab|trials?(?![a-z])"
    r"|tun(?:e|ed|ing)(?![a-z])"
    r"|calibrat|measure",
    re.IGNORECASE,
)
_DIALECT_CLASS = re.compile(r"(Op|Attr|Type|Traits?)$")
_ONEDNN = re.compile(r"\bdnnl_[a-z_]+")
_MANY_FUNCTIONS = 8
_RUN_FOLDERS = ("compiler", "runtime", "artifact", "eager", "interpreter")

_BUILD = """
import sys, onnx
from byoc_mlir.testing.networks import NETWORKS
onnx.save(NETWORKS["mlp"](), sys.argv[1])
"""
_COMPILE = """
import inspect, json, sys
import onnx
model = onnx.load(sys.argv[1])  # in memory, it is compiled in this process
files = set()
def note(frame, event, argument):
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # not the body of a module or a class
        files.add(frame.f_code.co_filename)
sys.setprofile(note)
import byoc_mlir
byoc_mlir.compile(model)
sys.setprofile(None)
print(json.dumps({"files": sorted(files), "modules": sorted(sys.modules)}))
"""


@dataclass(frozen=True)
class Module:
    """Source file below `byoc_mlir`."""

    path: Path
    """Path below the package."""
    text: str
    tree: ast.Module

    @property
    def folder(self) -> str:
        """Returns the folder below the package, empty for the package itself."""
        return "/".join(self.path.parts[:-1])

    @property
    def classes(self) -> list[ast.ClassDef]:
        """Returns the classes of the module that are not nested."""
        return [node for node in self.tree.body if isinstance(node, ast.ClassDef)]

    def imports(self, name: str) -> bool:
        """True if the module imports a package."""
        return re.search(rf"^\s*(import|from) {name}\b", self.text, re.MULTILINE) is not None


def modules_of(root: Path) -> list[Module]:
    """Returns the modules of a checkout's package."""
    package = root / "byoc_mlir"
    paths = sorted(package.rglob("*.py"))
    texts = {path.relative_to(package): path.read_text() for path in paths}
    return [Module(path, text, ast.parse(text)) for path, text in texts.items()]


def counted(modules: Sequence[Module]) -> Counts:
    """Returns the counts of all concepts in the sources."""
    executables = executables_of(modules)
    repeated = repeated_classes(modules)
    lines = lines_by_folder(modules)
    return {
        "executables": len(executables),
        "kinds of program": len(programs_of(modules)),
        "specialisers": len(specialisers_of(modules)),
        "bindings of oneDNN": len(bindings_of(modules)),
        "ops with several NumPy meanings": len(repeated_meanings(modules)),
        "functions that keep their results": sum(map(cached_functions, modules)),
        "memos": len(memos_of(modules)),
        "cost files": len(cost_files(modules)),
        "names of several classes": len(repeated),
        "classes of such names": sum(map(len, repeated.values())),
        "files": len(modules),
        "code lines": sum(lines.values()),
        **{f"code lines of {folder}": count for folder, count in sorted(lines.items())},
    }


def executables_of(modules: Sequence[Module]) -> list[str]:
    """Returns the classes of executables that can be instantiated."""
    classes = {node.name: node for module in modules for node in module.classes}

    def ancestors(name: str) -> Iterator[ast.ClassDef]:
        if name in classes:
            yield classes[name]
            for base in map(_last_name, classes[name].bases):
                if base != name:  # else, it is Python's class of that name
                    yield from ancestors(base)

    def is_concrete(name: str) -> bool:
        defined: set[str] = set()
        for node in ancestors(name):
            methods = [one for one in node.body if isinstance(one, Function)]
            abstract = {one.name for one in methods if "abstractmethod" in _decorators(one)}
            if abstract - defined:
                return False
            defined |= {one.name for one in methods}
        return True

    return [
        name
        for name in classes
        if any(one.name == "Executable" for one in ancestors(name)) and is_concrete(name)
    ]


def programs_of(modules: Sequence[Module]) -> list[str]:
    """Returns the kinds of program that the runtime knows."""
    return [
        node.name
        for module in modules
        if module.path.parts[0] == "runtime"
        for node in module.classes
        if node.name.endswith("Program") and {"dataclass", "record"} & _decorators(node)
    ]


def specialisers_of(modules: Sequence[Module]) -> list[str]:
    """Returns the classes that make programs for sizes."""
    executables = set(executables_of(modules))
    return [
        node.name
        for module in modules
        for node in module.classes
        if node.name not in executables
        and "Protocol" not in map(_last_name, node.bases)
        and any(isinstance(one, Function) and _makes_programs(one) for one in node.body)
    ]


def _makes_programs(function: Function) -> bool:
    taken = {argument.arg for argument in function.args.args}
    returned = "" if function.returns is None else ast.unparse(function.returns)
    is_public = not function.name.startswith("_")
    return is_public and bool(taken & {"shapes", "arrays"}) and returned.startswith("Program")


def bindings_of(modules: Sequence[Module]) -> set[str]:
    """Returns the folders that call many functions of oneDNN."""
    return {
        module.folder
        for module in modules
        if module.imports("ctypes") and len({*_ONEDNN.findall(module.text)}) >= _MANY_FUNCTIONS
    }


def repeated_meanings(modules: Sequence[Module]) -> list[str]:
    """Returns the ops that several modules compute with NumPy."""
    found: defaultdict[str, set[Path]] = defaultdict(set)
    for module in modules:
        if module.imports("numpy") and {"eager", "interpreter", "numpy_ops", "evaluate"} & {
            *module.path.parts
        }:
            for op in _computed(module):
                found[op].add(module.path)
    return sorted(op for op, paths in found.items() if len(paths) > 1)


def _computed(module: Module) -> Iterator[str]:
    """Returns the names of the ops that a module computes, without case, `_` and `Op`."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if key is not None and isinstance(
                    value, ast.Name | ast.Attribute | ast.Lambda | ast.Call
                ):
                    yield from _op_name(key)
    for node in module.classes:
        if not node.name.startswith("_") and node.bases:
            yield _plain(node.name)


def _op_name(key: ast.expr) -> Iterator[str]:
    if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isidentifier():
        yield _plain(key.value)
    elif isinstance(key, ast.Name | ast.Attribute) and _last_name(key).endswith("Op"):
        yield _plain(_last_name(key))


def _plain(name: str) -> str:
    return name.removesuffix("Op").replace("_", "").lower()


def cached_functions(module: Module) -> int:
    """Returns how many functions of a module keep their results."""
    functions = [node for node in ast.walk(module.tree) if isinstance(node, Function)]
    return sum(bool(_CACHES & _decorators(function)) for function in functions)


def memos_of(modules: Sequence[Module]) -> list[str]:
    """Returns the containers that a function looks up and fills."""
    return [
        f"{module.path}: {name}" for module in modules for name in sorted(set(_memos(module.tree)))
    ]


def _memos(tree: ast.Module) -> Iterator[str]:
    empty = {_target(node) for node in ast.walk(tree) if _is_empty_container(node)}
    for function in ast.walk(tree):
        if isinstance(function, Function):
            own = {_target(node) for node in ast.walk(function) if _is_empty_container(node)}
            kept = {name for name in empty if "." in name or name not in own}
            yield from kept & _filled(function) & _looked_up(function)


def _is_empty_container(node: ast.AST) -> bool:
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return False
    value = node.value
    if isinstance(value, ast.Call):
        made = value.func.value if isinstance(value.func, ast.Subscript) else value.func
        is_field = any(
            one.arg == "default_factory" and _last_name(one.value) in _CONTAINERS
            for one in value.keywords
        )
        return is_field or (_last_name(made) in _CONTAINERS and not value.args)
    return isinstance(value, ast.Dict) and not value.keys


def _target(node: ast.AST) -> str:
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0])
    return ast.unparse(node.target) if isinstance(node, ast.AnnAssign) else ""


def _filled(function: Function) -> set[str]:
    stored = [
        ast.unparse(node.value)
        for node in ast.walk(function)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
    ]
    return {*stored, *_called(function, {"setdefault"})}


def _looked_up(function: Function) -> set[str]:
    asked = [
        ast.unparse(node.comparators[0])
        for node in ast.walk(function)
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn)
    ]
    return {*asked, *_called(function, {"get", "setdefault"})}


def _called(function: Function, methods: set[str]) -> Iterator[str]:
    for node in ast.walk(function):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in methods:
            yield ast.unparse(called.value)


def cost_files(modules: Sequence[Module]) -> list[Path]:
    """Returns the files that define a class or function named after costs."""
    return [
        module.path
        for module in modules
        if module.path.parts[0] != "testing"
        and any(
            isinstance(node, Function | ast.ClassDef) and _COST.search(node.name)
            for node in ast.walk(module.tree)
        )
    ]


def repeated_classes(modules: Sequence[Module]) -> dict[str, list[Path]]:
    """Returns the class names that occur in several modules, with the modules."""
    found: defaultdict[str, list[Path]] = defaultdict(list)
    for module in modules:
        for node in module.classes:
            if not _DIALECT_CLASS.search(node.name):
                found[node.name].append(module.path)
    return {name: paths for name, paths in sorted(found.items()) if len(paths) > 1}


def lines_by_folder(modules: Sequence[Module]) -> Counts:
    """Returns the code lines of each folder of the package."""
    counts: Counter[str] = Counter()
    for module in modules:
        counts[module.path.parts[0] if module.folder else "byoc_mlir itself"] += code_lines(module)
    return dict(counts)


def code_lines(module: Module) -> int:
    """Returns the number of lines with code."""
    skipped = (
        *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE),
        *(tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER),
    )
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(module.tree):
        text = node.value if isinstance(node, ast.Expr) else None
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            lines -= set(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return len(lines)


def run_counts(root: Path, python: str = sys.executable) -> Counts:
    """Returns the counts of a process that compiles the perceptron.

    Args:
        python: interpreter of an environment that has what the checkout needs.
    """
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder, "mlp.onnx"))
        environment = {**os.environ, "PYTHONPATH": str(root), "BYOC_CACHE_DIR": f"{folder}/cache"}
        _printed(root, [python, "-c", _BUILD, model], environment)
        printed = _printed(root, [python, "-c", _COMPILE, model], environment)
    found = json.loads(printed.splitlines()[-1])
    package = root / "byoc_mlir"
    folders = [str(package / name) + os.sep for name in _RUN_FOLDERS]
    files = [one for one in found["files"] if one.startswith(tuple(folders))]
    own = [name for name in found["modules"] if name.partition(".")[0] == "byoc_mlir"]
    return {
        "files that run": len(files),
        "modules loaded": len(found["modules"]),
        "modules of byoc_mlir loaded": len(own),
    }


def _printed(root: Path, command: Sequence[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=True, cwd=root, env=environment
    )
    return done.stdout


def _last_name(node: ast.expr) -> str:
    """Returns `c` of `a.b.c`, `a.b.c[…]` and `a.b.c(…)`."""
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _decorators(node: Function | ast.ClassDef) -> set[str]:
    return {_last_name(one) for one in node.decorator_list}


def print_names(modules: Sequence[Module]) -> None:
    """Prints the names of the counted classes, files and functions."""
    lists: dict[str, Collection[object]] = {
        "executables": executables_of(modules),
        "kinds of program": programs_of(modules),
        "specialisers": specialisers_of(modules),
        "bindings of oneDNN": bindings_of(modules),
        "ops with several NumPy meanings": repeated_meanings(modules),
        "memos": memos_of(modules),
        "cost files": cost_files(modules),
        "names of several classes": [
            f"{name}: {', '.join(map(str, paths))}"
            for name, paths in repeated_classes(modules).items()
        ],
    }
    for heading, found in lists.items():
        print(f"\n{heading}:", *found, sep="\n  ")


def main() -> None:
    """Prints the counts as a table, or as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--json", action="store_true", help="print a JSON document")
    parser.add_argument("--static", action="store_true", help="compile nothing")
    parser.add_argument("--names", action="store_true", help="list what was counted, too")
    parser.add_argument("--python", default=sys.executable, help="runs the checkout")
    args = parser.parse_args()
    root = args.root.resolve()
    modules = modules_of(root)
    counts = counted(modules)
    if not args.static:
        counts |= run_counts(root, args.python)
    if args.json:
        print(json.dumps(counts, indent=2))
        return
    for name, count in counts.items():
        print(f"{count:8,}  {name}")
    if args.names:
        print_names(modules)


if __name__ == "__main__":
    main()
