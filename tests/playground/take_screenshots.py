"""Take the pictures of docs/playground: python -m tests.playground.take_screenshots

They show the page over the embedded model in light colours, in dark ones, and at the width of a phone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import expect, sync_playwright

import constrain
from constrain.playground.play_application import create_play_app
from constrain.serving.server_settings import ServerSettings
from tests.playground.page_browser import SIZES, launch
from tests.serving.live_server import serve_live

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "playground"


def main() -> None:
    """Write one picture for each view and size."""
    with (
        constrain.Engine("demo") as engine,
        serve_live(create_play_app(engine, ServerSettings())) as url,
        sync_playwright() as playwright,
    ):
        browser = launch(playwright)
        for look, (width, height, scheme) in SIZES.items():
            context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            page = context.new_page()
            page.goto(url.removesuffix("v1"))
            for view, show in (("text", show_text), ("steps", show_steps), ("samplers", show_samplers)):
                show(page)
                page.mouse.move(0, 0)
                page.wait_for_timeout(300)  # transitions
                page.screenshot(path=FOLDER / f"{look}-{view}.png", full_page=True)
            context.close()
        browser.close()


def show_text(page: Any) -> None:
    """The first example, with a refused text."""
    expect(page.locator("#verdict")).to_contain_text("Refused")


def show_steps(page: Any) -> None:
    """Some tokens of an answer."""
    page.select_option("#example", label="Two small decisions")
    page.click("#tab-step")
    expect(page.locator("#step-count")).to_have_text("0")
    expect(page.locator("#bars button").first).to_be_visible()
    for count in range(1, 9):
        page.click("#step-draw")
        expect(page.locator("#step-count")).to_have_text(str(count))


def show_samplers(page: Any) -> None:
    """The comparison of samplers over a few texts."""
    page.select_option("#example", label="Regex: a few colours")
    page.click("#tab-sample")
    page.click("#sample-run")
    expect(page.locator("#sample-state")).to_contain_text("Done.", timeout=120_000)


if __name__ == "__main__":
    main()
