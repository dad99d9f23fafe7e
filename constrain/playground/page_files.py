"""The files of the page, read once from the package, and the headers with which they are sent.

Requests name a file by its path in the table; none of them reaches the file system.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from .. import grammars

__all__ = ["PageFile", "list_page_files"]

TYPES = {
    "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}  # fmt: skip
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Content-Security-Policy: nothing but what this server sends, and no script or style inside of the page."""
HEADERS = {
    "Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()", "Cache-Control": "no-cache",
}  # fmt: skip
READY = ("arithmetic", "sql", "csv", "cron", "email", "lisp", "jsonpath", "chess_pgn")
"""The grammars of the library that are in the gallery."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page. headers: all of its response but the length."""

    body: bytes
    headers: dict[str, str]


@cache
def list_page_files() -> dict[str, PageFile]:
    """Return the files by path: "/" is the page, the others are below "/playground/"."""
    found = {}
    for file in files(__name__.rpartition(".")[0]).joinpath("static").iterdir():
        kind = TYPES.get(file.name.rpartition(".")[2])
        if kind is not None:
            path = "/" if file.name == "index.html" else f"/playground/{file.name}"
            found[path] = make_file(file.read_bytes(), kind)
    found["/playground/gallery.json"] = make_file(json.dumps(build_gallery()).encode(), "application/json")
    return found


def make_file(body: bytes, kind: str) -> PageFile:
    """Return a file with its headers."""
    return PageFile(body, {**HEADERS, "Content-Type": kind, "ETag": f'"{sha256(body).hexdigest()[:32]}"'})


def build_gallery() -> list[dict[str, Any]]:
    """Return the examples: those of gallery.json, whose documents are written as text, and grammars of the library."""
    written: list[dict[str, Any]] = json.loads(
        files(__name__.rpartition(".")[0]).joinpath("gallery.json").read_text("utf-8")
    )
    for example in written:
        if not isinstance(example["text"], str):
            example["text"] = json.dumps(example["text"], indent=2, ensure_ascii=False)
    ready = [grammars.read(name) for name in READY]
    return written + [
        {
            "name": f"Grammar: {one.name.replace('_', ' ')}", "kind": "lark", "option": one.lexer, "text": one.text,
            "typed": one.accepts[0].rstrip("\n"),
        }
        for one in ready
    ]  # fmt: skip
