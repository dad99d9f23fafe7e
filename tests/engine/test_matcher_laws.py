"""Invariants of a Matcher for any grammar: a state machine of random moves, checked against fresh matchers.

rollback undoes advance; forks do not disturb each other; a refused token leaves everything as it was; allows, mask,
next_bytes, forced and is_complete agree with each other, and with a matcher that takes the same text at once.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from constrain.base.errors import TokenRefused
from constrain.compilation.constraint_compiler import compile, compile_grammar
from constrain.engine.constraint import Constraint
from constrain.engine.matcher import Matcher
from constrain.grammar.nodes import Grammar, Literal
from constrain.vocabulary.vocabulary import Vocabulary
from tests import grammar_factory as make
from tests.token_mask_oracle import list_tokens


class Moves(RuleBasedStateMachine):
    """Several matchers of one constraint, and beside each the bytes or tokens that it took."""

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        kind = data.draw(st.sampled_from(["rules", "characters", "objects"]), label="kind")
        grammars: st.SearchStrategy[Grammar] = getattr(make, kind)
        self.vocabulary = data.draw(make.vocabularies(kind), label="vocabulary")
        self.constraint: Constraint = compile_grammar(
            data.draw(grammars.filter(make.sound), label="grammar"), self.vocabulary
        )
        self.matchers: list[Matcher] = [self.constraint.matcher()]
        self.taken: list[list[int | bytes]] = [[]]

    def replayed(self, index: int) -> Matcher:
        """A new matcher that took the same."""
        other = self.constraint.matcher()
        for item in self.taken[index]:
            if isinstance(item, int):
                other.advance(item)
            else:
                other.advance_bytes(item)
        return other

    def ended(self, index: int) -> bool:
        return any(item in self.vocabulary.eos_ids for item in self.taken[index] if isinstance(item, int))

    @rule(data=st.data())
    def advance(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.matchers) - 1))
        allowed = sorted(
            list_tokens(self.matchers[index].mask()),
            key=lambda token: (-len(self.vocabulary.tokens[token] or b""), token),
        )
        if allowed:
            token = data.draw(st.one_of(st.sampled_from(allowed[:5]), st.sampled_from(allowed)))
            self.matchers[index].advance(token)
            self.taken[index].append(token)

    @rule(data=st.data())
    def advance_bytes(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.matchers) - 1))
        text = b""
        other = self.matchers[index].fork()
        for _ in range(data.draw(st.integers(1, 4))):
            if bytes_now := sorted(other.next_bytes()):
                byte = bytes([data.draw(st.sampled_from(bytes_now))])
                other.advance_bytes(byte)
                text += byte
        if text:
            self.matchers[index].advance_bytes(text)
            self.taken[index].append(text)

    @rule(data=st.data())
    def refuse(self, data: st.DataObject) -> None:
        """A token or bytes that are not allowed, also after some that are."""
        index = data.draw(st.integers(0, len(self.matchers) - 1))
        matcher = self.matchers[index]
        mask = matcher.mask().copy()
        refused = sorted(set(range(-1, self.vocabulary.size + 2)) - list_tokens(mask))
        token = data.draw(st.sampled_from(refused))
        with pytest.raises(TokenRefused):
            matcher.advance(token)
        if bad := sorted(set(range(256)) - matcher.next_bytes()):
            with pytest.raises(TokenRefused) as caught:
                matcher.advance_bytes(bytes([data.draw(st.sampled_from(bad))]))
            assert self.ended(index) or caught.value.position == 0
        assert (matcher.mask() == mask).all()

    @rule(data=st.data(), count=st.integers(0, 3))
    def rollback(self, data: st.DataObject, count: int) -> None:
        index = data.draw(st.integers(0, len(self.matchers) - 1))
        count = min(count, len(self.taken[index]))
        self.matchers[index].rollback(count)
        del self.taken[index][len(self.taken[index]) - count :]

    @precondition(lambda self: len(self.matchers) < 4)
    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.matchers) - 1))
        self.matchers.append(self.matchers[index].fork())
        self.taken.append(self.taken[index].copy())

    @invariant()
    def every_matcher_is_where_its_text_is(self) -> None:
        for index, matcher in enumerate(getattr(self, "matchers", [])):
            other = self.replayed(index)
            mask = matcher.mask()
            assert mask.dtype == np.int32 and (mask == other.mask()).all()
            assert matcher.next_bytes() == other.next_bytes()
            assert (matcher.is_complete, matcher.is_finished) == (other.is_complete, other.is_finished)
            assert matcher.tokens == [item for item in self.taken[index] if isinstance(item, int)]

    @invariant()
    def what_it_says_agrees(self) -> None:
        for index, matcher in enumerate(getattr(self, "matchers", [])):
            allowed = list_tokens(matcher.mask())
            ends = set(self.vocabulary.eos_ids)
            assert all(matcher.allows(token) == (token in allowed) for token in range(-1, self.vocabulary.size + 1))
            if self.ended(index):
                assert not allowed and matcher.is_finished and not matcher.next_bytes() and matcher.forced() == b""
                continue
            assert (ends <= allowed) if matcher.is_complete else not ends & allowed
            firsts = {token[0] for i in allowed if (token := self.vocabulary.tokens[i])}
            assert firsts == matcher.next_bytes()
            assert matcher.is_finished == (matcher.is_complete and not firsts)
            self.forced_agrees(matcher)

    def forced_agrees(self, matcher: Matcher) -> None:
        """Each forced byte is the only one that may come, and nothing is forced where there is a choice or an end."""
        forced, other = matcher.forced(), matcher.fork()
        for byte in forced[:64]:
            assert not other.is_complete and other.next_bytes() == {byte}
            other.advance_bytes(bytes([byte]))
        if len(forced) < 64:
            assert other.is_complete or len(other.next_bytes()) != 1
        tokens = matcher.forced_tokens()
        assert forced.startswith(self.vocabulary.text(tokens))
        other = matcher.fork()
        for token in tokens:
            other.advance(token)


TestMoves = Moves.TestCase
TestMoves.settings = settings(max_examples=max(10, settings.default.max_examples // 4), stateful_step_count=12)


def test_numbers_that_are_no_tokens_are_refused() -> None:
    matcher = compile_grammar(Grammar(Literal(b"ab"), {}), Vocabulary.bytes()).matcher()
    for token in (-1, -(1 << 70), 257, 1 << 40, 1 << 63, 1 << 70):
        with pytest.raises(TokenRefused, match="the vocabulary has 257"):
            matcher.advance(token)
    matcher.advance(np.int64(97))  # type: ignore[arg-type]
    assert matcher.tokens == [97] and type(matcher.tokens[0]) is int


@pytest.mark.parametrize(
    "text", [b'"xy', bytearray(b'"xy'), memoryview(b'"xy'), memoryview(np.frombuffer(b'"xy?', "i4"))]
)
def test_a_refused_byte_is_named_with_the_bytes_before_it(text: bytes) -> None:
    matcher = compile(Vocabulary.bytes(), schema={"const": "xz"}).matcher()
    with pytest.raises(TokenRefused, match="Byte 2 of b'\"xy' is refused") as caught:
        matcher.advance_bytes(text)
    assert caught.value.position == 2
    assert matcher.text == b""
