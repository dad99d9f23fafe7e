"""Small models learned from larger ones: estimates of counts by their definitions, and texts of any kind of model."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import constrain
from constrain.base.errors import ArgumentError, ConstrainError, LimitError
from constrain.integrations.transformers_models import load_model
from constrain.sampling import Hmm, NGram
from constrain.sampling.research.model_samples import sample_model
from constrain.sampling.research.ngram_smoothing import BEGIN, SMALLEST
from tests.markov_factory import LETTERS, ChainModel
from tests.model_factory import build_model

SIZE, END = 4, 3
TEXTS = st.lists(st.lists(st.integers(0, SIZE - 2), max_size=5), min_size=1, max_size=6)
Context = tuple[int, ...]


def events(texts: list[list[int]], order: int) -> list[tuple[Context, int]]:
    """Each token with what is before it, BEGIN included, at most order + 1 tokens of it."""
    marked = [(BEGIN, *text, END) for text in texts]
    return [(text[max(0, i - order - 1) : i], text[i]) for text in marked for i in range(1, len(text))]


def witten_bell(context: Context, token: int, found: list[tuple[Context, int]], order: int) -> float:
    """P(token | context), by its definition."""
    after = [a for before, a in found if not context or before[-len(context) :] == context]
    lower = witten_bell(context[1:], token, found, order) if context else 1 / SIZE
    return (after.count(token) + len(set(after)) * lower) / (len(after) + len(set(after)))


def kneser_ney_count(context: Context, token: int, found: list[tuple[Context, int]], order: int) -> int:
    """The count that Kneser-Ney has for a token after a context."""
    befores = [before for before, a in found if a == token and (not context or before[-len(context) :] == context)]
    if len(context) == order or context[:1] == (BEGIN,):
        return len(befores)
    return len({before[-len(context) - 1] for before in befores})


def kneser_ney(context: Context, token: int, found: list[tuple[Context, int]], order: int) -> float:
    """P(token | context), by its definition."""
    contexts = {b[len(b) - len(context) :] for b, _ in found if len(b) >= len(context)}
    all_counts = Counter(kneser_ney_count(c, a, found, order) for c in contexts for a in range(SIZE))
    discount = all_counts[1] / (all_counts[1] + 2 * all_counts[2]) if all_counts[1] else 0.5
    counts = [kneser_ney_count(context, a, found, order) for a in range(SIZE)]
    lower = kneser_ney(context[1:], token, found, order) if context else 1 / SIZE
    seen = sum(count > 0 for count in counts)
    return (max(counts[token] - discount, 0.0) + discount * seen * lower) / sum(counts)


@settings(max_examples=60, deadline=None)
@given(texts=TEXTS, order=st.integers(0, 3))
@pytest.mark.parametrize(("smoothing", "definition"), [("witten_bell", witten_bell), ("kneser_ney", kneser_ney)])
def test_smoothing_by_its_definition(smoothing: Any, definition: Any, texts: list[list[int]], order: int) -> None:
    model = NGram.of_texts(texts, end=END, size=SIZE, order=order, contexts=1000, smoothing=smoothing)
    found = events(texts, order)
    assert set(model.contexts) == {b[len(b) - k :] for b, _ in found for k in range(order + 1) if k <= len(b)}
    for context, number in model.contexts.items():
        for token in range(SIZE):
            wanted = definition(context, token, found, order)
            assert math.exp(model.logs[number, token]) == pytest.approx(wanted, abs=5 * SMALLEST)
    for text in texts:
        marked = (BEGIN, *text)
        longest = max((c for c in model.contexts if marked[len(marked) - len(c) :] == c), key=len)
        assert model.state(text) == model.contexts[longest]


def test_a_beginning_is_a_context() -> None:
    model = NGram.of_texts([[0, 1], [0, 2]], end=3, size=4, order=2, smoothing="witten_bell")
    assert model.start == model.contexts[(BEGIN,)] and model.state([0]) == model.contexts[(BEGIN, 0)]
    assert model.state([1, 0]) != model.state([0])
    assert [list(model.contexts)[n] for n in model.follow(model.start, np.arange(4))] == [(BEGIN, 0), (1,), (2,), ()]


# ---- texts of models -------------------------------------------------------------------------------------------------


def test_refused_tokens_have_the_mass_that_the_mask_refuses() -> None:
    lm = ChainModel.random(LETTERS, 1, 3)
    constraint = constrain.compile(LETTERS, regex="a(b|c){2,5}a")
    rows = list[tuple[list[int], np.ndarray]]()
    samples = sample_model(
        lm, constraint, n=50, rng=np.random.default_rng(0), max_tokens=9, batch=7,
        read_row=lambda before, row: rows.append((list(before), np.exp(row))),
    )  # fmt: skip
    assert len(samples.texts) == 50 and all(text[-1] == 3 for text in samples.texts)
    by_prefix = {tuple(before): row for before, row in rows}
    for text, refused, leaks, positions in zip(samples.texts, samples.refused, samples.leaks, samples.positions):
        assert constraint.matcher().advance_bytes(LETTERS.decode(text[:-1]).encode()) is None
        assert len(text) == len(refused) == len(leaks) == len(positions)
        matcher = constraint.matcher()
        for i, (other, leak) in enumerate(zip(refused, leaks)):
            allowed = [token for token in range(4) if matcher.allows(token)]
            outside = 1 - by_prefix[tuple(text[:i])][allowed].sum()
            assert leak == pytest.approx(outside, abs=1e-12)
            assert (other == -1) if outside < 1e-12 else other not in allowed
            if text[i] != 3:
                matcher.advance(text[i])


def test_texts_without_a_constraint_are_those_of_the_model() -> None:
    lm = ChainModel.random(LETTERS, 1, 3)
    given: dict[str, Any] = {"n": 4000, "max_tokens": 3, "tokenizer": LETTERS}
    samples = sample_model(lm, rng=np.random.default_rng(1), **given)
    first = np.bincount([text[0] for text in samples.texts], minlength=4) / 4000
    assert np.abs(first - np.exp(lm.next_logprobs([[]])[0])).max() < 0.04
    assert all(refused == -1 for row in samples.refused for refused in row) and max(map(len, samples.texts)) == 3
    assert samples == sample_model(lm, rng=np.random.default_rng(1), **given)
    greedy = sample_model(lm, rng=np.random.default_rng(1), temperature=0.0, **{**given, "n": 5})
    assert len({tuple(text) for text in greedy.texts}) == 1


def test_hidden_states_learn_what_masks_hide() -> None:
    """The state after the first a is one of its own: what the mask refuses there has the model's probability, too."""
    lm = ChainModel.random(LETTERS, 1, 7)
    constraint = constrain.compile(LETTERS, regex="a[bc]a[bc]")
    hmm = Hmm.distil(lm, constraint, n=4000, rng=np.random.default_rng(0), max_tokens=9, states=5, rounds=0)
    for prefix in ([0], [0, 1, 0]):
        found, right = np.exp(hmm.next_logprobs([prefix])[0]), np.exp(lm.next_logprobs([prefix])[0])
        assert np.abs(found - right).max() < 0.03
    assert len(hmm.log_likelihoods) == 1 and np.isfinite(hmm.log_likelihoods[0])


