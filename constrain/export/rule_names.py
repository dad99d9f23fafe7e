"""Unique rule names in the spelling of another notation."""

from __future__ import annotations

import re
from collections.abc import Hashable

__all__ = ["RuleNames"]


class RuleNames:
    """Map from rule names to unique identifiers.

    allowed: permitted characters, as the inside of a regex class. joint: replacement for others. taken: reserved names.
    """

    def __init__(self, allowed: str, joint: str, taken: set[str]) -> None:
        self.other = re.compile(f"[^{allowed}]+")
        self.joint, self.taken = joint, set(taken)
        self.known: dict[Hashable, str] = {}

    def of(self, name: Hashable) -> str:
        """Return the identifier of a rule; the same for each call."""
        found = self.known.get(name)
        if found is None:
            found = self.known[name] = self.fresh(name if isinstance(name, str) else "rule")
        return found

    def fresh(self, wish: str) -> str:
        """Return an unused identifier that resembles `wish`."""
        base = self.other.sub(self.joint, wish.lower()).strip(self.joint) or "rule"
        if base[0].isdigit():
            base = "rule" + self.joint + base
        name, count = base, 1
        while name in self.taken:
            count += 1
            name = f"{base}{self.joint}{count}"
        self.taken.add(name)
        return name
