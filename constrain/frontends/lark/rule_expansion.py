"""How many productions a rule becomes once its choices and optional parts are written out.

lark writes them all out: `a? b?` is four options, twenty such parts a million. So they are counted first.
"""

from __future__ import annotations

from typing import Any

__all__ = ["count_options"]

SPLIT = 50
"""Repetitions of fewer than this are written out; longer ones become rules that repeat up to `PART` times each."""
PART = 6
MOST = 10**12
KINDS = ("expansions", "expansion", "maybe", "alias", "value", "expr")


def count_options(tree: Any) -> int:
    """How many options the tree of a rule's definition, as lark parsed it, is written out to; equal ones count too.

    More than `MOST` are counted as that many.
    """
    apart: list[int] = []
    counts: dict[int, int] = {}
    todo = [(tree, False)]
    while todo:  # no recursion: trees are as deep as brackets
        node, ready = todo.pop()
        if getattr(node, "data", None) not in KINDS:
            counts[id(node)] = 1  # a symbol, a literal, a range, a template
        elif ready:
            counts[id(node)] = min(MOST, _count(node, [counts[id(child)] for child in node.children], apart))
        else:
            todo.append((node, True))
            todo += [(child, False) for child in node.children]
    return counts[id(tree)] + sum(apart)


def _count(tree: Any, inner: list[int], apart: list[int]) -> int:
    """Options of a node, given those of its children. apart: those of the rules that repetitions become are added."""
    if tree.data == "expansions":
        return sum(inner)
    if tree.data != "expr":
        return _product(inner) + int(tree.data == "maybe")
    operator, bounds = tree.children[1], tree.children[2:]
    if operator == "?":
        return inner[0] + 1
    if operator != "~":
        apart.append(2 * inner[0])  # bare, and behind itself
        return 2 if operator == "*" else 1
    low, high = max(_bound(bounds[0]), 0), _bound(bounds[-1])
    if high < SPLIT:
        return sum(_product([inner[0]] * times) for times in range(low, high + 1))
    apart.append(sum(_product([inner[0]] * times) for times in range(PART)))
    return 1


def _bound(written: Any) -> int:
    """A bound of a repetition; one of very many digits, which `int` refuses, as a large number."""
    return int(written) if len(written) <= 18 else MOST


def _product(counts: list[int]) -> int:
    found = 1
    for count in counts:
        found = min(MOST, found * count)
    return found
