"""The nodes of a Grammar: the intermediate representation between the front ends and the linker.

A node denotes a language of byte strings. Nodes are immutable and hashable. A `Rule` refers to another node by name, so
recursion is only possible through rules. The rules of a Grammar are a mapping that may create nodes lazily.

Masks are exact under two conditions, which front ends must ensure. Every node has a text (there are no unproductive
options and no objects that cannot be closed). And where a leaf has a character count (`low`, `high`), its Dfa is
`extensible`: from every state, acceptance after d characters implies acceptance after d + 1. Otherwise build the bounds
into the automaton with `Dfa.with_length`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal as OneOf, NamedTuple, Union

if TYPE_CHECKING:
    from ..automata.dfa import Dfa
    from ..automata.numerals.number_language import NumberLanguage
    from ..lalr.parser_code import Parser

__all__ = [
    "EMPTY", "Chars", "Choice", "Free", "Grammar", "JsonString", "Layout", "Literal", "Mark", "Member", "NameClass",
    "Node", "Number", "Object", "Parsed", "Property", "Repeat", "Rule", "Sequence", "Strings", "Token", "Unique",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Literal:
    """Exactly the bytes `data`."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Strings:
    """One of several byte strings (enum values, choices); `options` is non-empty, sorted and without duplicates."""

    options: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Chars:
    """Text of `low` to `high` code points that `dfa` accepts; `high` is None for no upper bound.

    `encoding` is "utf8" for the text itself, "json" for its spellings inside a JSON string with any escapes (RFC 8259,
    section 7) and without the quotes, or "bytes" for bytes that are each taken as the code point of that number and
    need not be valid UTF-8.
    """

    dfa: Dfa
    encoding: OneOf["utf8", "json", "bytes"] = "utf8"
    low: int = 0
    high: int | None = None


@dataclass(frozen=True, slots=True)
class JsonString:
    """A JSON string, including the quotes, whose decoded value `dfa` accepts; characters may use any escapes.

    `low` and `high` bound the number of decoded code points; `high` is None for no upper bound.
    """

    dfa: Dfa
    low: int = 0
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Number:
    """A JSON number (RFC 8259, section 6), in any spelling, whose exact value is a member of a set.

    Bounds and multiples are not regular where exponents are allowed, so there is no Dfa of such texts.
    """

    language: NumberLanguage


@dataclass(frozen=True, slots=True)
class Parsed:
    """UTF-8 text that a longest-match scanner splits into lexemes and an LALR parser accepts; see
    `lalr.parser_code`.
    """

    parser: Parser


