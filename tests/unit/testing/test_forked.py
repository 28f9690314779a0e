"""Scripts in forks: their arguments, output and end."""

from __future__ import annotations

import pytest

from byoc_mlir.testing.forked import run_forked

LIBRARIES = """
import byoc_mlir.compiler.pipeline, sys
files = {line.split()[-1] for line in open("/proc/self/maps")}
print(*(name for name in ("dnnl", "gomp") if any(f"lib{name}" in file for file in files)))
"""


def test_no_library_is_loaded_before() -> None:
    """Checks that no library is loaded, which would have read the environment of another
    process."""
    assert run_forked(LIBRARIES) == "\n"


def test_a_script_is_given_arguments_and_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import os, sys; print(sys.argv[1:], os.environ['GIVEN'], os.environ.get('INHERITED'))"
    assert run_forked(code, "a", "b", environment={"GIVEN": "1"}) == "['a', 'b'] 1 None\n"
    monkeypatch.setenv("INHERITED", "2")
    assert run_forked(code, environment={"GIVEN": "1"}) == "[] 1 2\n"


def test_what_c_prints_is_told() -> None:
    assert run_forked("import ctypes; ctypes.CDLL(None).puts(b'from C')") == "from C\n"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "print('so far'); raise KeyError('no such key')",
            r"status 1.*\nso far\n(.|\n)*no such key",
        ),
        ("import sys; sys.exit(3)", "status 3"),
        ("import os; os.abort()", "status -6"),
    ],
)
def test_a_script_that_fails(code: str, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        run_forked(code)


def test_a_script_that_takes_too_long() -> None:
    with pytest.raises(AssertionError, match="status -9"):
        run_forked("import time; time.sleep(60)", seconds=0.5)
