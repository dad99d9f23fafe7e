"""Walks to the exits of a leaf (kernels): masks of leaf states without suffix tries, against steps of single bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pytest
from hypothesis import given, settings, strategies as st

from constrain import Constraint, LimitError, Limits, Style, Vocabulary, compile, gbnf, regex
from constrain.automata.dfa import Dfa
from constrain.compilation.constraint_compiler import compile_grammar
from constrain.grammar.nodes import EMPTY, Chars, Choice, Grammar, Rule, Sequence
from constrain.kernels import layout as at
from constrain.vocabulary import mask_table
from constrain.vocabulary.learned_rows import OVER_BUDGET
from constrain.vocabulary.mask_table_cache import find_mask_table
from tests.grammar_strategies import dfas, texts
from tests.token_mask_oracle import compare_token_masks

Encoding = Literal["utf8", "json"]
BYTES = [bytes([byte]) for byte in range(256)]
WORDS = """ab abc (a a(b )c ()" (?: a)" )) \\( [a( a] b"] .com a.b 漢 é( (é x漢 é\n a\nb \n\n 12( 3.5 "," ","a "}]
\\u00 e9 a\\ n( \\\\ -a a- --b *( a*""".replace("\\n", "\n").split(" ")
"""Tokens that cross the border of a leaf, between characters and inside of them."""
TOKENS = [*BYTES, *(word.encode() for word in WORDS), "漢".encode()[:2], "é(".encode()[1:], None]
ORACLE = Vocabulary.bytes()


def crossing() -> Vocabulary:
    """A vocabulary with a table of its own."""
    return Vocabulary.from_tokens(TOKENS, (len(TOKENS) - 1,))


STRING = {"type": "string"}
SOURCES: list[tuple[str, Callable[[Vocabulary], Constraint], bytes]] = [
    ("regex", lambda v: compile(v, schema=STRING | {"format": "regex"}), b'"ab(a(?:b)c)*(a[(]b)"'),
    (
        "regex in any style",
        lambda v: compile(v, schema=STRING | {"format": "regex"}, style=Style.any()),
        b'"a\\u0028b)\\n(c)"',
    ),
    ("no regex", lambda v: compile(v, schema=STRING | {"not": {"format": "regex"}}), b'"ab(a)c)"'),
    ("labels", lambda v: compile(v, schema=STRING | {"format": "idn-hostname"}), '"ab.漢é.com"'.encode()),
    (
        "regexes that differ",
        lambda v: compile(v, schema={"type": "array", "items": STRING | {"format": "regex"}, "uniqueItems": True}),
        b'["a(b)","ab"]',
    ),
    (
        "counted",
        lambda v: compile(v, gbnf('root ::= [a-c(]{2,5} ("(" | "\\n" | "\\u6f22") [^"(]* "(" root?')),
        "ab((éab(abc((".encode(),
    ),
    ("control characters", lambda v: compile(v, gbnf('root ::= ([^"\\n]+ "\\n")+')), b"ab\na(\n\n"),
    (
        "ambiguous",
        lambda v: compile(v, gbnf('root ::= item ("," item)*\nitem ::= [0-9.]+ | "(" [^)]* ")" | [a-z]*')),
        "12,(a漢),ab".encode(),
    ),
    ("characters", lambda v: compile(v, regex(r"[^x]{1,4}\(\w*\)é.*")), "ab()é(".encode()),
]


@pytest.mark.parametrize("budget", [-1, 3])
@pytest.mark.parametrize("make, text", [case[1:] for case in SOURCES], ids=[case[0] for case in SOURCES])
def test_masks_without_suffix_tries(
    make: Callable[[Vocabulary], Constraint], text: bytes, budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With none at all, and with small ones only."""
    monkeypatch.setattr(mask_table, "SUFFIX_BUDGET", budget)
    vocabulary = crossing()
    compare_token_masks(make(vocabulary), make(ORACLE), text, vocabulary)
    leaves = find_mask_table(vocabulary).arrays[at.LEAVES]
    assert (leaves[at.LEAF_SUFFIXES :: at.LEAF_W] == OVER_BUDGET).any()


LEAVES = dfas().filter(lambda dfa: not dfa.is_empty)


@settings(deadline=None)
@given(LEAVES, LEAVES, st.sampled_from(["utf8", "json"]), st.integers(0, 2), st.sampled_from([2, 3, None]), texts(8))
def test_any_two_leaves(first: Dfa, second: Dfa, encoding: Encoding, low: int, high: int | None, text: str) -> None:
    """In turn, where each may end anywhere and the next one may begin with the same characters."""
    body = Sequence((Chars(first, encoding, low, high), Chars(second, encoding), Rule("S")))
    grammar = Grammar(Rule("S"), {"S": Choice((EMPTY, body))})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mask_table, "SUFFIX_BUDGET", -1)
        vocabulary = crossing()
        fast, slow = compile_grammar(grammar, vocabulary), compile_grammar(grammar, ORACLE)
        compare_token_masks(fast, slow, text.encode(), vocabulary)


def test_a_long_walk_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps of a walk inside a leaf count as those of all masks do."""
    monkeypatch.setattr(mask_table, "SUFFIX_BUDGET", -1)
    tokens = [*BYTES, *(b"a" * length + b"(" for length in range(1, 400)), None]
    vocabulary = Vocabulary.from_tokens(tokens, (len(tokens) - 1,))
    grammar = gbnf('root ::= [a-z]+ "("')
    compile(vocabulary, grammar, limits=Limits(work=10_000)).matcher().mask()
    with pytest.raises(LimitError, match="A mask would take more than 1,600 steps"):
        compile(vocabulary, grammar, limits=Limits(work=1_600)).matcher().mask()
