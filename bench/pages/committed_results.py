"""Find the newest committed result of a bench, in the format of `bench.record`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

__all__ = ["RESULTS", "list_peer_versions", "load_newest_result"]

RESULTS = Path(__file__).resolve().parents[1] / "results"
PEERS = ("llguidance", "xgrammar", "outlines-core", "lm-format-enforcer", "hypothesis-jsonschema")


def load_newest_result(name: str, folder: Path = RESULTS) -> dict[str, Any] | None:
    """Return the document of the newest run of a bench, or None if none is committed.

    name: of the file without its ending, such as "repeated" or "decoding-plain-demo".
    """
    found: list[dict[str, Any]] = []
    for path in folder.glob(f"*/{name}.json"):
        found.append({**json.loads(path.read_text("utf-8")), "path": path.relative_to(folder).as_posix()})
    return max(found, key=lambda document: str(document["date"]), default=None)


def list_peer_versions(document: Mapping[str, Any], engines: Collection[str]) -> str:
    """Return the versions of those peers among the engines, as "llguidance 1.9.1, xgrammar 0.2.8"."""
    versions = document["versions"]
    shown = [name for name in PEERS if name in versions and name.removesuffix("-core") in engines]
    return ", ".join(f"{name} {versions[name]}" for name in shown)
