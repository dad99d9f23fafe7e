"""Random small grammars and vocabularies for property tests, with difficult combinations of nodes.

rules       recursive on either side, ambiguous, with empty rules and nested counts; `R` is the start
mixed       the same with Chars among them
numbers     Numbers with bounds, multiples and listed values, beside other numbers and in sequences
characters  Chars and JsonString of small languages, with bounds, over characters of one to four bytes
objects     both orders, needs, classes of other names, bounds, both spellings of keys, nested values
vocabularies   all 256 bytes, and tokens that split characters, escapes and brackets; repeats; empty tokens
"""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from constrain.automata.dfa import Dfa
from constrain.automata.listed_words import ListedWords
from constrain.automata.numerals.number_automaton import NumberAutomaton
from constrain.grammar.nodes import (  # fmt: skip
    EMPTY,
    Chars,
    Choice,
    Grammar,
    JsonString,
    Layout,
    Literal,
    NameClass,
    Node,
    Number,
    Object,
    Property,
    Repeat,
    Rule,
    Sequence,
    Strings,
)
from constrain.vocabulary.vocabulary import Vocabulary
from tests.grammar_oracle import Reference
from tests.number_oracle import random_oracle

NAMES = ("R", "S", "T")


def sound(grammar: Grammar) -> bool:
    """Return whether every reachable node of the grammar has a text."""
    oracle = Reference(grammar)
    todo, seen = [grammar.start], set()
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        if not oracle.holds("productive", oracle.expr(node)):
            return False
        match node:
            case Sequence(parts) | Choice(parts):
                todo += parts
            case Repeat(inner, _, high):
                todo += [inner] if high != 0 else []
            case Rule(name):
                todo.append(grammar.rules[name])
            case Object():
                todo += [member.value for member in (*node.properties, *node.others)]
    return True


# ---- rules

pieces = st.sampled_from([b"", b"a", b"b", b"ab", b"ba", b"(", b")"])
plain_leaves: st.SearchStrategy[Node] = st.one_of(
    pieces.map(Literal),
    st.sampled_from(NAMES).map(Rule),
    st.sets(st.sampled_from([b"", b"a", b"ab", b"abb", b"b(", b"ba"]), min_size=1).map(
        lambda s: Strings(tuple(sorted(s)))
    ),
)


def repeats(inner: st.SearchStrategy[Node], most: int = 3) -> st.SearchStrategy[Node]:
    """Return a strategy of repeated nodes, with or without an upper bound."""
    return st.builds(
        lambda node, low, more: Repeat(node, low, None if more is None else low + more),
        inner,
        st.integers(0, most),
        st.one_of(st.none(), st.integers(0, most)),
    )


def bodies(leaves: st.SearchStrategy[Node], size: int = 6) -> st.SearchStrategy[Node]:
    """Return a strategy of nodes with these leaves."""
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: Sequence(tuple(parts))),
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: Choice(tuple(parts))),
            repeats(inner),
        ),
        max_leaves=size,
    )


def grammars_on(leaves: st.SearchStrategy[Node]) -> st.SearchStrategy[Grammar]:
    """Return a strategy of grammars of three rules, each of which may refer to any."""
    body = bodies(leaves)
    return st.tuples(body, body, body).map(lambda made: Grammar(Rule("R"), dict(zip(NAMES, made))))


rules = grammars_on(plain_leaves)
LETTERS = Dfa.from_ranges([(ord("a"), ord("b"))])
mixed_leaves: st.SearchStrategy[Node] = st.sampled_from([
    Chars(LETTERS.repeat(1)), Chars(LETTERS.star(), "utf8", 0, 2), Chars(LETTERS.star(), "utf8", 1, 3),
    Chars(Dfa.from_strings(["a"]).star()), Chars(Dfa.from_strings(["ab"]).star()), Chars(Dfa.from_strings(["b", "bb"])),
])  # fmt: skip
mixed = grammars_on(st.one_of(plain_leaves, mixed_leaves))
regular = bodies(st.one_of(pieces.map(Literal), pieces.map(lambda piece: Strings((piece,))))).map(
    lambda node: Grammar(node, {})
)

# ---- characters

