"""`choose` and `score` with the embedded model, with table models, and against the distributions that they describe."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

import constrain
from constrain import sampling
from constrain.base.errors import ArgumentError, TokenRefused, UnsupportedError
from constrain.scoring.spelling_search import sum_spellings
from tests.markov_factory import PIECES, ChainModel, g_test
from tests.model_factory import TableModel, build_model

BYTES = constrain.Vocabulary.bytes()


def test_choose_agrees_with_exact_sampling() -> None:
    """The frequencies of texts that the exact sampler draws from the options are the probabilities of the options."""
    options = ["ab", "abb", "b", "ba"]
    lm = ChainModel.random(PIECES, 1, 11)
    result = constrain.choose(lm, None, options, tokenizer=PIECES, tolerance=0)
    constraint = constrain.compile(PIECES, choices=options)
    drawn = sampling.draw(lm, constraint, sampler="exact", n=2000, rng=np.random.default_rng(0), max_tokens=8)
    counts = Counter((options.index(draw.text),) for draw in drawn)
    law = {(number,): p for number, p in enumerate(result.probabilities.values())}
    assert g_test(counts, law) > 1e-6
    assert result.best == max(result.probabilities, key=lambda option: result.probabilities[option])
    assert result.is_certain


def test_options_that_are_prefixes_of_each_other() -> None:
    """Only the end token decides: a model that always writes it after "a" never writes "aa"."""
    lm = TableModel(257)
    lm.table = np.full((258, 257), -np.inf)
    lm.table[257, 97], lm.table[97, 256], lm.table[97, 97] = 0.0, math.log(0.75), math.log(0.25)
    result = constrain.choose(lm, None, ["a", "aa"], tokenizer=BYTES, tolerance=0)
    assert result.probabilities["a"] == pytest.approx(0.75 / (0.75 + 0.25 * 0.75))
    assert math.exp(result.log_total) == pytest.approx(0.75 + 0.25 * 0.75)


def test_prefixes() -> None:
    lm = ChainModel.random(PIECES, 1, 2)
    result = constrain.choose(lm, None, ["a", "b"], tokenizer=PIECES, ends="prefix", tolerance=0)
    first = np.exp(lm.next_logprobs([[]])[0])
    a = first[[0, 2, 4]].sum()
    assert result.probabilities["a"] == pytest.approx(a / (a + first[[1, 3, 5]].sum()))
    with pytest.raises(ArgumentError, match="beginning"):
        constrain.choose(lm, None, ["a", "ab"], tokenizer=PIECES, ends="prefix")


def test_the_embedded_model_chooses_in_one_call() -> None:
    pytest.importorskip("transformers")
    options = ["red", "green", "blue"]
    result = constrain.choose("demo", "Pick a colour.", options)
    assert list(result.probabilities) == options and sum(result.probabilities.values()) == pytest.approx(1)
    assert result.unresolved <= 1e-3 and result.model_calls <= 3
    finer = constrain.choose("demo", "Pick a colour.", options, tolerance=1e-6)
    for option, (low, high) in result.bounds.items():
        assert low <= finer.probabilities[option] <= high and high - low <= 1e-3


@pytest.mark.parametrize("family", ["llama", "gpt2", "t5"])
def test_one_pass_over_a_tree_of_prefixes_gives_the_rows_of_single_passes(family: str) -> None:
    pytest.importorskip("transformers")
    loaded = build_model(family)
    prefixes = [[], [5], [5, 6], [5, 6, 7], [8], [8, 9], [5, 6, 9]]
    together = loaded.on([3, 4]).next_logprobs(prefixes)
    for prefix, row in zip(prefixes, together):
        np.testing.assert_allclose(loaded.on([3, 4]).next_logprobs([prefix])[0], row, atol=1e-4)


def test_a_tree_of_prefixes_is_evaluated_by_its_leaves() -> None:
    pytest.importorskip("transformers")
    lm = build_model("llama").on([3, 4])
    lm.next_logprobs([[], [5], [5, 6], [5, 6, 7], [8], [8, 9], [5, 6, 9]])
    before = lm.tokens_fed
    lm.next_logprobs([[], [5], [5, 6], [5, 6, 7], [8], [8, 9], [5, 6, 9]])
    assert lm.tokens_fed - before <= 3 * 4


def test_score_of_all_spellings_and_of_one() -> None:
    lm = ChainModel.random(PIECES, 1, 5)
    canonical = constrain.score(lm, None, "abba", tokenizer=PIECES)
    tokens = PIECES.tokenize(b"abba")
    assert [one.token for one in canonical.tokens] == [*tokens, 6]
    assert [one.offset for one in canonical.tokens] == [
        *np.cumsum([0, *(len(PIECES.tokens[t] or b"") for t in tokens)])
    ]
    total = constrain.score(lm, None, "abba", tokenizer=PIECES, spellings="all", tolerance=0)
    assert canonical.logprob < total.logprob == pytest.approx(total.bounds[1])
    assert canonical.logprob == pytest.approx(canonical.canonical_logprob) == pytest.approx(total.canonical_logprob)
    assert canonical.bounds[0] <= total.logprob <= canonical.bounds[1]
    begun = constrain.score(lm, None, "abba", tokenizer=PIECES, ends="prefix")
    assert len(begun.tokens) == len(tokens)
    assert constrain.score(lm, None, "", tokenizer=PIECES, spellings="all").logprob == pytest.approx(
        float(np.logaddexp.reduce(lm.next_logprobs([[]])[0][[6, 7]]))
    )


def test_sampled_scores_are_unbiased() -> None:
    lm = ChainModel.random(PIECES, 1, 5)
    exact = float(sum_spellings(lm, PIECES, [b"abba"], tolerance=0).found[0])
    scores = [
        constrain.score(lm, None, "abba", tokenizer=PIECES, spellings="sampled", n=16, seed=seed) for seed in range(40)
    ]
    values = np.exp([one.logprob for one in scores])
    assert abs(values.mean() - math.exp(exact)) < 4 * values.std(ddof=1) / math.sqrt(len(values))
    inside = sum(abs(one.logprob - exact) < 3 * one.error for one in scores)
    assert inside >= 36


def test_masked_probability_is_that_of_masked_sampling() -> None:
    options = ["ab", "abb", "b"]
    constraint = constrain.compile(PIECES, choices=options)
    lm = ChainModel.random(PIECES, 1, 7)
    drawn = sampling.draw(lm, constraint, sampler="masked", n=300, rng=np.random.default_rng(1), max_tokens=9)
    seen = {draw.tokens: draw for draw in drawn}
    checked = 0
    for option in options:
        scored = constrain.score(lm, None, option, constraint, tokenizer=PIECES)
        draw = seen.get(tuple(PIECES.tokenize(option.encode())))
        if draw is not None:
            assert scored.log_weight == pytest.approx(draw.log_weight)
            assert scored.logprob == pytest.approx(draw.logprob)
            assert scored.masked_logprob == pytest.approx(draw.logprob - draw.log_weight)
            assert scored.masked_logprob == pytest.approx(sum(one.masked_logprob for one in scored.tokens))
            checked += 1
    assert checked == 3


def test_forced_tokens_are_marked() -> None:
    scored = constrain.score(
        TableModel(257), None, "abx", constrain.literal("ab") + constrain.regex("[xy]"), tokenizer=BYTES
    )
    assert [one.is_forced for one in scored.tokens] == [True, True, False, True]
    assert scored.tokens[0].masked_logprob == 0


def test_the_place_of_a_refusal_is_shown() -> None:
    constraint = constrain.compile(BYTES, regex="é[0-9]{2}")
    with pytest.raises(TokenRefused, match=r"line 1, column 3\n.*éaa|refuses") as refused:
        constrain.score(TableModel(257), None, "é1a", constraint, tokenizer=BYTES)
    assert refused.value.position == 2 and "'0'" in str(refused.value)
    with pytest.raises(TokenRefused, match="not complete") as short:
        constrain.score(TableModel(257), None, "é1", constraint, tokenizer=BYTES)
    assert short.value.position == 2
    assert (
        constrain.score(TableModel(257), None, "é1", constraint, tokenizer=BYTES, ends="prefix").log_weight is not None
    )
    with pytest.raises(ArgumentError, match="vocabulary"):
        constrain.score(TableModel(257), None, "é12", constrain.compile(PIECES, regex="a"), tokenizer=BYTES)


def test_arguments() -> None:
    lm = TableModel(257)
    for options, message in (([], "empty"), (["a", "a"], "twice")):
        with pytest.raises(ArgumentError, match=message):
            constrain.choose(lm, None, options, tokenizer=BYTES)
    with pytest.raises(TypeError, match="list of texts"):
        constrain.choose(lm, None, "abc", tokenizer=BYTES)
    with pytest.raises(UnsupportedError, match="sampled"):
        constrain.score(lm, None, "a", tokenizer=BYTES, spellings="sampled", ends="prefix")
