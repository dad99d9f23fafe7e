"""Names of rules in the spelling of another language, each once."""

from __future__ import annotations

import re
from collections.abc import Hashable

__all__ = ["RuleNames"]


class RuleNames:
    """Names made of `allowed` characters; others become `joint`. taken: names that mean something already."""

    def __init__(self, allowed: str, joint: str, taken: set[str]) -> None:
        self.other = re.compile(f"[^{allowed}]+")
        self.joint, self.taken = joint, set(taken)
        self.known: dict[Hashable, str] = {}

    def of(self, name: Hashable) -> str:
        """The name for a rule, the same every time."""
        found = self.known.get(name)
        if found is None:
            found = self.known[name] = self.fresh(name if isinstance(name, str) else "rule")
        return found

    def fresh(self, wish: str) -> str:
        """A name like this one that is not taken."""
        base = self.other.sub(self.joint, wish.lower()).strip(self.joint) or "rule"
        if base[0].isdigit():
            base = "rule" + self.joint + base
        name, count = base, 1
        while name in self.taken:
            count += 1
            name = f"{base}{self.joint}{count}"
        self.taken.add(name)
        return name
