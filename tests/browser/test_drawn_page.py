"""Page in a browser: its drawing, and its reactions to mouse and keys."""

from __future__ import annotations

from collections.abc import Callable

import drawn_reports
import pytest
from drawn_reports import HOSTILE
from playwright.sync_api import Page, expect

Open = Callable[..., Page]


def _node(page: Page, index: int):
    return page.locator(f'.node[data-node="{index}"]')


def test_what_is_drawn(opened: Open) -> None:
    page = opened()
    expect(page.locator(".node")).to_have_count(5)  # neither the folded one nor the removed one
    expect(page.locator(".region")).to_have_count(2)
    assert page.locator(".edge").count() == 5  # one through the node that was removed
    expect(page.locator("#title")).to_have_text(HOSTILE)
    expect(page.locator("#panel")).to_contain_text("DIFFERS from onnxruntime")
    expect(page.locator("#panel td.number").first).to_have_text("3.000 ms")
    expect(page.locator("img")).to_have_count(0)


def test_nodes_of_a_region_are_inside_of_its_box(opened: Open) -> None:
    page = opened()
    box = page.locator('.region[data-box="planted_main_0"] > rect').bounding_box()
    for index in (1, 2):
        node = _node(page, index).locator("rect").bounding_box()
        assert box["x"] <= node["x"]
        assert node["x"] + node["width"] <= box["x"] + box["width"]
        assert box["y"] <= node["y"]
        assert node["y"] + node["height"] <= box["y"] + box["height"]


def test_hover(opened: Open) -> None:
    page = opened()
    _node(page, 4).hover()
    expect(page.locator("#tip")).to_be_visible()
    expect(page.locator("#tip")).to_contain_text("no rule for sin")
    expect(page.locator("#tip")).to_contain_text("0.500 ms")
    _node(page, 5).hover()
    expect(page.locator("#tip")).to_contain_text(HOSTILE)
    page.locator("#title").hover()
    expect(page.locator("#tip")).to_be_hidden()


def test_click(opened: Open) -> None:
    page = opened()
    _node(page, 1).click()
    expect(page.locator("#panel h2")).to_have_text("conv")
    expect(page.locator("#panel")).to_contain_text("planted.conv")
    expect(page.locator("#panel")).to_contain_text("3.000 ms, 75.0% of the run")
    expect(page.locator("#panel pre").first).to_have_text("%a = relay.nn.conv2d %x")
    page.get_by_text("after merge-composite").click()
    expect(page.locator("#panel pre").nth(1)).to_be_visible()
    page.locator("#panel dd a", has_text="relu (Relu)").first.click()
    expect(page.locator("#panel h2")).to_have_text("relu")
    expect(page.locator(".edge.near")).to_have_count(3)
    _node(page, 4).click()
    expect(page.locator("#panel details", has_text="sin_0")).to_have_count(1)
    _node(page, 5).click()
    expect(page.locator("#panel pre").first).to_have_text(HOSTILE)


def test_regions(opened: Open) -> None:
    page = opened()
    bar = page.locator('.bar[data-group="planted_main_0"]')
    bar.click()
    expect(page.locator("#panel h2")).to_have_text("planted_main_0")
    expect(page.locator("#panel")).to_contain_text("func.func private @planted_main_0")
    expect(page.locator("#panel summary", has_text="planted_main_0_run")).to_have_count(1)
    bar.dblclick()
    expect(page.locator(".node.closed")).to_have_count(1)
    expect(_node(page, 1)).to_have_count(0)
    page.locator(".node.closed").dblclick()
    expect(_node(page, 1)).to_have_count(1)
    page.locator("#collapse").click()
    expect(page.locator(".node.closed")).to_have_count(2)
    page.locator("#expand").click()
    expect(page.locator(".node.closed")).to_have_count(0)


def test_search(opened: Open) -> None:
    page = opened()
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("planted conv")
    expect(page.locator("#matches")).to_have_text("2 found")
    expect(page.locator(".node.missed")).to_have_count(3)
    page.keyboard.press("Enter")
    expect(page.locator("#matches")).to_have_text("1 of 2")
    expect(page.locator("#panel h2")).to_have_text("conv")
    page.keyboard.press("Enter")
    expect(page.locator("#panel h2")).to_have_text("relu")
    page.keyboard.press("Shift+Enter")
    expect(page.locator("#panel h2")).to_have_text("conv")
    page.locator("#search").fill("")
    expect(page.locator(".node.missed")).to_have_count(0)