@pytest.mark.parametrize("kind", ["gpt2", "llama", "demo"])
def test_transformers_models_are_distilled(kind: str) -> None:
    pytest.importorskip("transformers")
    loaded = load_model("demo") if kind == "demo" else build_model(kind)
    model: Any = "demo" if kind == "demo" else loaded.model
    given: dict[str, Any] = {"n": 6, "max_tokens": 8, "prompts": [[5, 6], None], "batch": 4}
    if kind != "demo":
        given["tokenizer"] = loaded.tokenizer
    free = NGram.distil(model, rng=np.random.default_rng(0), order=2, **given)
    again = NGram.distil(model, rng=np.random.default_rng(0), order=2, **given)
    assert free.contexts == again.contexts and (free.logs == again.logs).all()
    words = loaded.vocabulary
    constraint = constrain.compile(words, regex="[0-9]{1,3}")
    for smoothing in ("rows", "witten_bell", "kneser_ney"):
        ngram = NGram.distil(model, constraint, rng=np.random.default_rng(0), smoothing=smoothing, **given)
        assert ngram.logs.shape[1] == words.size and np.isfinite(ngram.logs).all()
    hmm = Hmm.distil(model, constraint, rng=np.random.default_rng(0), states=5, rounds=3, **given)
    assert hmm.emit.shape == (5, words.size) and (hmm.emit > 0).all() and len(hmm.log_likelihoods) == 4
    drawn = constrain.sampling.draw(hmm, constraint, sampler="markov", n=5, rng=np.random.default_rng(1), max_tokens=8)
    assert all(one.text.isdigit() for one in drawn)


def test_the_first_rows_are_the_models_own() -> None:
    """With one prompt and the whole beginning as context, the distribution there is the model's."""
    loaded = build_model("gpt2")
    model = NGram.distil(
        loaded.model, tokenizer=loaded.tokenizer, n=3, rng=np.random.default_rng(0), max_tokens=2, prompts=[[5, 6]]
    )
    row = loaded.on([5, 6]).next_logprobs([[]])[0]
    found = np.exp(model.logs[model.start])
    lower = np.exp(model.logs[model.contexts[()]])
    assert np.abs(found - (3 * np.exp(row) + lower) / 4).max() < 1e-6


