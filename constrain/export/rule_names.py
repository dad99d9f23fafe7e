"""Unique rule names in the spelling of another notation."""

from __future__ import annotations

import re
from collections.abc import Hashable

__all__ = ["RuleNames"]


class RuleNames:
    """Map from rule names to unique identifiers.

    Parameters
    ----------
    allowed : str
        Permitted characters, as the inside of a regex class.
    replacement : str
        Replacement for other characters.
    reserved : set of str
        Names that no rule gets.
    """

    def __init__(self, allowed: str, replacement: str, reserved: set[str]) -> None:
        self.forbidden = re.compile(f"[^{allowed}]+")
        self.replacement, self.reserved = replacement, set(reserved)
        self.known: dict[Hashable, str] = {}

    def of(self, name: Hashable) -> str:
        """Return the identifier of a rule; the same for each call."""
        identifier = self.known.get(name)
        if identifier is None:
            identifier = self.known[name] = self.fresh(name if isinstance(name, str) else "rule")
        return identifier

    def fresh(self, suggestion: str) -> str:
        """Return an unused identifier that resembles `suggestion`."""
        base = self.forbidden.sub(self.replacement, suggestion.lower()).strip(self.replacement) or "rule"
        if base[0].isdigit():
            base = "rule" + self.replacement + base
        name, count = base, 1
        while name in self.reserved:
            count += 1
            name = f"{base}{self.replacement}{count}"
        self.reserved.add(name)
        return name
