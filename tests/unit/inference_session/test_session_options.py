"""Options that ONNX Runtime's users set: kept, or refused with advice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnxruntime
import pytest

from byoc_mlir.errors import ByocError, InternalError
from byoc_mlir.inference_session import GraphOptimizationLevel, RunOptions, SessionOptions


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(SessionOptions, onnxruntime.SessionOptions), (RunOptions, onnxruntime.RunOptions)],
)
def test_all_fields_are_there(ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    mine, known = ours(), theirs()
    for name in dir(known):
        value = None if name.startswith("_") else getattr(known, name)
        if isinstance(value, bool | int | str):
            assert type(getattr(mine, name)) is type(value), name
            setattr(mine, name, getattr(mine, name))


def test_fields_keep_what_is_set() -> None:
    options = SessionOptions()
    options.intra_op_num_threads = 3
    options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
    assert (options.intra_op_num_threads, options.graph_optimization_level) == (3, 0)
    run = RunOptions()
    run.add_run_config_entry("key", "value")
    assert run.get_run_config_entry("key") == "value"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("intra_op_threads", 2, "no field 'intra_op_threads'; did you mean 'intra_op_num_threads'"),
        ("intra_op_num_threads", "2", r"intra_op_num_threads is '2' \(str\); accepted is int"),
        ("enable_mem_pattern", 1, "accepted is bool"),
        ("logid", None, "accepted is str"),
        ("graph_optimization_level", "all", "accepted is int"),
        ("enable_profiling", True, "Executable.profile"),
    ],
)
def test_fields_that_are_refused(name: str, value: object, said: str) -> None:
    options = SessionOptions()
    before = getattr(options, name, None)
    with pytest.raises(ByocError, match=said) as caught:
        setattr(options, name, value)
    assert not isinstance(caught.value, InternalError)
    assert getattr(options, name, None) == before


def test_runs_cannot_be_ended() -> None:
    with pytest.raises(ByocError, match="cannot be ended"):
        RunOptions().terminate = True
    with pytest.raises(ByocError, match="there is no entry 'a'; there is -"):
        RunOptions().get_run_config_entry("a")


def test_libraries_of_ops_are_refused() -> None:
    with pytest.raises(ByocError, match=r"frontend\.register_op"):
        SessionOptions().register_custom_ops_library("ops.so")
