"""CapturedGrammar: the rules of a grammar as they were written, with names for those whose texts are captured."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from .nodes import Node, Repeat, Rule, Sequence
from .visitor import fold_node, reached_rules

__all__ = ["CapturedGrammar", "count_captures"]


@dataclass(frozen=True, slots=True, eq=False)
class CapturedGrammar:
    """Rules in which alternatives keep their order, unlike those of a simplified Grammar.

    Attributes
    ----------
    start : Node
    rules : Mapping of Hashable to Node
        The rules that `start` references; some may derive nothing.
    names : Mapping of Hashable to str
        The names of the captures of rules.
    inner : Mapping of Hashable to Node
        Further rules that `rules` reference, which may be computed on first use. They have no captures.
    ignored : frozenset of Hashable
        Rules of ignored text, which a capture neither begins nor ends with.
    """

    start: Node
    rules: Mapping[Hashable, Node]
    names: Mapping[Hashable, str]
    inner: Mapping[Hashable, Node] = field(default_factory=dict)
    ignored: frozenset[Hashable] = frozenset()


def count_captures(
    start: Node, rules: Mapping[Hashable, Node], names: Mapping[Hashable, Iterable[str]]
) -> dict[str, int]:
    """Return the most captures of each name that one text may have; 2 stands for several.

    `names` are those that each rule captures. The least fixpoint of the counts of the rules.
    """
    counts: dict[Hashable, dict[str, int]] = {name: {} for name in reached_rules(start, rules)}

    def count_node(node: Node, parts: list[dict[str, int]]) -> dict[str, int]:
        if isinstance(node, Rule):
            return counts.get(node.name, {})
        found = dict.fromkeys((name for part in parts for name in part), 0)
        several = 2 if isinstance(node, Repeat) and (node.high is None or node.high > 1) else 1
        for name in found:
            each = [part.get(name, 0) for part in parts]
            found[name] = min(several * (sum(each) if isinstance(node, Sequence) else max(each)), 2)
        return found

    changed = True
    while changed:
        changed = False
        for rule, known in counts.items():
            found = dict(fold_node(rules[rule], count_node))
            for name in names.get(rule, ()):
                found[name] = min(found.get(name, 0) + 1, 2)
            changed |= found != known
            counts[rule] = found
    return dict(fold_node(start, count_node))