def test_search_opens_closed_regions(opened: Open) -> None:
    page = opened()
    page.locator("#collapse").click()
    page.locator("#search").fill("relu")
    page.keyboard.press("Enter")
    expect(_node(page, 2)).to_have_class("node selected")


def test_filter(opened: Open) -> None:
    page = opened()
    page.locator("#show-host").uncheck()
    expect(page.locator(".node")).to_have_count(3)
    page.locator("#show-removed").check()
    expect(page.locator(".node")).to_have_count(4)
    page.locator("#show-folded").check()
    expect(page.locator(".node")).to_have_count(5)


@pytest.mark.parametrize(("colour", "heated", "wrong"), [("time", 5, 0), ("error", 2, 1)])
def test_heat(opened: Open, colour: str, heated: int, wrong: int) -> None:
    page = opened()
    before = _fill(page, 4)
    page.locator("#colour").select_option(colour)
    expect(page.locator(".node.heated")).to_have_count(heated)
    expect(page.locator(".node.wrong")).to_have_count(wrong)
    assert _fill(page, 4) != before
    page.locator("#colour").select_option("place")
    expect(page.locator(".node.heated")).to_have_count(0)


def test_dark_mode(opened: Open) -> None:
    light, dark = opened(), opened(colour_scheme="dark")
    assert _background(light) == "rgb(255, 255, 255)"
    assert _background(dark) != _background(light)
    light.keyboard.press("d")
    assert _background(light) == _background(dark)
    expect(light.locator("#theme")).to_have_text("Light")
    dark.locator("#theme").click()
    assert _background(dark) == "rgb(255, 255, 255)"


def test_keyboard(opened: Open) -> None:
    page = opened()
    page.locator("#graph").focus()
    heading = page.locator("#panel h2")
    for key, name in (
        *(("ArrowRight", "conv"), ("ArrowDown", "relu"), ("ArrowDown", "sin")),
        *(("ArrowRight", HOSTILE), ("ArrowDown", "add"), ("ArrowUp", "sin"), ("ArrowLeft", "relu")),
    ):
        page.keyboard.press(key)
        expect(heading).to_have_text(name)
    page.keyboard.press("c")
    expect(page.locator(".node.closed")).to_have_count(1)
    page.keyboard.press("c")
    before = page.locator("#graph > g").get_attribute("transform")
    page.keyboard.press("+")
    assert page.locator("#graph > g").get_attribute("transform") != before
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(heading).to_have_text(HOSTILE)  # the model's own title


def test_wheel_and_drag(opened: Open) -> None:
    page = opened()
    canvas = page.locator("#graph").bounding_box()
    x, y = canvas["x"] + 30, canvas["y"] + 30
    before = _node(page, 1).bounding_box()
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 40, steps=4)
    page.mouse.up()
    after = _node(page, 1).bounding_box()
    assert after["x"] - before["x"] == pytest.approx(60, abs=1)
    assert after["y"] - before["y"] == pytest.approx(40, abs=1)
    page.mouse.wheel(0, -300)
    assert _node(page, 1).bounding_box()["width"] > before["width"]


@pytest.mark.parametrize("make", [drawn_reports.large_page, drawn_reports.host_page])
def test_two_thousand_nodes(opened: Open, make: Callable[[], str]) -> None:
    page = opened(make())
    expect(page.locator(".node").first).to_be_visible()
    page.locator("#search").fill("op_1234")
    page.keyboard.press("Enter")
    expect(page.locator("#matches")).to_have_text("1 of 1")
    selected = page.locator(".node.selected")
    expect(selected).to_be_visible()
    assert selected.bounding_box()["width"] > 100  # large enough to be read


def test_in_a_notebook(opened: Open) -> None:
    frame = f"<div id=panel><h2>a cell</h2></div>{drawn_reports.framed()}"
    page = opened(frame)
    inside = page.frame_locator("iframe")
    expect(inside.locator(".node")).to_have_count(5)


def _fill(page: Page, index: int) -> str:
    return _node(page, index).locator("rect").evaluate("one => getComputedStyle(one).fill")


def _background(page: Page) -> str:
    return page.evaluate("getComputedStyle(document.body).backgroundColor")