@dataclass(frozen=True, slots=True)
class Token:
    """One token as a symbol of its own that has no text, such as the special token `<think>`.

    `names` lists the permitted tokens by name in the vocabulary or by id. With `negated`, any token is permitted except
    these and the end-of-sequence tokens.
    """

    names: tuple[str | int, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """The special token named `text`; in a vocabulary without this token, the text itself."""

    text: str


@dataclass(frozen=True, slots=True)
class Free:
    """Unconstrained output: any bytes and any special tokens except those that end a text.

    `without` lists marks (see `Mark`) that must not occur. `until` is a mark at whose first occurrence the output ends.
    `high` bounds the number of bytes before it, where a special token counts as the length of its name in
    `vocabulary.special_tokens`. `excluded`: those of `without` that must not end together with `until` either.
    """

    without: tuple[str, ...] = ()
    until: str | None = None
    high: int | None = None
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sequence:
    """The concatenation of `parts`."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The union of `options`, which may overlap; without options it is the empty language."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`low` to `high` repetitions of `node` (`high` None: unbounded), counted in a register instead of
    being unrolled.
    """

    node: Node
    low: int = 0
    high: int | None = None


@dataclass(frozen=True, slots=True)
class Unique:
    """The texts of `body` whose `Member`s are pairwise different JSON values (JSON Schema 2020-12 validation, 6.4.3).

    The members are those in `body` itself or in rules that it references in tail position, transitively; nested ones
    belong to the enclosing Member. A counted Repeat must not enclose a Member; where members are counted, those tail
    rules do it. The machine rejects a Member that would equal an earlier one, and any prefix that can only complete to
    one. The front end must ensure that enough distinct values remain for the members that are still required.
    """

    body: Node


@dataclass(frozen=True, slots=True)
class Member:
    """A value of the enclosing `Unique`: a JSON value without surrounding white space.

    `again` is the rule that follows a value which equals an earlier Member, in place of the remainder of the Unique; if
    it is None, such a value is rejected. It serves to express the complement of `uniqueItems`.
    """

    node: Node
    again: Rule | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A reference to `Grammar.rules[name]`."""

    name: Hashable


class Property(NamedTuple):
    """A declared key (decoded) of an Object; `needs` are the declared keys that must be present if this one is."""

    name: str
    value: Node
    required: bool = False
    needs: frozenset[str] = frozenset()


class NameClass(NamedTuple):
    """The undeclared keys of an Object whose decoded name `names` accepts, and the values that they may have.

    With `required`, at least one member must belong to this class. Classes may overlap: a member belongs to any one
    class that accepts both its key and its value.

    `names` may also accept declared and excluded names; these are rejected at the closing quote. If every prefix of a
    name is a prefix of infinitely many names, this is free of cost; otherwise the machine also rejects prefixes that
    can only complete to unavailable names. The front end must ensure that the class has enough names.
    """

    names: Dfa
    value: Node
    required: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """White space and punctuation of an Object: `{` (empty | open member (comma member)* close) `}`.

    A member is a key, `colon` and a value. `comma` and `colon` include the punctuation character and the surrounding
    white space. `opening` and `closing` are the brackets, each a byte: `[` and `]`, with `colon` and all values empty,
    write an array of texts that differ, whose items are the keys.
    """

    open: Node
    close: Node
    comma: Node
    colon: Node
    empty: Node
    opening: bytes = b"{"
    closing: bytes = b"}"

    def map(self, function: Callable[[Node], Node]) -> Layout:
        """Return the layout with a function applied to each of its nodes."""
        around = function(self.open), function(self.close), function(self.comma)
        return Layout(*around, function(self.colon), function(self.empty), self.opening, self.closing)


@dataclass(frozen=True, slots=True)
class Object:
    """A JSON object; the set of keys seen is kept in its stack frame, which avoids a state per subset of the keys.

    Duplicate keys are rejected.

    Attributes
    ----------
    properties : tuple of Property
        Declared keys, in the order of output if `order` is "schema".
    others : tuple of NameClass
        Classes of undeclared keys, which follow the declared ones if `order` is "schema".
    layout : Layout
        White space and punctuation.
    low, high : int, int or None
        Bounds of the number of members. With a `low`, `needs` of keys must not make any member count unreachable that
        the counts alone permit; the JSON Schema front end splits into cases where they would.
    order : {"schema", "any"}
        Whether keys come in the declared order.
    escapes : {"canonical", "any"}
        Spelling of declared keys; "canonical" is that of `json.dumps(ensure_ascii=False)`.
    excluded : tuple of str
        Names that are neither declared nor permitted as undeclared keys.
    """

    properties: tuple[Property, ...]
    others: tuple[NameClass, ...]
    layout: Layout
    low: int = 0
    high: int | None = None
    order: OneOf["schema", "any"] = "schema"
    escapes: OneOf["canonical", "any"] = "canonical"
    excluded: tuple[str, ...] = ()

    @property
    def is_array(self) -> bool:
        """Whether the node writes an array of texts (see `Layout`)."""
        return self.layout.opening == b"["


Node = Union[
    Literal,
    Strings,
    Chars,
    JsonString,
    Number,
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
    """A start node and the rules it may refer to.

    `rules[name]` may be computed on first use, and must always return the same node.
    """

    start: Node
    rules: Mapping[Hashable, Node]