LANGUAGES = [
    Dfa.any_text(),
    Dfa.from_ranges([(ord("a"), ord("c"))]).star(),
    Dfa.from_ranges([(0x20, 0x10FFFF)]).repeat(1, 3),
    Dfa.from_strings(["a", "é", "éa", "aé", "😀", "\n", '"', ""]),
    Dfa.from_strings(["ab", "é"]).star(),
    Dfa.from_strings(["aa", "aaa", "\u20ac"]).repeat(1, 2),
    Dfa.from_ranges([(ord("é"), ord("é")), (0xD000, 0xE100), (0x10000, 0x10400)]).repeat(0, 2),
    Dfa.from_strings(["\\", "/", "\x7f", "\u2028", "\ud7ff", "\ue000", "\U0010ffff"]).star(),
    Dfa.from_strings(["a"]).star().complement(),
    ListedWords(["a", "é", "éa", "aé", "😀", "\n", '"', ""]),
    ListedWords(["ab", "abc", "\\", "\U0010ffff", "\ud7ff"]),
]


def texts(kind: str) -> st.SearchStrategy[Node]:
    """Return a strategy of Chars ("utf8", "json") or JsonString ("string") with a text within its bounds."""

    def made(dfa: Dfa, low: int, more: int | None) -> Node | None:
        high = None if more is None else low + more
        if dfa.with_length(low, high).is_empty:
            low, high = 0, None
        if low and not dfa.extensible():
            dfa, low, high = dfa.with_length(low, high), 0, None
        if kind == "string":
            return JsonString(dfa, low, high)
        return Chars(dfa, kind, low, high)  # type: ignore[arg-type]

    return st.builds(made, st.sampled_from(LANGUAGES), st.integers(0, 4), st.one_of(st.none(), st.integers(0, 3)))


characters = bodies(st.one_of(texts("utf8"), texts("json"), texts("string"), pieces.map(Literal)), 4).map(
    lambda node: Grammar(node, {})
)

# ---- numbers


def non_empty_number(seed: int) -> Number | None:
    """Return a random set of numbers in any spelling, or None if it is empty."""
    language = random_oracle(Random(seed)).language()
    return None if NumberAutomaton(language).is_empty else Number(language)


number_leaves = st.integers(0, 10**6).map(non_empty_number).filter(lambda node: node is not None)
numbers = bodies(st.one_of(number_leaves, st.sampled_from([b",", b"1", b"e5", b"-"]).map(Literal)), 3).map(
    lambda node: Grammar(node, {})
)

# ---- objects

SPACES: Node = Repeat(Choice((Literal(b" "), Literal(b"\n"))), 0, 2)
LAYOUTS = [
    Layout(EMPTY, EMPTY, Literal(b","), Literal(b":"), EMPTY),
    Layout(
        SPACES, SPACES, Sequence((SPACES, Literal(b","), SPACES)), Sequence((SPACES, Literal(b":"), SPACES)), SPACES
    ),
    Layout(Literal(b"\n "), Literal(b"\n"), Literal(b",\n "), Literal(b": "), EMPTY),
    Layout(EMPTY, SPACES, Literal(b","), EMPTY, SPACES, b"[", b"]"),
]
DECLARED = ("a", "ab", 'é"', "", "\n")
CLASSES = [
    Dfa.from_strings(["x", "xy"]),
    Dfa.from_ranges([(ord("x"), ord("z"))]).repeat(1),
    Dfa.from_strings(list(DECLARED)).complement(),
]
scalars: st.SearchStrategy[Node] = st.one_of(
    st.sampled_from([b"1", b"12", b"null"]).map(Literal), texts("string"), st.just(Strings((b"1", b"true")))
)


@st.composite
def object_nodes(draw: st.DrawFn, values: st.SearchStrategy[Node]) -> Object:
    """Draw an Object, which may be unsatisfiable."""
    names = draw(st.lists(st.sampled_from(DECLARED), unique=True, max_size=3))
    layout = draw(st.sampled_from(LAYOUTS))
    if layout.opening == b"[":  # an array of texts
        values = st.just(EMPTY)
    properties = tuple(
        Property(name, draw(values), draw(st.booleans()), frozenset(draw(st.sets(st.sampled_from(names), max_size=2))))
        for name in names
    )
    classes = draw(st.lists(st.sampled_from(CLASSES), max_size=2, unique=True))
    others, taken = [], Dfa.from_strings(names) if names else Dfa.empty()
    for language in classes:  # disjoint from the declared names and from each other, as the node requires
        left = language.subtract(taken)
        taken = taken.union(language)
        if not left.is_empty:
            others.append(NameClass(left, draw(values)))
    order = draw(st.sampled_from(["schema", "any"]))
    low = draw(st.integers(0, 3)) if others or counts_one_by_one(properties, order) else 0
    return Object(
        properties,
        tuple(others),
        layout,
        low,
        draw(st.one_of(st.none(), st.integers(low, low + 2))),
        order,
        draw(st.sampled_from(["canonical", "any"])),
    )


