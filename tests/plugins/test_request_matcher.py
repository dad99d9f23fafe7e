"""A RequestMatcher follows any reports of tokens: its mask is that of a new Matcher after the same tokens."""

from __future__ import annotations

import random
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain import LimitError
from constrain.decoding.reachable_tokens import Budget
from constrain.plugins.engine_versions import ENGINE_VERSIONS, check_engine_version, split_version
from constrain.plugins.request_matcher import RequestMatcher, fill_request_masks, mask_of_tokens
from constrain.sampling.core.masked_sampling import allowed_tokens
from tests.plugins.engine_fakes import END, VOCABULARY, StuckMatcher, make_batches_stuck, pretend_versions

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "integer"}}},
}


@lru_cache
def constraint() -> constrain.Constraint:
    return constrain.compile(VOCABULARY, schema=SCHEMA)


def random_text(rng: random.Random, most: int) -> list[int]:
    """Tokens of a random text, or of its first `most` tokens."""
    matcher, tokens = constraint().matcher(), []
    while len(tokens) < most and tokens[-1:] != [END]:
        tokens.append(rng.choice(allowed_tokens(matcher.mask()).tolist()))
        matcher.advance(tokens[-1])
    return tokens


@given(st.randoms(use_true_random=False))
def test_masks_are_those_of_a_new_matcher_whatever_is_reported(rng: random.Random) -> None:
    request = RequestMatcher(constraint())
    reports = [random_text(rng, rng.randint(0, 12)) for _ in range(3)]
    for _ in range(12):
        tokens = rng.choice(reports)
        tokens = tokens[: rng.randint(0, len(tokens))]
        assert request.follow(tokens)
        matcher = constraint().matcher()
        for token in tokens:
            matcher.advance(token)
        expected = request.ends if tokens[-1:] == [END] else matcher.mask()
        assert np.array_equal(request.mask(), expected)
        filled = np.zeros((1, len(expected)), np.int32)
        fill_request_masks([request], filled)
        assert np.array_equal(filled[0], expected)


def test_a_refused_token_closes_the_request_until_it_is_taken_back() -> None:
    request = RequestMatcher(constraint())
    assert not request.follow(list(b"{x"))
    assert "token 120 after '{'" in str(request.error)
    assert np.array_equal(request.mask(), request.ends)
    assert request.follow(list(b"{"))
    assert request.error is None and len(allowed_tokens(request.mask())) > 1


def test_tokens_after_the_end_are_ignored() -> None:
    request = RequestMatcher(constraint())
    assert request.follow([*b"{}", END, 5, 7])
    assert request.has_ended and np.array_equal(request.mask(), request.ends)
    assert request.follow(list(b"{}")), "a rejected draft held the end token"
    assert END in allowed_tokens(request.mask())


@settings(max_examples=25)
@given(st.randoms(use_true_random=False), st.integers(4, 40))
def test_within_a_budget_every_text_is_complete(rng: random.Random, most: int) -> None:
    request = RequestMatcher(constraint(), most)
    for length in range(most):
        if request.has_ended:
            break
        assert len(request.tokens) == length
        request.follow([*request.tokens, rng.choice(allowed_tokens(request.mask()).tolist())])
    assert request.has_ended and len(request.tokens) <= most


@settings(max_examples=30)
@given(st.randoms(use_true_random=False))
def test_a_known_sufficient_budget_changes_no_mask(rng: random.Random) -> None:
    """`Budget.enough` skips the search; the masks are those of a Budget that knows nothing."""
    kept = Budget(VOCABULARY, 30)
    for _ in range(4):
        tokens = [token for token in random_text(rng, 10) if token != END]
        matcher = constraint().matcher()
        for token in tokens:
            matcher.advance(token)
        known = matcher.shortest_completion(None)
        for remaining in sorted(rng.sample(range(len(known or b"") + 1, 30), 2), reverse=rng.random() < 0.5):
            masks = []
            for budget in (kept, Budget(VOCABULARY, 30)):
                masks.append(matcher.mask())
                budget.narrow(matcher, masks[-1], known, remaining)
            assert np.array_equal(*masks)


def test_too_small_a_budget_is_refused_at_once() -> None:
    with pytest.raises(LimitError, match="shortest text found takes 3 tokens"):
        RequestMatcher(constraint(), 2)


def test_a_token_beyond_the_budget_is_refused() -> None:
    request = RequestMatcher(constraint(), 3)
    assert not request.follow(list(b'{"a'))
    assert "cannot be completed within 3 tokens" in str(request.error)
    assert request.tokens == list(b"{")
    assert request.follow(list(b"{}"))


def test_a_row_that_fails_does_not_touch_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    make_batches_stuck(monkeypatch)
    requests = [RequestMatcher(constraint()) for _ in range(3)]
    requests[1].matcher = StuckMatcher()  # type: ignore[assignment]
    out = np.zeros((3, len(requests[0].ends)), np.int32)
    fill_request_masks(requests, out)
    assert np.array_equal(out[0], constraint().matcher().mask()) and np.array_equal(out[0], out[2])
    assert np.array_equal(out[1], requests[1].ends) and isinstance(requests[1].error, LimitError)


def test_mask_of_tokens() -> None:
    assert allowed_tokens(mask_of_tokens([0, 31, 32, END], VOCABULARY)).tolist() == [0, 31, 32, END]


def test_versions_outside_the_tested_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert split_version("0.5.23rc1+cpu") == (0, 5, 23)
    for package, (least, below) in ENGINE_VERSIONS.items():
        pretend_versions(monkeypatch, **{package.replace("-", "_"): least})
        assert check_engine_version(package) == least
        for wrong in ("0.0.1", below, "99.1"):
            pretend_versions(monkeypatch, **{package.replace("-", "_"): wrong})
            with pytest.raises(constrain.UnsupportedError, match="has not been tested with this plug-in"):
                check_engine_version(package)


def test_a_missing_engine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import PackageNotFoundError

    from constrain.plugins import engine_versions

    def missing(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(engine_versions, "version", missing)
    with pytest.raises(constrain.UnsupportedError, match="vllm is not installed"):
        check_engine_version("vllm")