def test_distil_raises_for_invalid_arguments() -> None:
    lm, rng = ChainModel.random(LETTERS, 1, 3), np.random.default_rng(0)
    constraint = constrain.compile(LETTERS, regex="a+")
    with pytest.raises(ConstrainError, match="holds its own prompt"):
        NGram.distil(lm, constraint, n=1, rng=rng, max_tokens=3, prompts=["x"])
    with pytest.raises(ConstrainError, match="Vocabulary"):
        Hmm.distil(lm, n=1, rng=rng, max_tokens=3)
    with pytest.raises(ArgumentError, match="at least one prompt"):
        Hmm.distil(lm, constraint, n=1, rng=rng, max_tokens=3, prompts=[])
    with pytest.raises(ArgumentError, match="vocabulary"):
        NGram.distil(
            build_model("gpt2").model, constraint, n=1, rng=rng, max_tokens=3, tokenizer=build_model("gpt2").tokenizer
        )
    with pytest.raises(ValueError, match="smoothing"):
        NGram.distil(lm, constraint, n=1, rng=rng, max_tokens=3, smoothing="laplace")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "options", "error", "message"),
    [
        (NGram, {"constraint": "a+"}, TypeError, "constraint is a str: make one with constrain.compile"),
        (Hmm, {"constraint": constrain.compile(LETTERS, regex="a").matcher()}, TypeError, "constraint is a Matcher"),
        (NGram, {"prompts": None}, TypeError, r"prompts is None: give a list; \[None\] stands for no prompt"),
        (Hmm, {"prompts": iter([None])}, TypeError, "prompts is .*: give a list"),
        (NGram, {"order": -1}, ArgumentError, "order must be 0 or more, not -1"),
        (NGram, {"order": 1.5, "smoothing": "kneser_ney"}, TypeError, "order is 1.5: it is a whole number from 0 on"),
        (NGram, {"contexts": "many"}, TypeError, "contexts is 'many': it is a whole number from 0 on"),
        (Hmm, {"states": 0}, ArgumentError, "states must be 1 or more, not 0"),
        (Hmm, {"states": 1.5}, TypeError, "states is 1.5"),
        (Hmm, {"states": 10**7}, LimitError, "10000000 states"),
        (Hmm, {"states": 10_000}, LimitError, "Moves between 10000 states are more than 64,000,000 numbers"),
        (Hmm, {"rounds": -1}, ArgumentError, "rounds must be 0 or more, not -1"),
    ],
)
def test_wrong_options_are_named_before_the_model_is_asked(
    kind: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    class Unasked:
        def next_logprobs(self, prefixes: list[list[int]]) -> Any:
            pytest.fail("the model was asked")

    constraint = constrain.compile(LETTERS, regex="a+")
    given = {"constraint": constraint, "n": 1, "rng": np.random.default_rng(0), "max_tokens": 3, **options}
    with pytest.raises(error, match=message):
        kind.distil(Unasked(), **given)


def test_ngram_and_hmm_fits_raise_for_invalid_options() -> None:
    with pytest.raises(ArgumentError, match="order must be 0 or more"):
        NGram.of_texts([[0]], end=END, size=SIZE, order=-1, smoothing="witten_bell")
    with pytest.raises(ArgumentError, match="contexts must be 0 or more"):
        NGram.of_rows([([], np.full(SIZE, 1 / SIZE))], order=1, contexts=-1)
    for states, error in ((0, ArgumentError), (10**5, LimitError)):
        with pytest.raises(error, match="states"):
            Hmm.fit([[0]], states=states, end=END, size=SIZE, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("texts", "end", "size"), [([[0, 9]], 3, 4), ([[0]], 7, 4), ([[-1]], 3, 4), ([[0], [4]], 3, 4), ([[0]], 3, 0)]
)
@pytest.mark.parametrize("learn", ["mean", "witten_bell", "kneser_ney", "Hmm"])
def test_tokens_outside_the_vocabulary_are_refused(learn: Any, texts: list[list[int]], end: int, size: int) -> None:
    with pytest.raises(ArgumentError, match=r"is not one of the 4 tokens|size must be 1 or more"):
        if learn == "Hmm":
            Hmm.fit(texts, states=2, end=end, size=size, rng=np.random.default_rng(0))
        else:
            NGram.of_texts(texts, end=end, size=size, smoothing=learn)
