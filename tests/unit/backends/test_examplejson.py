"""ExampleJSON: regions as text with a runtime of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from examplejson.runtime import ExampleJsonModule
from seed_graphs import add_sub_mul, check_in_new_process, compile_and_check, relu_of_sums

from byoc_mlir.errors import ExecutionError

BY_HAND = """\
subgraph_0
  input 0 10 10
  input 1 10 10
  input 2 10 10
  input 3 10 10
  add 4 inputs: 0 1 shape: 10 10
  sub 5 inputs: 4 2 shape: 10 10
  mul 6 inputs: 5 3 shape: 10 10
"""


def test_add_sub_mul_is_the_text_of_the_format(tmp_path: Path) -> None:
    model = add_sub_mul()
    with compile_and_check(model, "examplejson", tolerance=0, fallback="forbid") as executable:
        expected = BY_HAND.replace("subgraph_0", "examplejson_main_0") + "  output 6\n"
        assert executable.get_source("examplejson_main_0") == expected
        check_in_new_process(executable, model, tmp_path)


def test_several_results_and_a_constant(tmp_path: Path) -> None:
    model = relu_of_sums()
    with compile_and_check(model, "examplejson", tolerance=0) as executable:
        assert executable.report().counts()["examplejson"] == 3
        check_in_new_process(executable, model, tmp_path)


def test_a_file_written_by_hand_runs_and_survives_saving(tmp_path: Path) -> None:
    path = tmp_path / "graphs.examplejson"
    path.write_text(BY_HAND + "\nsubgraph_1\n  input 0 10 10\n  relu 1 inputs: 0 shape: 10 10\n")
    module = ExampleJsonModule.from_file(path)
    again = ExampleJsonModule.load(module.save())
    assert again.get_source() == module.get_source() == path.read_text()
    x = list(np.random.default_rng(0).standard_normal((4, 10, 10)).astype(np.float32))
    out = np.empty((10, 10), np.float32)
    again.get_function("subgraph_0")(x, [out])
    np.testing.assert_array_equal(out, (x[0] + x[1] - x[2]) * x[3])
    again.get_function("subgraph_1")(x[:1], [out])
    np.testing.assert_array_equal(out, np.maximum(x[0], 0))
    with pytest.raises(ExecutionError, match="no subgraph 'other'; there are subgraph_0, subgraph"):
        again.get_function("other")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("  div 4 inputs: 0 1 shape: 10 10", "there is no op 'div', only add, sub, mul, relu"),
        ("  add four inputs: shape: 10 10", "invalid literal"),
        ("  add 4 0 1", "'inputs:' is not in list"),
        ("  const 4 shape: 2 2 values: 1 2 3", "cannot reshape"),
        ("  add", "not enough values"),
        ("  relu 4 inputs: 3 shape: 10 10", "no line before it makes tensor 3"),
        ("  output 3", "no line before it makes tensor 3"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(line: str, said: str) -> None:
    with pytest.raises(ExecutionError, match=f"line 2: '{line.strip()}'") as info:
        ExampleJsonModule(f"subgraph_0\n{line}\n")
    assert said in str(info.value)
