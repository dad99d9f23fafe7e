"""Metadata that the build adds: project URLs, and the README as a package index shows it, with absolute links.

A package index shows the README alone, so links into the repository need the address of the repository. It is
`repository` in `[tool.hatch.metadata.hooks.custom]` of pyproject.toml. While that is empty there are no URLs, and the
README of the package has neither images nor links into the repository, instead of broken ones.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[((?:[^][]|\[[^]]*\])*)\]\((?!https?:|#|mailto:)([^)\s]+)\)")
"""A Markdown link or image whose target is relative: its mark, text and target."""


def link_readme(text: str, repository: str, version: str) -> str:
    """Return Markdown with absolute links into the repository at the tag of a version.

    Without a repository, the text of links is kept and images are left out.
    """

    def link(match: re.Match[str]) -> str:
        mark, shown, target = match.groups()
        if not repository:
            return "" if mark else shown
        return f"{mark}[{shown}]({repository.rstrip('/')}/{'raw' if mark else 'blob'}/v{version}/{target})"

    parts = re.split(r"(^```.*?^```)", text, flags=re.M | re.S)  # code is left as it is
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def list_urls(repository: str, version: str) -> dict[str, str]:
    """Return the project URLs by name."""
    if not repository:
        return {}
    base = repository.rstrip("/")
    return {
        "Source": base,
        "Documentation": f"{base}/blob/v{version}/docs/tour.md",
        "Changelog": f"{base}/blob/v{version}/CHANGELOG.md",
        "Issues": f"{base}/issues",
        "Security": f"{base}/blob/v{version}/SECURITY.md",
    }


class CustomMetadataHook(MetadataHookInterface):  # type: ignore[misc]
    """Sets the dynamic fields `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the fields."""
        repository, version = self.config.get("repository", ""), metadata["version"]
        text = Path(self.root, "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": link_readme(text, repository, version)}
        metadata["urls"] = list_urls(repository, version)
