"""XGrammar's EBNF: against XGrammar on cases and random grammars, and what is refused, with its place."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain import GrammarError, UnsatisfiableError, UnsupportedError, Vocabulary
from tests.dialogue.structural_tag_peer import our_verdict, peer_ebnf

TAGS = 'root ::= "q"? TagDispatch(("<a>", b), ("<c>", b)%s)\nb ::= [0-9]+ ";"'
TAGGED = ["", "<a>1;", "y<a>1;", "x", "<a>", "<a>1;z", "<", "q<c>22;<a>3;", "<a>;"]
CASES: list[tuple[str, list[str]]] = [
    ('root ::= "a" |\n "b" | \n\n "c"\n', ["a", "b", "c", ""]),
    ('root ::= ("a"\n "b")+ c-1.d\nc-1.d ::= "d" # note\n  # note', ["abd", "ababd", "ab"]),
    ('root ::= a "c"\na ::= "x" (= "d" [)] (")"))\n', ["xc", "xd"]),
    (r'root ::= "\x41" "\x1F600" "\u0041" "\/\?\'\e\0"', ["A😀A/?'\x1b\0", "A"]),
    (r"root ::= [a\-z] [\]\x41-\x43] [^] [^é-ë]", ["-]\nx", "aBéé", "bA11", "zCaa"]),
    ('root ::= root "a" | "b" {2} | "c"{0}', ["bbaa", "a", "", "b"]),
    ('root ::= ("a" | "b"){2,3} "é"* "x"{1,}', ["abx", "abaéx", "ax", "abéé"]),
    ('root ::= Regex("a+|[^b]") "b"', ["aab", "cb", "bb"]),
    (TAGS % "", TAGGED),
    (TAGS % ', loop_after_dispatch=false, excludes=("x",)', TAGGED),
    (TAGS % ",\n  excludes=(\"x\")", TAGGED),
    ('root ::= () "a" ""', ["a", ""]),
]  # fmt: skip


@pytest.mark.parametrize(("grammar", "texts"), CASES)
def test_cases_mean_what_they_mean_to_xgrammar(grammar: str, texts: list[str]) -> None:
    theirs, ours = peer_ebnf(grammar), our_verdict(constrain.gbnf(grammar, dialect="xgrammar"))
    assert theirs is not None
    assert {text: ours(text) for text in texts} == {text: theirs(text) for text in texts}


STEPS = st.recursive(
    st.sampled_from(
        [
            '"a"',
            '"ab"',
            "[ab]",
            "[^a]",
            '""',
            "x",
            "root",
            'TagDispatch(("ab", x))',
            'TagDispatch(("b", x), excludes=("ab",))',
        ]
    ),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(" ".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({' | '.join(parts)})"),
        st.builds(
            lambda one, count: f"({one}){count}", inner, st.sampled_from(["?", "*", "+", "{2}", "{1,2}", "{1,}"])
        ),
    ),
    max_leaves=5,
)
TEXTS = ["", "a", "b", "ab", "ba", "aa", "aab", "aba", "abab", "bb", "abba", "c", "abc", "aaaa", "babab"]


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(STEPS, STEPS)
def test_random_grammars_mean_what_they_mean_to_xgrammar(root: str, other: str) -> None:
    grammar = f"root ::= {root}\nx ::= {other}\n"
    theirs = peer_ebnf(grammar)
    if theirs is None:
        return
    try:
        ours = our_verdict(constrain.gbnf(grammar, dialect="xgrammar"))
    except UnsatisfiableError:
        assert not any(map(theirs, TEXTS)), grammar
        return
    found = {text: (ours(text), theirs(text)) for text in TEXTS}
    assert not {text: both for text, both in found.items() if both[0] != both[1]}, grammar


def test_tokens() -> None:
    vocabulary = Vocabulary.from_tokens(
        [*(bytes((value,)) for value in range(256)), None, None, None], (256,), special={"<x>": 257, "<y>": 258}
    )
    grammar = 'root ::= Token(257) TokenTagDispatch((258, b), excludes=(257,))\nb ::= "1"'
    matcher = constrain.compile(vocabulary, grammar=grammar).matcher()
    assert not matcher.allows(258)
    for token in (257, 97, 258, 49):
        matcher.advance(token)
    assert matcher.is_complete and not matcher.allows(257)
    excluding = constrain.compile(vocabulary, grammar="root ::= ExcludeToken(257)").matcher()
    assert excluding.allows(258) and not excluding.allows(257)


@pytest.mark.parametrize(
    ("grammar", "position"),
    [
        ('root ::= "a" root ::= "b"', 18), ('root ::= "a"{,2}', 12), ("root ::= [\\d]", 10), ('root ::= "\\q"', 10),
        ('root ::= "a\nb"', 11), ("root ::= .", 9), ('1a ::= "x"', 0), ('root ::= "a" ; "b"', 13), ("root ::= b", 9),
        ('root ::= TagDispatch(("<a>", b), x=1)\nb ::= "1"', 9), ('root ::= TagDispatch(("", b))\nb ::= "1"', 9),
        ('root ::= TagDispatch(("ab", b), excludes=("a"))\nb ::= "1"', 9), ("root ::= Token()", 9),
        ("root ::= Regex(1)", 9), ('root ::= "a" (= "b"', 13), ("root ::= Token(5", 16),
        ("root ::= TagDispatch((((((", 24), ('root ::= "\\xD800"', 10),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_at_its_place(grammar: str, position: int) -> None:
    with pytest.raises(GrammarError) as caught:
        our_verdict(constrain.gbnf(grammar, dialect="xgrammar"))
    assert caught.value.position == position


@pytest.mark.parametrize(
    "grammar", ['root[temperature=0.5] ::= "a"', 'root ::= Substring("abc")', "root ::= Token(65)"]
)
def test_unenforced_ebnf_constructs_raise(grammar: str) -> None:
    with pytest.raises(UnsupportedError):
        our_verdict(constrain.gbnf(grammar, dialect="xgrammar"))
