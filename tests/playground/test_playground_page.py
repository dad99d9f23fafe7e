"""The page in headless Chromium: every control is used, by mouse and keyboard, and axe-core finds nothing wrong.

`make playground-tests` installs what these tests need; without it they are skipped. What the page shows is compared
with a Matcher or with what the server answers.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

import constrain
from constrain.playground.play_application import create_play_app
from constrain.playground.playground_routes import add_playground
from constrain.serving.application import create_app
from constrain.serving.server_settings import ServerSettings
from tests.playground.page_browser import CHROMIUM, SIZES, launch
from tests.serving.live_server import serve_live

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is missing: make playground-tests")

AXE = Path(sys.prefix, "axe", "node_modules", "axe-core", "axe.min.js")
KEY = "key-of-the-test"
Page = Any

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is missing: make playground-tests")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        one = launch(playwright)
        yield one
        one.close()


@pytest.fixture(scope="module")
def address(playing: FastAPI) -> Iterator[str]:
    with serve_live(playing) as url:
        yield url.removesuffix("v1")


@contextmanager
def opened(browser: Any, address: str, look: str = "light", **more: Any) -> Iterator[Page]:
    """A page in a fresh context. Errors of scripts and of the Content-Security-Policy fail the test."""
    width, height, scheme = SIZES[look]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **more)
    page, faults = context.new_page(), list[str]()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.goto(address)
    yield page
    context.close()
    assert not [fault for fault in faults if "the server responded with a status of 4" not in fault]


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Page]:
    with opened(browser, address) as one:
        sync_api.expect(one.locator("#verdict")).to_contain_text("Refused")
        yield one


def expect(page: Page, selector: str) -> Any:
    return sync_api.expect(page.locator(selector))


def write(page: Page, kind: str, source: str, typed: str = "") -> None:
    """Choose a kind and write a source, and a text."""
    page.select_option("#kind", kind)
    page.fill("#source", source)
    page.fill("#typed", typed)


def marks(page: Page) -> list[tuple[str, str]]:
    """The coloured pieces of the text: class and text."""
    found = page.locator("#marks mark")
    return [(one.get_attribute("class"), one.text_content()) for one in found.all()]


# ---- a text ----------------------------------------------------------------------------------------------------------


def test_a_text_is_coloured_as_a_matcher_judges_it(page: Page) -> None:
    write(page, "regex", "(ab|ac)𝒳end", "ab𝒳en?")
    expect(page, "#verdict").to_contain_text("Refused at line 1, column 6.")
    assert marks(page) == [
        ("forced", "a"), ("accepted", "b"), ("forced", "𝒳en"), ("illegal", "?"),
    ]  # fmt: skip
    expect(page, "#expected").to_have_text('"d"')
    page.click("#cut")
    expect(page, "#typed").to_have_value("ab𝒳en")
    expect(page, "#verdict").to_contain_text("Accepted so far")
    assert marks(page)[-1] == ("ghost", "d")
    page.press("#typed", "Control+Enter")
    expect(page, "#typed").to_have_value("ab𝒳end")
    expect(page, "#verdict").to_contain_text("Complete. Nothing may follow.")
    page.click("#clear")
    expect(page, "#verdict").to_contain_text("Nothing typed yet.")
    page.click("#insert-forced")
    expect(page, "#typed").to_have_value("a")
    page.click("#complete")
    expect(page, "#typed").to_have_value(re.compile("a[bc]𝒳end"))


def test_positions_and_allowed_tokens(page: Page, playing: FastAPI) -> None:
    write(page, "schema", '{"type": "array", "items": {"properties": {"a": {"type": "number"}}}}', '[1, {"a": -')
    expect(page, "#position li").to_have_text(["document", "[1]", "a"])
    constraint = constrain.compile(
        playing.state.playground.vocabulary,
        schema={"type": "array", "items": {"properties": {"a": {"type": "number"}}}},
    )
    matcher = constraint.matcher()
    matcher.advance_bytes(b'[1, {"a": -')
    allowed = sum(matcher.allows(token) for token in range(constraint.vocabulary.size))
    expect(page, "#allowed").to_have_text(f"{allowed:,} of 4,096")
    write(page, "gbnf", 'root ::= "(" inner ")"\ninner ::= "x" | root', "((x")
    expect(page, "#position li").to_have_text(["root", "inner", "root"])


def test_sources_that_are_refused_say_why(page: Page) -> None:
    write(page, "schema", '{"type": "strin"}')
    expect(page, "#source-error").to_contain_text("strin")
    expect(page, "#source").to_have_attribute("aria-invalid", "true")
    expect(page, "#verdict").to_contain_text("refused")
    page.fill("#source", '{"type": "string"}')
    expect(page, "#source-error").to_be_hidden()
    write(page, "lark", "start: <img src=x onerror=alert(1)>")
    expect(page, "#source-error").to_contain_text("<img")
    assert page.locator("main img").count() == 0


def test_every_example_and_option_loads(page: Page) -> None:
    for label in page.locator("#example option").all_text_contents()[1:]:
        page.select_option("#example", label=label)
        expect(page, "#verdict").to_contain_text(re.compile("Refused at|Accepted so far|Complete"), timeout=30_000)
        expect(page, "#source-error").to_be_hidden()
    page.select_option("#kind", "schema")
    page.fill("#source", '{"enum": [1.5]}')
    page.fill("#typed", "15e-1")
    expect(page, "#verdict").to_contain_text("Refused at")
    page.select_option("#option", "any")
    expect(page, "#verdict").to_contain_text("Complete.")


# ---- the model -------------------------------------------------------------------------------------------------------


def test_steps_of_the_model(page: Page) -> None:
    write(page, "regex", "(light )?(red|blue)|white")
    page.click("#tab-step")
    expect(page, "#step-state").to_contain_text("allowed.")
    page.fill("#prompt", "Name a colour.")
    page.press("#prompt", "Tab")
    expect(page, "#step-count").to_have_text("0")
    page.locator("#bars button", has_text="light").first.click()
    expect(page, "#step-count").to_have_text("1")
    expect(page, "#written").to_contain_text("light")
    page.click("#step-likeliest")
    expect(page, "#step-count").to_have_text("2")
    page.click("#step-back")
    expect(page, "#step-count").to_have_text("1")
    page.click("#step-restart")
    expect(page, "#step-count").to_have_text("0")
    expect(page, "#step-distortion").to_have_text("0.00 nats")
    page.click("#step-draw")
    expect(page, "#step-count").to_have_text("1")
    page.click("#step-run")
    expect(page, "#step-state").to_have_text("The text has ended.")
    rows = page.locator("#mass-table tbody tr")
    assert rows.count() == int(page.text_content("#step-count"))
    assert page.locator("#mass-chart rect").count() == rows.count()
    total = float(rows.last.locator("td").last.text_content())
    assert page.text_content("#step-distortion") == f"{total:.2f} nats" and total > 0


def test_samplers_side_by_side(page: Page) -> None:
    write(page, "regex", "(light )?(red|blue)|white")
    page.click("#tab-sample")
    page.fill("#sample-prompt", "Name a colour.")
    for name in page.locator("#samplers input").all():
        name.set_checked(name.get_attribute("value") in ("masked", "exact"))
    page.fill("#draws", "64")
    page.fill("#most-tokens", "12")
    page.fill("#seed", "3")
    page.click("#sample-run")
    expect(page, "#sample-state").to_contain_text("Done.", timeout=120_000)
    expect(page, "#histograms section").to_have_count(2)
    expect(page, "#histograms small").to_have_text(["64 draws"] * 2)
    assert page.locator("#distance-chart polyline").count() == page.locator("#distance-table tbody tr").count() == 2
    distance = "#distance-table tbody tr td:nth-child(3)"
    drawn = page.locator(distance).all_text_contents()
    assert float(drawn[1]) < 0.25
    page.select_option("#weighing", "shares")
    assert page.locator(distance).all_text_contents()[0] != drawn[0]
    page.fill("#draws", "512")
    page.click("#sample-run")
    expect(page, "#histograms section").not_to_have_count(0)
    page.click("#sample-stop")
    expect(page, "#sample-state").to_have_text("Stopped.")
    expect(page, "#sample-run").to_be_enabled()


def test_too_many_texts_have_no_law(page: Page) -> None:
    page.click("#tab-sample")
    page.fill("#draws", "8")
    page.fill("#most-tokens", "60")
    for name in page.locator("#samplers input").all():
        name.set_checked(name.get_attribute("value") == "masked")
    page.click("#sample-run")
    expect(page, "#sample-state").to_contain_text("There is no exact law to compare with", timeout=60_000)
    expect(page, "#sample-state").to_contain_text("Done.", timeout=120_000)
    expect(page, "#convergence").to_be_hidden()


# ---- links, keys, keyboard, colours ----------------------------------------------------------------------------------


def test_a_link_holds_the_state(browser: Any, address: str) -> None:
    with opened(browser, address, permissions=["clipboard-read", "clipboard-write"]) as page:
        write(page, "lark", 'start: "ü" NUMBER\nNUMBER: /[0-9]+/', "ü1")
        page.click("#tab-step")
        page.click("#step-draw")
        expect(page, "#step-count").to_have_text("1")
        page.click("#copy-link")
        expect(page, "#copy-link").to_have_text("Copied")
        link = page.evaluate("navigator.clipboard.readText()")
        written = page.text_content("#written")
    with opened(browser, link) as page:
        expect(page, "#kind").to_have_value("lark")
        expect(page, "#source").to_have_value('start: "ü" NUMBER\nNUMBER: /[0-9]+/')
        expect(page, "#tab-step").to_have_attribute("aria-selected", "true")
        expect(page, "#written").to_have_text(written)
        page.click("#tab-type")
        expect(page, "#typed").to_have_value("ü1")
    for junk in ("#s=%%%", "#s=bnVsbA", "#s=eyJraW5kIjoieCIsInRva2VucyI6Ilt4In0", "#other"):
        with opened(browser, address + junk) as page:
            expect(page, "#verdict").not_to_be_empty()


def test_views_and_actions_by_keyboard(page: Page) -> None:
    page.focus("#tab-type")
    page.keyboard.press("ArrowRight")
    expect(page, "#tab-step").to_be_focused()
    expect(page, "#panel-step").to_be_visible()
    page.keyboard.press("End")
    expect(page, "#panel-sample").to_be_visible()
    page.keyboard.press("ArrowRight")
    expect(page, "#panel-type").to_be_visible()
    page.keyboard.press("Tab")
    expect(page, "#typed").to_be_focused()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") != "typed", "the field is no trap"
    page.focus("body")
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    assert page.url.endswith("#work") or "#s=" in page.url


def test_colours_are_chosen_and_kept(page: Page) -> None:
    for label, theme in (("Light", "light"), ("Dark", "dark")):
        page.click("#theme")
        expect(page, "#theme").to_have_text(label)
        expect(page, "html").to_have_attribute("data-theme", theme)
    page.reload()
    expect(page, "html").to_have_attribute("data-theme", "dark")
    page.click("#theme")
    expect(page, "#theme").to_have_text("Auto")


def test_a_key_is_asked_for(browser: Any, playing: FastAPI) -> None:
    app = create_app(
        playing.state.playground.engine, ServerSettings(api_keys=(KEY,)), additions=(add_playground,)
    )  # fmt: skip
    with serve_live(app) as url, opened(browser, url.removesuffix("v1")) as page:
        for key in ("wrong-key", KEY):
            expect(page, "#key-dialog").to_be_visible()
            page.fill("#key", key)
            page.click("#key-dialog button.primary")
        expect(page, "#verdict").to_contain_text("Refused at")
        expect(page, "#key-dialog").to_be_hidden()


def test_without_a_model_the_page_says_what_is_missing(browser: Any) -> None:
    with serve_live(create_play_app(None, ServerSettings())) as url, opened(browser, url.removesuffix("v1")) as page:
        expect(page, "#model-note").to_contain_text("no model")
        expect(page, "#verdict").to_contain_text("Refused at")
        for view in ("step", "sample"):
            page.click(f"#tab-{view}")
            expect(page, f"#panel-{view} .needs-model").to_contain_text("pip install")
            expect(page, f"#panel-{view} .with-model").to_be_hidden()


# ---- accessibility ---------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is missing: make playground-tests")
@pytest.mark.parametrize("look", SIZES)
def test_axe_finds_nothing(browser: Any, address: str, look: str) -> None:
    with opened(browser, address, look, bypass_csp=True) as page:
        expect(page, "#verdict").to_contain_text("Refused")
        assert not find_violations(page)
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), "wider than the window"
        write(page, "regex", "(light )?(red|blue)|white", "light ")
        expect(page, "#verdict").to_contain_text("Accepted so far")
        assert not find_violations(page)
        page.click("#tab-step")
        page.click("#step-draw")
        expect(page, "#step-count").to_have_text("1")
        assert not find_violations(page)
        page.click("#tab-sample")
        page.fill("#draws", "16")
        page.click("#sample-run")
        expect(page, "#sample-state").to_contain_text("Done.", timeout=120_000)
        assert not find_violations(page)
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth"), "wider than the window"


def find_violations(page: Page) -> list[tuple[str, str]]:
    """What axe-core finds: rule and element."""
    page.wait_for_timeout(200)  # colours change in 150 ms
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [(one["id"], node["html"][:120]) for one in found["violations"] for node in one["nodes"]]
