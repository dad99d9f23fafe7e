"""What the build adds: project URLs, the README as a package index shows it, and a check of the compiled kernels.

A package index shows the README alone, so links into the repository need the address of the repository. It is
`repository` in `[tool.hatch.metadata.hooks.custom]` of pyproject.toml. While that is empty there are no URLs, and the
README of the package has neither images nor links into the repository, instead of broken ones.

A distribution carries the libraries of constrain/kernels/libraries (`make kernels`), if there are any: then they must
have been compiled from the kernels that are there now. A wheel without libraries, such as that of a checkout, needs
numba, which compiles the kernels at the first use.
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


def has_libraries(root: Path) -> bool:
    """Return whether there are libraries below `root`."""
    return any((root / "constrain" / "kernels" / "libraries").glob("*.so"))


class CustomBuildHook(BuildHookInterface):  # type: ignore[misc]
    """Checks the compiled kernels, or adds what compiles them to the requirements of a wheel.

    An installation of a checkout in place finds the right libraries itself, and compiles others after each change.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Check libraries. `build_data` gets the requirements."""
        root, is_editable = Path(self.root), version == "editable"
        if not is_editable:
            check_libraries(root)
        if self.target_name == "wheel" and (is_editable or not has_libraries(root)):
            build_data["dependencies"] += self.metadata.core.optional_dependencies["build"]
