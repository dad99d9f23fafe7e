"""How many productions a rule becomes once its choices and optional parts are written out.

lark writes them all out: `a? b?` is four options, twenty such parts a million. So they are counted first.
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["options"]

SPLIT = 50
"""Repetitions of fewer than this are written out; longer ones become rules that repeat up to `PART` times each."""
PART = 6


def options(tree: Any) -> int:
    """How many options the tree of a rule's definition, as lark parsed it, is written out to; equal ones count too."""
    apart: list[int] = []
    own = _count(tree, apart)
    return own + sum(apart)


def _count(tree: Any, apart: list[int]) -> int:
    """Options in the rule itself. apart: those of the rules that its repetitions become are added."""
    kind = getattr(tree, "data", None)
    if kind not in ("expansions", "expansion", "maybe", "alias", "value", "expr"):
        return 1  # a symbol, a literal, a range, a template
    inner: list[int] = [_count(child, apart) for child in tree.children]
    if kind == "expansions":
        return sum(inner)
    if kind != "expr":
        return math.prod(inner) + int(kind == "maybe")
    operator, bounds = tree.children[1], tree.children[2:]
    if operator == "?":
        return inner[0] + 1
    if operator != "~":
        apart.append(2 * inner[0])  # bare, and behind itself
        return 2 if operator == "*" else 1
    low, high = max(int(bounds[0]), 0), int(bounds[-1])
    if high < SPLIT:
        return sum(int(inner[0] ** times) for times in range(low, high + 1))
    apart.append(sum(int(inner[0] ** times) for times in range(PART)))
    return 1
