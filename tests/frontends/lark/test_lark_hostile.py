"""Hostile grammars and vocabularies: what never ends is refused, what a vocabulary lacks is searched for in reason."""

from __future__ import annotations

import pytest

from constrain import Vocabulary
from constrain.base.errors import GrammarError, LimitError
from constrain.base.options import Limits
from constrain.compilation.constraint_compiler import compile_grammar
from constrain.frontends.lark import to_grammar

BLOCKS = """
start: start block |
block: _NEWLINE _INDENT (A | start)+ _DEDENT
A: "a"
_NEWLINE: /\\n */
%declare _INDENT _DEDENT
"""


def test_reductions_without_end_are_refused() -> None:
    """An x that is a y is an x, and that goes first: on `(a)` Lark's parser never answers."""
    with pytest.raises(GrammarError, match=r"never terminates.*`y: x`"):
        to_grammar('start: "(" w ")"\nw: x\ny.2: x\nx: "a" | y')


@pytest.mark.parametrize(
    "text", ['start: x | "a"\nx: start', 'start: "(" start+ ")" | "a"?', 'start: (x "b")+\nx: x? | "c"', BLOCKS]
)
def test_cycles_that_are_resolved_are_accepted(text: str) -> None:
    """Lark parses these: where it might go round, something else is preferred."""
    vocabulary = Vocabulary.from_tokens([bytes([i]) for i in range(256)] + [None], eos_ids=[256])
    matcher = compile_grammar(to_grammar(text), vocabulary).matcher()
    for _ in range(4):
        found = matcher.next_bytes()
        if not found:
            break
        matcher.advance_bytes(bytes([max(found)]))
    assert matcher.shortest_completion() is not None


FEW = Vocabulary.from_tokens([b"a", b"(", b")", b"((", b"a)", b"x", None], eos_ids=[6])


def test_a_tiny_vocabulary_closes_brackets() -> None:
    """There is always a deeper bracket: the search for an end goes where the end is near."""
    matcher = compile_grammar(to_grammar('start: "(" start ")" | "a"'), FEW).matcher()
    matcher.advance_bytes(b"((")
    assert [token for token in range(FEW.size) if matcher.allows(token)] == [0, 1, 3, 4]


def test_a_search_that_fills_the_state_cache_is_reported() -> None:
    """No token closes these brackets, and the nesting is unbounded."""
    words = Vocabulary.from_tokens([b"a", b"(", None], eos_ids=[2])
    grammar = to_grammar('start: "(" start ")" | "a"')
    matcher = compile_grammar(grammar, words, Limits(state_cache_bytes=1 << 20)).matcher()
    assert matcher.allows(0)
    with pytest.raises(LimitError):
        matcher.allows(1)


def test_ignored_brackets_do_not_count() -> None:
    """What is ignored never reaches the Indenter: a lone closing bracket is none, an open one does not hide lines."""
    text = 'start: A block?\nblock: _NEWLINE _INDENT A _DEDENT\nA: "a"\nRPAR: ")"\nLPAR: "("\n_NEWLINE: /\\n */\n'
    text += "%ignore RPAR\n%ignore LPAR\n%declare _INDENT _DEDENT"
    vocabulary = Vocabulary.from_tokens([bytes([i]) for i in range(256)] + [b")(a\n  "] + [None], eos_ids=[257])
    start = compile_grammar(to_grammar(text), vocabulary).matcher()
    for data in (b")a(", b"a)\n a", b")(a\n  (a"):
        matcher = start.fork()
        matcher.advance_bytes(data)
        assert matcher.is_complete, data
    assert start.allows(256)
    assert start.mask()[8] & 1
