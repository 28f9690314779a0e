"""Browser for the tests of the page: Chromium, from Debian's path or BYOC_CHROMIUM."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import drawn_reports
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

_CHROMIUM = os.environ.get("BYOC_CHROMIUM", "/usr/bin/chromium")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu"]
        started = playwright.chromium.launch(executable_path=_CHROMIUM, args=options)
        yield started
        started.close()


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Opens a page of a report; at the end, checks that the page had no error and loaded no file
    but its own.
    """
    problems: list[str] = []
    loaded: list[str] = []
    contexts = []

    def open_page(text: str = "", colour_scheme: str = "light", at: Path | None = None) -> Page:
        path = at or tmp_path / "page.html"
        if at is None:
            path.write_text(text or drawn_reports.page(), encoding="utf-8")
        context = browser.new_context(
            viewport={"width": 1280, "height": 800}, color_scheme=colour_scheme, offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console", lambda said: problems.append(said.text) if said.type == "error" else None
        )
        page.on("request", lambda request: loaded.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector("#panel h2")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []
    assert [url for url in loaded if not url.startswith("file:")] == []
