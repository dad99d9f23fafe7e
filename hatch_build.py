"""What the build adds: project URLs, the README as a package index shows it, and a check of the compiled kernels.

A package index shows the README alone, so links into the repository need the address of the repository. It is
`repository` in `[tool.hatch.metadata.hooks.custom]` of pyproject.toml. While that is empty there are no URLs, and the
README of the package has neither images nor links into the repository, instead of broken ones.

A distribution carries the libraries of constrain/kernels/libraries (`make kernels`), if there are any: then they must
have been compiled from the kernels that are there now.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
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


def check_libraries(root: Path) -> None:
    """Raise RuntimeError if a library below `root` was compiled from other kernels than those that are there."""
    sys.path.insert(0, str(root))
    try:
        from constrain.kernels.native.native_library import compute_source_hash
    finally:
        sys.path.remove(str(root))
    for path in (root / "constrain" / "kernels" / "libraries").glob("*.so"):
        if compute_source_hash().encode() not in path.read_bytes():
            raise RuntimeError(f"{path.name} was compiled from other kernels than those that are here: make kernels")


class CustomBuildHook(BuildHookInterface):  # type: ignore[misc]
    """Checks the compiled kernels. An installation of a checkout in place finds the right ones itself."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Check them."""
        if version != "editable":
            check_libraries(Path(self.root))
