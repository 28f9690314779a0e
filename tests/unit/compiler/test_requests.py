"""Options of `compile`, each declared once: arguments, documentation, flags and keys follow."""

from __future__ import annotations

import argparse
import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import byoc_mlir
from byoc_mlir.compiler.request import OPTIONS, Request
from byoc_mlir.limits import DEFAULT_LIMITS, Limits
from byoc_mlir.tools.options import add_option_arguments, options_of

_SAID = """--targets dnnl{winograd=off},mine --threads 3 --precision bf16 --fallback allow
--prune off --limit nodes=9 --limit seconds=0.5 --disable a --disable b --pass c
--resident x=npu --resident y=npu --size n=8 --size m=4 --exact d --weight-memory 3
--merge-equal --trusted"""


def _checked(**options: Any) -> Request:
    return Request(b"model", **options).checked()


def test_compile_takes_what_a_request_has() -> None:
    parameters = inspect.signature(byoc_mlir.compile).parameters
    request = Request(b"model")
    assert list(parameters) == ["model", *OPTIONS]
    assert {name: one.default for name, one in parameters.items() if name != "model"} == {
        name: getattr(request, name) for name in OPTIONS
    }
    positional = [name for name, one in parameters.items() if one.kind is not one.KEYWORD_ONLY]
    assert positional == ["model", "targets", "threads", "precision", "fallback"]


@pytest.mark.parametrize("name", ["model", *OPTIONS])
def test_compile_documents_each_option(name: str) -> None:
    text = byoc_mlir.compile.__doc__
    assert text is not None
    assert text.count(f"\n        {name}: ") == 1


def test_what_is_left_out_is_the_same_as_the_default() -> None:
    nothing: dict[str, Any] = dict.fromkeys(("limits", "sizes", "backend_options"))
    assert _checked() == _checked(**nothing) == Request(b"model")
    assert Request(b"model").limits is DEFAULT_LIMITS


def test_nothing_changes_a_checked_request(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    targets, sizes, options = ["dnnl"], {"n": 8}, {"dnnl": {"winograd": False}}
    request = _checked(targets=targets, sizes=sizes, backend_options=options, dump_ir="ir")
    targets.append("mine")
    sizes["n"] = 9
    options["dnnl"]["winograd"] = True
    assert request.targets == ("dnnl",)
    assert request.sizes == {"n": 8}
    assert request.backend_options == {"dnnl": {"winograd": False}}
    assert request.dump_ir == tmp_path / "ir"


def test_names_that_have_no_order_make_one_key() -> None:
    some, others = _checked(disable=["b", "a", "b"], exact=["y", "x"]), _checked(disable=("a", "b"))
    assert some.choices == replace(others, exact=("x", "y")).choices
    assert some.choices != others.choices


def test_a_key_has_all_that_programs_depend_on() -> None:
    others = {"cache", "limits", "dump_ir", "tune", "samples", "interpreter", "load", "trusted"}
    assert Request(b"model").choices.keys() == OPTIONS.keys() - others


def test_the_command_line_says_what_compile_takes() -> None:
    parser = argparse.ArgumentParser()
    add_option_arguments(parser)
    assert options_of(parser.parse_args(_SAID.split())) == {
        "targets": ("dnnl{winograd=off}", "mine"),
        "threads": 3,
        "precision": "bf16",
        "fallback": "allow",
        "prune": "off",
        "limits": Limits(nodes=9, seconds=0.5),
        "calibration": None,
        "disable": ["a", "b"],
        "passes": ["c"],
        "resident": {"x": "npu", "y": "npu"},
        "sizes": {"n": 8, "m": 4},
        "exact": ["d"],
        "samples": None,
        "weight_memory": 3.0,
        "merge_equal": True,
        "trusted": True,
    }


def test_a_command_line_that_says_nothing_is_a_request_that_says_nothing() -> None:
    parser = argparse.ArgumentParser()
    add_option_arguments(parser)
    assert Request(b"model", **options_of(parser.parse_args([]))).checked() == Request(b"model")
