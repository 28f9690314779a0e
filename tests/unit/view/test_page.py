"""Page of a report: its data, and that it is complete, safe and self-contained."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hatchling.builders.wheel import WheelBuilder
from view_reports import HOSTILE, small_profile, small_report, small_verification

from byoc_mlir.runtime.report import Report, ReportRow
from byoc_mlir.view import page

_EMPTY = frozenset({"meta", "input", "br", "hr", "link", "img"})


class _Parsed(HTMLParser):
    """Parser of a page's elements, which checks that they are closed in order."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.scripts: dict[str, str] = {}
        self.attributes: list[tuple[str, str]] = []
        self._script: str | None = None
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in _EMPTY:
            self.open.append(tag)
        if tag == "script":
            self._script = dict(attrs).get("id") or "code"
            assert self._script not in self.scripts
            self.scripts[self._script] = ""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self.scripts[self._script] += data


def _data(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_Parsed(text).scripts["data"])
    return found


def test_nodes_and_connections() -> None:
    data = _data(small_report().to_html("net"))
    assert data["title"] == "net"
    assert [node["place"] for node in data["nodes"]] == ["folded", "planted", "planted", "host"]
    assert data["nodes"][1]["inputs"] == ["x", "w"]
    assert data["nodes"][3]["reason"] == "planted: no rule for sin"
    assert data["nodes"][2]["region"] == "planted_main_0"
    assert data["profile"] is None
    assert data["verification"] is None


def test_time() -> None:
    data = _data(small_report().to_html(profile=small_profile()))
    assert [node["steps"] for node in data["nodes"]] == [[], [0], [0], [1]]
    assert data["steps"][0]["nodes"] == [1, 2]
    assert data["steps"][0]["share"] == 0.75
    assert data["steps"][0]["gflops"] == pytest.approx(4.0)
    assert data["steps"][2]["title"] == "call from Python"
    assert data["profile"] == {"milliseconds": 4.0, "runs": 5, "threads": 1}


def test_error() -> None:
    data = _data(small_report().to_html(verification=small_verification()))
    assert [node["error"] for node in data["nodes"]] == [None, 1e30, 1e-7, 0.25]
    assert [node["agrees"] for node in data["nodes"]] == [True, False, True, False]
    assert data["verification"] == {"agrees": False, "against": "onnxruntime"}


def test_hostile_names_stay_text() -> None:
    text = small_report(HOSTILE).to_html(HOSTILE, profile=small_profile(HOSTILE))
    parsed = _Parsed(text)
    assert set(parsed.scripts) == {"data", "details", "code"}
    data = json.loads(parsed.scripts["data"])
    assert data["nodes"][1]["name"] == HOSTILE
    assert data["title"] == HOSTILE
    assert "alert(" not in parsed.scripts["code"]
    assert parsed.scripts["details"] == ""


def test_nothing_is_loaded_from_elsewhere() -> None:
    text = small_report().to_html()
    assert not re.search(r"https?://|//[a-z0-9-]+\.[a-z]", text)
    assert "sourceMappingURL" not in text
    parsed = _Parsed(text)
    names = {name for name, _ in parsed.attributes}
    assert not names & {"src", "href", "srcset", "action"}
    assert "default-src 'none'; script-src 'unsafe-inline'" in text
    assert "@import" not in text
    assert "url(#arrow)" in text  # the only url() is of the page itself
    assert text.count("url(") == 1


def test_the_library_comes_with_its_licence() -> None:
    text = small_report().to_html()
    assert text.index("Copyright (c) 2012-2014 Chris Pettitt") < text.index("var dagre=")


def test_a_page_of_many_nodes_is_small() -> None:
    rows = [
        ReportRow(
            f"/model/layers.{at}/Conv", "Conv", "host", inputs=(f"t{at}",), outputs=(f"t{at + 1}",)
        )
        for at in range(2000)
    ]
    assert len(Report(tuple(rows)).to_html().encode()) < 1_000_000


def test_notebooks_get_a_frame() -> None:
    frame = small_report(HOSTILE)._repr_html_()

    class Frame(HTMLParser):
        source = ""

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert tag == "iframe"
            Frame.source = dict(attrs)["srcdoc"] or ""

    Frame().feed(frame)
    assert _data(Frame.source)["nodes"][1]["name"] == HOSTILE


def test_a_wheel_has_all_files() -> None:
    builder = WheelBuilder(str(Path(__file__).parents[3]))
    packed = {Path(file.distribution_path).as_posix() for file in builder.recurse_included_files()}
    folder = Path(page.__file__).parent
    assets = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert len(assets) > 10
    for path in assets:
        assert path.relative_to(folder.parents[1]).as_posix() in packed
