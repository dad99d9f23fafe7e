"""Findings: what a keyword says about an item, and how keywords ask about subschemas.

A rule of a keyword is a function of a `Judge`, the parsed keywords beside it, its own parsed value and the item. It
yields a `Finding` for everything that is wrong, nothing if the keyword is satisfied. So a verdict takes the first
finding of a rule, and a report takes all.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ..base.options import Limits
from ..base.work import spend_work
from ..frontends.json_schema.core.schema_sets import SchemaSet
from ..frontends.json_schema.core.subschema_table import Subschema
from ..frontends.json_schema.strings.formats import RULE_FORMATS, format_dfa, format_lengths
from ..frontends.json_schema.strings.schema_patterns import letters_dfa, pattern_dfa, read_pattern
from .instance_tree import InstanceItem, name_item
from .message_words import suggestion
from .value_numbers import ValueNumbers

__all__ = ["Finding", "Judge", "KeywordRule"]

MOST_SUGGESTIONS = 100
"""Most messages of a validation with similar names, which take a millisecond each."""
MOST_EXPLANATIONS = 200
"""Most choices of a validation of which the closest branch is named: all branches are looked at once more."""


class Finding(NamedTuple):
    """One thing that is wrong.

    message: the sentence for it, or a function that makes it if that takes long. item: where. schemas: the subschema
    that the item does not satisfy, whose own findings then take the place of the message unless it is `false`. since:
    why that subschema applies, for messages about the same item. branches: subschemas none of which is satisfied; the
    closest one is explained after the message. keyword: the keyword, if it is not the one of the rule. path: reference
    tokens from the keyword to the subschema.
    """

    message: str | Callable[[], str]
    item: InstanceItem
    schemas: SchemaSet | None = None
    since: str = ""
    branches: tuple[SchemaSet, ...] = ()
    keyword: str = ""
    path: tuple[str | int, ...] = ()

    @property
    def text(self) -> str:
        """The message."""
        return self.message if isinstance(self.message, str) else self.message()


class Judge(ABC):
    """What rules ask: verdicts of subschemas, patterns, formats, and equality of values."""

    def __init__(self, nodes: list[Subschema | None], limits: Limits) -> None:
        self.nodes = nodes
        self.limits = limits
        self.values = ValueNumbers()
        self._constants: dict[int, frozenset[int]] = {}
        self._names: dict[int, InstanceItem] = {}
        self._suggestions = MOST_SUGGESTIONS
        self._explanations = MOST_EXPLANATIONS

    @abstractmethod
    def holds(self, schemas: SchemaSet, item: InstanceItem) -> bool:
        """Return whether an item satisfies a subschema."""

    @abstractmethod
    def evaluated(self, node: Subschema, item: InstanceItem) -> Any:
        """Return the children that keywords of a node other than `unevaluated...` evaluate."""

    def node_of(self, schemas: SchemaSet) -> Subschema:
        """Return the node of a set that is neither ANY nor NEVER; the parser makes sets of one node."""
        (number,) = schemas
        node = self.nodes[number]
        assert node is not None
        return node

    def constants(self, listed: tuple[Any, ...]) -> frozenset[int]:
        """Return the numbers of the constants of `enum` or `const`."""
        known = self._constants.get(id(listed))
        if known is None:
            known = self._constants[id(listed)] = frozenset(map(self.values.of_constant, listed))
        return known

    def name_of(self, member: InstanceItem) -> InstanceItem:
        """Return the name of a member as an item."""
        known = self._names.get(member.index)
        if known is None:
            known = self._names[member.index] = name_item(member)
        return known

    def suggest(self, name: str, known: Iterable[str]) -> str:
        """Return "; did you mean ...?" if a known name is similar, otherwise "". Only the first messages have that."""
        if not self._suggestions:
            return ""
        self._suggestions -= 1
        return suggestion(name, known)

    def may_explain(self) -> bool:
        """Return whether one more choice is explained, and count it."""
        self._explanations -= 1
        return self._explanations >= 0

    def matches(self, pattern: str, text: str) -> bool:
        """Return whether a pattern of ECMA-262 is found in a text, decided by its automaton in linear time."""
        spend_work(1 + (len(text) >> 3), "the matching of a pattern")
        counted = read_pattern(pattern).counted
        if counted is None:
            return pattern_dfa(pattern, self.limits.dfa_states).accepts(text)
        low, high = counted
        if len(text) < low or (high is not None and len(text) > high):
            return False
        return letters_dfa(pattern, self.limits.dfa_states).accepts(text)

    def has_format(self, name: str, text: str) -> bool:
        """Return whether a text has a format, by its RFC."""
        spend_work(1 + (len(text) >> 3), "the checking of a format")
        if name in RULE_FORMATS:
            return RULE_FORMATS[name].accepts(text)
        low, high = format_lengths(name)
        dfa = format_dfa(name)
        return len(text) >= low and (high is None or len(text) <= high) and (dfa is None or dfa.accepts(text))


KeywordRule = Callable[[Judge, Subschema, Any, InstanceItem], Iterator[Finding]]
