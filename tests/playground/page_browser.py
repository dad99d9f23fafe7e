"""The browser of the tests of the page, and the sizes and colours in which the page is looked at."""

from __future__ import annotations

from shutil import which
from typing import Any

__all__ = ["CHROMIUM", "SIZES", "launch"]

CHROMIUM = which("chromium") or which("chromium-browser") or which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
SIZES = {"light": (1280, 900, "light"), "dark": (1280, 900, "dark"), "phone": (390, 844, "light")}
"""Width, height and colour scheme by name."""


def launch(playwright: Any) -> Any:
    """Return a headless Chromium, started by playwright with a profile of its own."""
    return playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
