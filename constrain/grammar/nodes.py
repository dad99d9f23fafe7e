"""The nodes of a Grammar: the one form that every front end writes and that the linker reads.

A node stands for a language of byte strings. Nodes are immutable and hashable; a `Rule` names another
node, and only through it can a grammar be recursive. The rules of a Grammar are a mapping, which may make
a node when it is first asked for: nothing is built before it is reached.

Masks are exact if two things hold, which front ends see to: every node has a text (no option that leads nowhere, no
object that cannot be closed), and where a leaf counts its characters (`low`, `high`) its Dfa is `extensible`: what
ends in d more characters can also end in d + 1. Otherwise multiply the length in (`Dfa.with_length`).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal as OneOf, Union

if TYPE_CHECKING:
    from ..automata.dfa import Dfa
    from ..lalr.parser_code import Parser

__all__ = [
    "EMPTY", "Chars", "Choice", "Free", "Grammar", "JsonString", "Layout", "Literal", "Mark", "Member", "NameClass",
    "Node", "Object", "Parsed", "Property", "Repeat", "Rule", "Sequence", "Strings", "Token", "Unique",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Literal:
    """Exactly these bytes."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Strings:
    """One of these byte strings: enum values, choices. Non-empty, sorted, without repeats."""

    options: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Chars:
    """UTF-8 text whose code points `dfa` accepts, low <= number of code points <= high (None: no bound).

    encoding "utf8": the text itself. "json": the text as it is spelled inside a JSON string with any
    escapes (RFC 8259 section 7), without the quotes. "bytes": bytes, each of which is the character of that number,
    whether or not they are UTF-8.
    """

    dfa: Dfa
    encoding: OneOf["utf8", "json", "bytes"] = "utf8"
    low: int = 0
    high: int | None = None


@dataclass(frozen=True, slots=True)
class JsonString:
    """A JSON string with both quotes whose decoded code points `dfa` accepts, spelled with any escapes."""

    dfa: Dfa
    low: int = 0
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Parsed:
    """UTF-8 text that a scanner cuts into lexemes, the longest first, and an LALR table accepts: `lalr.parser_code`."""

    parser: Parser


@dataclass(frozen=True, slots=True)
class Token:
    """One whole token: a symbol of its own, which is no text (special tokens such as `<think>`).

    names: which, each by its name in the vocabulary or by its id. negated: any token but these and the end tokens.
    """

    names: tuple[str | int, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """The special token of this name; where the vocabulary has none, this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Free:
    """Whatever a model writes by itself: any bytes and any special tokens but those that end a text.

    without: marks (see `Mark`) that do not occur in it. until: one of them, with whose first occurrence it ends.
    high: most bytes before that, of which a special token counts as many as its name in `vocabulary.special_tokens`.
    """

    without: tuple[str, ...] = ()
    until: str | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of these; they may overlap. No option at all is the empty language."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`node`, low to high times in a row (None: no bound). Counted in a register, never unrolled."""

    node: Node
    low: int = 0
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Unique:
    """The text of `body`, all of whose `Member`s differ as JSON values (JSON Schema 2020-12 validation, 6.4.3).

    Its Members are those that `body` holds itself or through rules that it names in last place, and so on from
    there; what stands inside a Member belongs to the Member. Where they are counted, those rules count: no counted
    Repeat is around a Member. The machine refuses a Member that would end as one that was there, and what can only end
    so; that values enough are left for those that must still come is for the front end to know.
    """

    body: Node


@dataclass(frozen=True, slots=True)
class Member:
    """One of the values of a `Unique` around it: a JSON value without white space around it.

    again: the rule that follows a value which equals an earlier Member, in place of all that else follows up to the
    end of the Unique; None: such a value is refused. With it, the complement of `uniqueItems` is written.
    """

    node: Node
    again: Rule | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """What `Grammar.rules[name]` stands for."""

    name: Hashable


@dataclass(frozen=True, slots=True)
class Property:
    """A declared key (decoded text) of an Object; `needs` are declared keys that must be there if it is."""

    name: str
    value: Node
    required: bool = False
    needs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class NameClass:
    """Undeclared keys whose decoded text `names` accepts.

    required: at least one member must be of this class. Classes may overlap: a member is of any one class whose names
    accept its key and whose value its value is.

    `names` may accept declared and excluded names too, which are refused when their closing quote comes. Where every
    text that begins a name begins infinitely many, that costs nothing; else the machine also refuses what can only
    become a name that is taken. That a class has names enough is for the front end to know.
    """

    names: Dfa
    value: Node
    required: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """White space and punctuation of an Object: `{` (empty | open member (comma member)* close) `}`.

    A member is key, colon, value. `comma` and `colon` hold the punctuation itself and the white space around it.
    """

    open: Node
    close: Node
    comma: Node
    colon: Node
    empty: Node


@dataclass(frozen=True, slots=True)
class Object:
    """A JSON object; its frame carries the set of keys seen, so that no state per subset is needed.

    properties: in the order in which `order="schema"` writes them. others: classes of undeclared keys, written
    after the declared ones when order is "schema". excluded: names that are neither declared nor allowed among the
    others. low, high: number of members; if there is a `low`, keys that need others do not keep any number of members
    from being reached that seems possible (the JSON Schema front end decides by cases where they would). Duplicate keys
    are refused.
    escapes: spelling of declared keys ("canonical": as `json.dumps(ensure_ascii=False)`).
    """

    properties: tuple[Property, ...]
    others: tuple[NameClass, ...]
    layout: Layout
    low: int = 0
    high: int | None = None
    order: OneOf["schema", "any"] = "schema"
    escapes: OneOf["canonical", "any"] = "canonical"
    excluded: tuple[str, ...] = ()


Node = Union[
    Literal,
    Strings,
    Chars,
    JsonString,
    Parsed,
    Sequence,
    Choice,
    Repeat,
    Unique,
    Member,
    Rule,
    Object,
    Token,
    Mark,
    Free,
]
EMPTY = Literal(b"")


@dataclass(frozen=True, slots=True)
class Grammar:
    """A start node and the rules it may name. `rules[name]` may be computed on first use and must be stable."""

    start: Node
    rules: Mapping[Hashable, Node]
