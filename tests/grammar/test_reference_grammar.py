"""The oracle on rules, against sets of texts: all that a small grammar makes up to some length, built bottom up."""

from __future__ import annotations

from itertools import product

from hypothesis import given, strategies as st

from constrain.grammar.nodes import EMPTY, Choice, Grammar, Literal, Node, Repeat, Rule, Sequence, Strings
from tests.grammar_oracle import Reference

LONGEST = 6
RULES = ("R", "S", "T")

leaves = st.one_of(
    st.sampled_from([b"", b"a", b"b", b"ab", b"ba"]).map(Literal),
    st.sampled_from(RULES).map(Rule),
    st.just(Strings((b"", b"aa", b"b"))),
)
bodies = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: Sequence(tuple(parts))),
        st.lists(inner, max_size=3).map(lambda parts: Choice(tuple(parts))),
        st.tuples(inner, st.integers(0, 2), st.one_of(st.none(), st.integers(0, 2))).map(
            lambda t: Repeat(t[0], t[1], None if t[2] is None else t[1] + t[2])
        ),
    ),
    max_leaves=5,
)
grammars = st.tuples(bodies, bodies, bodies).map(lambda t: Grammar(Rule("R"), dict(zip(RULES, t))))


def texts_of(node: Node, known: dict[str, frozenset[bytes]]) -> frozenset[bytes]:
    """The texts of up to LONGEST bytes of a node, given those of the rules."""
    match node:
        case Literal(data):
            return frozenset({data})
        case Strings(options):
            return frozenset(options)
        case Rule(name):
            return known[name]  # type: ignore[index]
        case Choice(options):
            return frozenset().union(*(texts_of(option, known) for option in options))
        case Sequence(parts):
            out = frozenset({b""})
            for part in parts:
                out = joined(out, texts_of(part, known))
            return out
        case Repeat(inner, low, high):
            one, out, rounds = texts_of(inner, known), frozenset[bytes](), frozenset({b""})
            for count in range((high if high is not None else low + LONGEST + 1) + 1):
                out = out | rounds if count >= low else out
                rounds = joined(rounds, one)
            return out
    raise TypeError(node)


def joined(left: frozenset[bytes], right: frozenset[bytes]) -> frozenset[bytes]:
    return frozenset(a + b for a in left for b in right if len(a) + len(b) <= LONGEST)


def language(grammar: Grammar) -> frozenset[bytes]:
    """All texts of up to LONGEST bytes: the rules grow together until nothing is new."""
    known = {str(name): frozenset[bytes]() for name in grammar.rules}
    while True:
        grown = {str(name): texts_of(grammar.rules[name], known) for name in grammar.rules}
        if grown == known:
            return texts_of(grammar.start, known)
        known = grown


ALL = [bytes(word) for length in range(LONGEST) for word in product(b"ab", repeat=length)]


@given(grammars)
def test_accepts_is_membership_and_viable_has_a_witness(grammar: Grammar) -> None:
    oracle, wanted = Reference(grammar), language(grammar)
    for text in ALL:
        assert oracle.accepts(text) == (text in wanted), text
        if any(longer.startswith(text) for longer in wanted):
            assert oracle.viable(text), text


@given(grammars)
def test_viable_is_that_some_byte_goes_on_or_that_it_may_end(grammar: Grammar) -> None:
    oracle = Reference(grammar)
    for text in ALL[:31]:
        goes_on = any(oracle.viable(text + bytes([byte])) for byte in b"ab")
        assert oracle.viable(text) == (goes_on or oracle.accepts(text)), text


def test_left_recursion_ambiguity_and_empty_rules() -> None:
    rules: dict[str, Node] = {
        "list": Choice((Sequence((Rule("list"), Literal(b","), Rule("item"))), Rule("item"))),
        "item": Choice((Literal(b"x"), Sequence((Literal(b"("), Rule("list"), Literal(b")"))))),
        "loop": Choice((Rule("loop"), Sequence((Rule("loop"), Rule("loop"))), EMPTY, Literal(b"y"))),
        "none": Sequence((Literal(b"z"), Rule("none"))),
    }
    lists = Reference(Grammar(Rule("list"), rules))
    assert lists.accepts(b"x,(x,x),((x))") and lists.viable(b"((((x,") and not lists.viable(b"x,,")
    assert not lists.accepts(b"(x") and not lists.viable(b"x)")
    loop = Reference(Grammar(Rule("loop"), rules))
    assert loop.accepts(b"") and loop.accepts(b"y" * 9)
    none = Reference(Grammar(Rule("none"), rules))
    assert not none.viable(b"") and not none.viable(b"z") and none.mask(b"", [b"z", b"", None]) == set()


def test_masks() -> None:
    oracle = Reference(Grammar(Repeat(Literal(b"ab"), 2, 3), {}))
    tokens = [b"a", b"b", b"ab", b"aba", b"", None, b"abababa", b"ababab", b"abab"]
    assert oracle.mask(b"", tokens) == {0, 2, 3, 7, 8}
    assert oracle.mask(b"ab", tokens) == {0, 2, 3, 8}
    assert oracle.mask(b"ababab", tokens) == set()
    assert oracle.accepts(b"abab") and not oracle.accepts(b"ab")
