"""Within a budget, a token is allowed if and only if a completion after it fits, whatever `Budget` skips or caches."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain import Matcher, Vocabulary
from constrain.decoding.reachable_tokens import Budget, finish_character
from constrain.engine.completion_check import can_end_after
from constrain.engine.free_keys import find_keyless_state, free_states_after, list_plain_tokens
from constrain.sampling.core.masked_sampling import allowed_tokens

WORDS = [b"aa", b"ab", b"ba", b'":', b'":0', b'a":', b'","', b'{"', b"\\u00", b"a\\", b"\xc3\xa9", b"true", None]
TOKENS = [*(bytes([byte]) for byte in range(256)), *WORDS]
VOCABULARY = Vocabulary.from_tokens(TOKENS, [len(TOKENS) - 1], special={"<end>": len(TOKENS) - 1}, name="letters")
SCHEMAS = {
    "any keys": {"type": "object"},
    "two keys": {"type": "object", "minProperties": 2, "additionalProperties": {"type": "integer"}},
    "a forbidden key": {"properties": {"ab": False, "a": {"type": "boolean"}}, "type": "object", "required": ["zz"]},
    "short keys": {"type": "object", "propertyNames": {"maxLength": 2}, "minProperties": 1},
    "keys of a pattern": {"type": "object", "patternProperties": {"^a": {"const": "long enough"}}, "maxProperties": 3},
    "listed keys": {"type": "object", "propertyNames": {"enum": ["aa", "ab", "b"]}, "minProperties": 1},
    "objects that differ": {"type": "array", "uniqueItems": True, "items": {"type": "object", "minProperties": 1}},
    "keys in keys": {"type": "object", "additionalProperties": {"type": "object", "minProperties": 1}},
}  # fmt: skip


def fits(matcher: Matcher, token: int, known: bytes, remaining: int) -> bool:
    """Return by trial whether a token leaves room for one of the completions that a Budget may use."""
    trial = matcher.fork()
    trial.advance(token)
    character = finish_character(trial.text)
    candidates = (known, known[len(VOCABULARY.spelled(token)) :], character + known, trial.shortest_completion(None))
    return any(
        data is not None and can_end_after(trial, data) and len(VOCABULARY.fewest(data)) + 2 <= remaining
        for data in candidates
    )


@given(st.text(max_size=3), st.characters(exclude_categories=["Cs"]), st.integers(0, 4))
def test_a_character_that_a_text_has_begun_is_finished(before: str, last: str, length: int) -> None:
    encoded = last.encode()
    text = before.encode() + encoded[:length]
    added = finish_character(text)
    assert len((text + added).decode()) == len(before) + (length > 0), "it is valid, and has one character more"
    assert len(added) == (max(len(encoded) - length, 0) if length else 0)


def test_characters_begun_in_keys_take_no_search_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where keys that match a pattern need more than others do, a search visits very many spellings."""
    schema = {"type": "object", "patternProperties": {"^.*$": {"type": "array", "minItems": 1}}}
    constraint = constrain.compile(VOCABULARY, schema=schema)
    matcher, budget, searched = constraint.matcher(), Budget(VOCABULARY, 60), list[bytes]()
    find = Matcher.shortest_completion

    def note(self: Matcher, limit: int | None = None) -> bytes | None:
        searched.append(self.text)
        return find(self, limit)

    matcher.advance_bytes(b'{"')
    known, mask = matcher.shortest_completion(None), matcher.mask()
    allowed = mask.copy()
    monkeypatch.setattr(Matcher, "shortest_completion", note)
    budget.narrow(matcher, mask, known, 50)
    assert mask.tolist() == allowed.tolist()
    assert len(searched) < 10


@pytest.mark.parametrize("name", SCHEMAS)
@settings(max_examples=5)
@given(rng=st.randoms(use_true_random=False))
def test_a_mask_within_a_budget_has_the_tokens_after_which_a_completion_fits(name: str, rng: random.Random) -> None:
    constraint = constrain.compile(VOCABULARY, schema=SCHEMAS[name], style=constrain.Style(whitespace="compact"))
    budget, end = Budget(VOCABULARY, 200), VOCABULARY.eos_ids[0]
    for _ in range(2):
        matcher = constraint.matcher()
        for _ in range(rng.randint(1, 12)):
            letters = [token for token in allowed_tokens(matcher.mask()).tolist() if token != end]
            known = matcher.shortest_completion(None)
            if not letters or known is None:
                break
            least = len(VOCABULARY.fewest(known)) + 1
            remaining = least + rng.choice([0, 0, 1, 3, 5, 6, 7, 12])
            mask = matcher.mask()
            budget.narrow(matcher, mask, known, remaining)
            expected = [token for token in letters if fits(matcher, token, known, remaining)]
            assert [token for token in allowed_tokens(mask).tolist() if token != end] == expected
            # Mostly letters and quotes, so that keys grow, end, and repeat others.
            likely = [token for token in letters if set(VOCABULARY.spelled(token)) <= set(b'abc":{,0')]
            matcher.advance(rng.choice(likely if likely and rng.random() < 0.9 else letters))


def test_cached_free_key_is_valid_later_and_with_fewer_tokens() -> None:
    items = [{"type": "object", "minProperties": 2}, {"const": "a long rest"}]
    schema = {"type": "array", "minItems": 2, "items": False, "prefixItems": items}
    matcher = constrain.compile(VOCABULARY, schema=schema, style=constrain.Style(whitespace="compact")).matcher()
    budget, admitted = Budget(VOCABULARY, 200), set()
    for text in (b'[{"c', b"b"):
        matcher.advance_bytes(text)
        known, allowed = matcher.shortest_completion(None) or b"", allowed_tokens(matcher.mask()).tolist()
        least = len(VOCABULARY.fewest(known)) + 1
        for remaining in (least + 8, least + 6, least + 1, least):
            mask = matcher.mask()
            budget.narrow(matcher, mask, known, remaining)
            expected = [token for token in allowed if fits(matcher, token, known, remaining)]
            assert allowed_tokens(mask).tolist() == expected
            admitted.add(len(expected))
    assert len(budget.in_keys) == 1 and len(admitted) > 1


def test_in_a_free_key_most_tokens_share_a_few_states() -> None:
    matcher = constrain.compile(VOCABULARY, schema={"type": "object"}).matcher()
    assert find_keyless_state(matcher) == 0
    matcher.advance_bytes(b'{"a":1,"b')
    tokens = allowed_tokens(matcher.mask())
    tokens = tokens[list_plain_tokens(VOCABULARY)[tokens]]
    states = free_states_after(matcher, tokens)
    assert len(np.unique(matcher.states_after(tokens))) > 90 > 10 > len(np.unique(states))
    assert (states > 0).mean() > 0.5


def test_a_declared_or_bounded_key_is_not_free() -> None:
    for schema, begun in (
        ({"type": "object", "properties": {"abc": {}}, "additionalProperties": False}, b'{"a'),
        ({"type": "object", "propertyNames": {"maxLength": 3}}, b'{"a'),
        ({"type": "object"}, b'{"a":"b'),
    ):
        matcher = constrain.compile(VOCABULARY, schema=schema).matcher()
        matcher.advance_bytes(begun)
        assert not free_states_after(matcher, np.array([ord("b"), ord("c")])).any()
