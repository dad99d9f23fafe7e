"""Count the productions of a rule after expansion of its choices and optional parts.

lark expands all of them: `a? b?` has four alternatives, twenty such parts a million. So they are counted first.
"""

from __future__ import annotations

from typing import Any

__all__ = ["count_options"]

SPLIT = 50
"""Repetitions with fewer rounds are expanded; longer ones become rules of up to `PART` rounds each."""
PART = 6
MOST = 10**12
KINDS = ("expansions", "expansion", "maybe", "alias", "value", "expr")


def count_options(tree: Any) -> int:
    """Return the number of alternatives to which the tree of a rule's definition expands, duplicates included.

    tree: as parsed by lark. Numbers beyond `MOST` are returned as `MOST`.
    """
    extra_rules: list[int] = []
    counts: dict[int, int] = {}
    stack = [(tree, False)]
    while stack:  # Iterative, because trees are as deep as brackets.
        node, visited = stack.pop()
        if getattr(node, "data", None) not in KINDS:
            counts[id(node)] = 1  # A symbol, a literal, a range or a template.
        elif visited:
            counts[id(node)] = min(MOST, _count(node, [counts[id(child)] for child in node.children], extra_rules))
        else:
            stack.append((node, True))
            stack += [(child, False) for child in node.children]
    return counts[id(tree)] + sum(extra_rules)


def _count(tree: Any, inner: list[int], extra_rules: list[int]) -> int:
    """Return the number of alternatives of a node, given those of its children.

    apart: extended by the numbers of the rules that repetitions become.
    """
    if tree.data == "expansions":
        return sum(inner)
    if tree.data != "expr":
        return _product(inner) + int(tree.data == "maybe")
    operator, bounds = tree.children[1], tree.children[2:]
    if operator == "?":
        return inner[0] + 1
    if operator != "~":
        extra_rules.append(2 * inner[0])  # Once alone, once after itself.
        return 2 if operator == "*" else 1
    low, high = max(_bound(bounds[0]), 0), _bound(bounds[-1])
    if high < SPLIT:
        return sum(_product([inner[0]] * count) for count in range(low, high + 1))
    extra_rules.append(sum(_product([inner[0]] * count) for count in range(PART)))
    return 1


def _bound(written: Any) -> int:
    """Return a bound of a repetition; `MOST` if it has more than 18 digits, since `int` refuses very long ones."""
    return int(written) if len(written) <= 18 else MOST


def _product(counts: list[int]) -> int:
    product = 1
    for count in counts:
        product = min(MOST, product * count)
    return product
