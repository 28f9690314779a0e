"""The reference of the public classes and functions, which mkdocstrings fills in."""

from __future__ import annotations

from importlib import import_module

from page import Page

MODULES = {
    "byoc_mlir": "Compile, load, run.",
    "byoc_mlir.errors": "What is raised.",
    "byoc_mlir.inference_session": "ONNX Runtime's interface.",
    "byoc_mlir.backends": "The contract with backends.",
    "byoc_mlir.patterns": "The pattern language.",
    "byoc_mlir.frontend": "Importing models, and ops of your own.",
    "byoc_mlir.testing": "Testing a backend.",
}
"""The modules that users import."""


def python_pages() -> list[Page]:
    """Returns a page for each module that users import."""
    return [_page(module, text) for module, text in MODULES.items()]


def public_names(module: str) -> list[str]:
    """Returns the public names of a module in alphabetical order."""
    found = import_module(module)
    if hasattr(found, "__all__"):
        return sorted(name for name in found.__all__ if not name.startswith("__"))
    return [
        name
        for name, value in vars(found).items()
        if isinstance(value, type) and value.__module__ == module
    ]


def _page(module: str, text: str) -> Page:
    directives = "\n".join(f"::: {module}.{name}\n" for name in public_names(module))
    heading = f"# {module}\n\n{text} `from {module} import …`\n\n"
    return Page(module, f"reference/python/{module.replace('.', '-')}.md", heading + directives)
