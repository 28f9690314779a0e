"""Hooks of mkdocs.yml: generated pages, and links between pages.

mkdocs calls them by their names.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

from backend_page import backend_page
from command_page import command_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page as SitePage
from op_types_page import op_types_page
from ops import op_pages
from page import Page
from pass_pages import pass_pages
from python_page import python_pages

sys.path.append(str(Path(__file__).parents[1]))
from operators_page import operators_page  # which imports from that folder

_ROOT = Path(__file__).parents[2]

_MENTIONED_PAGE = re.compile(r"(?<!\[)`(?:docs/)?(?P<name>[\w-]+\.md)`")
_LINK_TO_CODE = re.compile(
    r"\[(?P<text>[^\]]+)\]\(\.\./(?!\.\.)(?:byoc_mlir|examples|tests)/[^)]*\)"
)
_OUTSIDE = re.compile(r"<(?:script|img|iframe|source)[^>]*\bsrc=\"(?:https?:)?//[^>]*>")
_OUTSIDE_LINK = re.compile(
    r"<link[^>]*\brel=\"(?:stylesheet|preconnect|icon|preload)\"[^>]*href=\"(?:https?:)?//[^>]*>"
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Adds the generated pages to the navigation, after the others."""
    assert config.nav is not None
    config.nav.append({"Reference": _reference_nav()})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages, the README as the first page, and the list of changes."""
    texts = {page.path: page.text for pages in _reference().values() for page in pages}
    texts["index.md"] = (_ROOT / "README.md").read_text().replace("](docs/", "](")
    texts["changes.md"] = (_ROOT / "CHANGELOG.md").read_text()
    for path, text in texts.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: SitePage, config: MkDocsConfig, files: Files) -> str:
    """Turns mentions of pages into links, and links to files that are no pages into text."""
    up = "../" * (len(Path(page.file.src_uri).parts) - 1)

    def link(match: re.Match[str]) -> str:
        name = match["name"]
        known = files.get_file_from_path(name) is not None and name != page.file.src_uri
        return f"[{name.removesuffix('.md')}]({up}{name})" if known else match[0]

    return _MENTIONED_PAGE.sub(link, _LINK_TO_CODE.sub(r"\g<text>", markdown))


def on_post_page(output: str, page: SitePage, config: MkDocsConfig) -> str:
    """Refuses a page that loads anything from another host, since the site is read offline, too."""
    for pattern in (_OUTSIDE, _OUTSIDE_LINK):
        found = pattern.search(output)
        if found:
            raise PluginError(f"{page.file.src_uri} loads from another host: {found[0]}")
    return output


@cache
def _reference() -> dict[str, list[Page]]:
    """Returns the generated pages, by chapter."""
    return {
        "ONNX": [operators_page(), op_types_page()],
        "Ops": op_pages(),
        "Passes": pass_pages(),
        "Python": python_pages(),
        "": [backend_page(), command_page()],
    }


def _reference_nav() -> list[dict[str, Any]]:
    chapters: list[dict[str, Any]] = []
    for chapter, pages in _reference().items():
        entries = [{page.title: page.path} for page in pages]
        chapters += [{chapter: entries}] if chapter else entries
    return chapters
