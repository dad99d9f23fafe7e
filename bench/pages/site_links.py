"""Check the links of a built site: that each page, file and anchor that a page refers to is in the site.

    python -m bench pages.site_links build/site

Links to other hosts are not followed. Returns 1, and prints each broken link with its page, if there are any.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

from ..options import build_parser

__all__ = ["find_broken_links"]

SKIPPED = ("404.html",)
"""Refers to the root of the host, since it is shown for every path."""


class PageLinks(HTMLParser):
    """Collects the targets of links and images, and the anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element refers to, and its id or name."""
        for name, value in attrs:
            if value is None:
                continue
            if name in ("href", "src") and tag != "base":
                self.targets.append(value)
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check the site in the folder that is given. Return the exit code."""
    parser = build_parser("pages.site_links", __doc__)
    parser.add_argument("folder", type=Path, help="the built site")
    folder: Path = parser.parse_args(arguments).folder
    pages = read_pages(folder)
    broken = list(find_broken_links(folder))
    for page, target in broken:
        print(f"{page}: {target} is not in the site")
    print(f"{len(pages)} pages, {sum(len(one.targets) for one in pages.values())} links, {len(broken)} broken")
    return 1 if broken or not pages else 0


def find_broken_links(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the page and the target of each broken link of the site in a folder."""
    pages = read_pages(folder)
    for path, links in pages.items():
        for target in links.targets:
            if not is_in_site(folder, path, target, pages):
                yield path.relative_to(folder).as_posix(), target


def read_pages(folder: Path) -> dict[Path, PageLinks]:
    """Parse every page of the site."""
    found = {}
    for path in sorted(folder.rglob("*.html")):
        if path.name in SKIPPED:
            continue
        found[path] = links = PageLinks()
        links.feed(path.read_text("utf-8"))
    return found


def is_in_site(folder: Path, page: Path, target: str, pages: dict[Path, PageLinks]) -> bool:
    """Return whether the target of a link is in the site, or on another host."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return True
    address, anchor = urldefrag(target)
    path = unquote(urlsplit(address).path)
    place = (
        page if not path else ((folder / path.lstrip("/")) if path.startswith("/") else (page.parent / path)).resolve()
    )
    if place.is_dir():
        place = place / "index.html"
    if not place.exists():
        return False
    known = pages.get(place)
    return not anchor or known is None or unquote(anchor) in known.anchors or anchor == "__skip"


if __name__ == "__main__":
    sys.exit(main())