def counts_one_by_one(properties: tuple[Property, ...], order: str) -> bool:
    """Return whether keys can be added one by one, as an Object with `low` requires: no key needs an earlier one that
    may be missing, and no keys need each other.
    """
    needs = {one.name: set(one.needs) for one in properties}
    for _ in properties:
        needs = {name: some.union(*(needs[other] for other in some)) for name, some in needs.items()}
    required = {one.name for one in properties if one.required}
    required |= {other for name in required for other in needs[name]}
    places = {one.name: place for place, one in enumerate(properties)}
    for name in needs.keys() - required:
        others = needs[name] - required - {name}
        if any(name in needs[other] for other in others):
            return False
        if order == "schema" and any(places[other] < places[name] for other in others):
            return False
    return True


objects = st.one_of(
    object_nodes(scalars),
    object_nodes(st.one_of(scalars, object_nodes(scalars))),
    object_nodes(st.one_of(scalars, st.just(Rule("R")))),
).map(lambda node: Grammar(Rule("R"), {"R": node}))

# ---- vocabularies

FRAGMENTS = {
    "numbers": [
        *(b"%d" % digit for digit in range(10)),
        b"00",
        b"12",
        b"999",
        b".",
        b".5",
        b"0.",
        b"-",
        b"e",
        b"E",
        b"e-",
        b"e+",
        b"1e5",
        b",",
        b"1,",
        b",-",
        b"50",
        b"25",
        b"e1",
        b"x",
    ],
    "rules": [b"a", b"b", b"(", b")", b"ab", b"ba", b"aa", b"x"],
    "characters": [b"a", b"b", b'"', b"\\", b"\\u", b"00", b"e9", b"\\ud83d", b"\\ude", b"\\n", b"\xc3", b"\xa9", b"/"]
    + [
        "é".encode(),
        "😀".encode(),
        b"\xf0\x9f",
        b"\x98\x80",
        b"\xe2\x80",
        b"\xa8",
        b"aa",
        b'a"',
        b"\\\\",
        b"D7FF",
        b"\x7f",
    ],
    "objects": [
        b"{",
        b"}",
        b"[",
        b"]",
        b'["',
        b'"]',
        b'"',
        b":",
        b",",
        b'{"',
        b'":',
        b'","',
        b',"',
        b'"a"',
        b'"a":1',
        b'"x',
        b"y",
        b"1",
        b"12",
    ]
    + [
        b"null",
        b"\\u0061",
        b"\\u",
        b"\\",
        b"\xc3",
        b'\xa9\\"',
        b" ",
        b"\n",
        b": ",
        b'":1}',
        b"}}",
        b'a":"',
        b'"",',
        b"b",
    ],
}


def vocabularies(kind: str) -> st.SearchStrategy[Vocabulary]:
    """Return a strategy of vocabularies: all single bytes, some longer tokens in any order, and two end tokens."""
    token = st.lists(st.sampled_from(FRAGMENTS[kind]), max_size=4).map(b"".join)

    def made(extra: list[bytes | None]) -> Vocabulary:
        single = [bytes([byte]) for byte in range(256)]
        return Vocabulary.from_tokens([None, *extra, *single, None, None], (0, len(extra) + 258))

    return st.lists(st.one_of(token, token, st.none()), max_size=24).map(made)


def poor_vocabularies(kind: str) -> st.SearchStrategy[Vocabulary]:
    """Return a strategy of small vocabularies, which cannot spell many texts."""
    token = st.lists(st.sampled_from(FRAGMENTS[kind]), max_size=3).map(b"".join)
    return st.lists(token, min_size=1, max_size=12).map(
        lambda made: Vocabulary.from_tokens([*made, None], (len(made),))
    )
