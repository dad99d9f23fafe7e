"""What a stranger's schema or pattern can cost is counted: more than `Limits.work` is refused by name, never built."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import constrain
from constrain import LimitError, Limits, Style, Vocabulary
from constrain.base.work import work_budget

VOCABULARY = Vocabulary.bytes()


def anchors(count: int) -> dict[str, object]:
    """Resources of which any subset may be entered, each with a dynamic anchor that the last one asks for."""
    names = range(count)
    definitions: dict[str, object] = {
        f"r{k}": {
            "$id": f"r{k}", "$defs": {"a": {"$dynamicAnchor": f"a{k}", "type": "object"}},
            "anyOf": [{"$ref": f"r{k + 1}"}, {"$ref": f"s{k + 1}"}],
        }
        for k in names
    }  # fmt: skip
    definitions |= {f"s{k}": {"$id": f"s{k}", "anyOf": [{"$ref": f"{c}{k + 1}"} for c in "rs"]} for k in names}
    asked = [{"$dynamicRef": f"q#a{k}"} for k in names]
    definitions |= {f"{c}{count}": {"$id": f"{c}{count}", "allOf": asked} for c in "rs"}
    anchored = {f"a{k}": {"$dynamicAnchor": f"a{k}", "type": "string"} for k in names}
    definitions["q"] = {"$id": "q", "$defs": anchored}
    return {"$id": "http://x/root", "$ref": "r0", "$defs": definitions}


GROWING: list[tuple[str, Callable[[int], object], int]] = [
    ("subsets of dynamic anchors", anchors, 40),
    ("a product of patterns", lambda n: {"allOf": [{"pattern": f"^(.{{{k}}})*$"} for k in range(n, n + 8)]}, 31),
    ("a product of searches", lambda n: {"allOf": [{"pattern": f"{c}.{{{n}}}x"} for c in "abcdef"]}, 12),
    ("looks", lambda n: {"pattern": "".join(f"(?=.*{c}.{{{n}}}x)" for c in "abcdef") + "b"}, 9),
    ("multiples", lambda n: {"allOf": [{"multipleOf": n + k} for k in (1, 3, 7, 9)], "maximum": 10**30}, 1_000),
    ("branches", lambda n: {"oneOf": [{"required": [f"k{k}"]} for k in range(n)]}, 400),
    ("alternatives", lambda n: {"allOf": [
        {"anyOf": [{"properties": {f"{a}": {"minimum": b}, f"x{a}{b}": {"maximum": b}}} for b in range(n)]}
        for a in range(n)]}, 12),
    ("lengths", lambda n: {"pattern": "^(ab|cde)*$", "minLength": n, "not": {"pattern": "abab"}}, 2_000_000),
    ("nested", lambda n: {"format": "regex", "maxLength": n}, 200),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("schema", "size"), [row[1:] for row in GROWING], ids=[row[0] for row in GROWING])
@pytest.mark.parametrize("style", [Style(), Style.any()], ids=["flexible", "any"])
def test_growth_beyond_the_budget_is_refused(schema: Callable[[int], object], size: int, style: Style) -> None:
    source = {"type": ["string", "number", "object"], "allOf": [schema(size)]}
    with work_budget(Limits().work) as budget:
        if "multipleOf" in str(source) and style == Style.any():  # the states of numbers are made when they are reached
            constrain.compile(VOCABULARY, schema=source, style=style)
            assert budget.spent < Limits().work / 100
            return
        with pytest.raises(LimitError):
            constrain.compile(VOCABULARY, schema=source, style=style)
    assert budget.spent < 2 * Limits().work  # it stopped soon after


@pytest.mark.parametrize(("schema", "size"), [row[1:] for row in GROWING], ids=[row[0] for row in GROWING])
def test_the_same_costs_the_same_warm_or_cold(schema: Callable[[int], object], size: int) -> None:
    spent = set()
    for _ in range(3):
        with work_budget(10**9) as budget:
            constrain.compile(VOCABULARY, schema=schema(2), style=Style.any())
        spent.add(budget.spent)
    assert len(spent) == 1
