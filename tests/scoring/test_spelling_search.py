"""Sums over tokenisations against brute force over all token sequences of small vocabularies."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from constrain.base.errors import LimitError, UnsatisfiableError, VocabularyError
from constrain.scoring.choice_result import normalise_options
from constrain.scoring.option_trie import Ends
from constrain.scoring.spelling_search import sum_spellings
from constrain.vocabulary.vocabulary import Vocabulary
from tests.markov_factory import BYTES, PIECES, TWO, ChainModel

VOCABULARIES = {"pieces": PIECES, "two": TWO, "bytes": BYTES}


def sequence_logprob(lm: ChainModel, tokens: tuple[int, ...]) -> float:
    return math.fsum(float(lm.logs[lm.context(tokens[:k]), token]) for k, token in enumerate(tokens))


def brute_force(lm: ChainModel, vocabulary: Vocabulary, text: bytes, ends: Ends) -> tuple[float, int]:
    """The probability of a text, and the number of its tokenisations, from all token sequences up to its length."""
    ids = [index for index, token in enumerate(vocabulary.tokens) if token]
    total, count = 0.0, 0
    for length in range(len(text) + 1):
        for tokens in product(ids, repeat=length):
            spelled = vocabulary.text(tokens)
            if ends == "token" and spelled == text:
                last = np.exp(lm.logs[lm.context(tokens), list(vocabulary.eos_ids)]).sum()
                total, count = total + math.exp(sequence_logprob(lm, tokens)) * float(last), count + 1
            if ends == "prefix" and spelled.startswith(text) and len(vocabulary.text(tokens[:-1])) < len(text):
                total, count = total + math.exp(sequence_logprob(lm, tokens)), count + 1
    return total, count


@st.composite
def problems(draw: st.DrawFn) -> tuple[str, int, int, list[bytes]]:
    name = draw(st.sampled_from(sorted(VOCABULARIES)))
    tokens = [token for token in VOCABULARIES[name].tokens if token]
    pieces = st.lists(st.sampled_from(tokens), max_size=4)
    texts = st.lists(pieces.map(b"".join).map(lambda text: text[:5]), min_size=1, max_size=4, unique=True)
    spellable = set(b"".join(token for token in tokens if len(token) == 1))
    return (
        name,
        draw(st.integers(1, 2)),
        draw(st.integers(0, 5)),
        [text for text in draw(texts) if set(text) <= spellable],
    )


@settings(max_examples=40, deadline=None)
@given(problem=problems())
def test_sums_are_those_of_brute_force(problem: tuple[str, int, int, list[bytes]]) -> None:
    name, order, seed, texts = problem
    if not texts:
        return
    vocabulary = VOCABULARIES[name]
    lm = ChainModel.random(vocabulary, order, seed)
    masses = sum_spellings(lm, vocabulary, texts, tolerance=0)
    expected = [brute_force(lm, vocabulary, text, "token") for text in texts]
    np.testing.assert_allclose(np.exp(masses.found), [p for p, _ in expected], rtol=1e-9)
    assert masses.spellings.tolist() == [count for _, count in expected]
    assert not masses.frontier
    assert masses.rows == sum(lm.row_counts) and masses.model_calls == len(lm.row_counts)
    result = normalise_options([text.decode("latin-1") for text in texts], masses)
    total = math.fsum(p for p, _ in expected)
    np.testing.assert_allclose(list(result.probabilities.values()), [p / total for p, _ in expected], rtol=1e-9)
    assert result.unresolved == 0 and result.log_total == pytest.approx(math.log(total))


@settings(max_examples=30, deadline=None)
@given(problem=problems())
def test_prefix_sums_are_those_of_brute_force(problem: tuple[str, int, int, list[bytes]]) -> None:
    name, order, seed, texts = problem
    vocabulary = VOCABULARIES[name]
    lm = ChainModel.random(vocabulary, order, seed)
    chosen: list[bytes] = []
    for text in texts:
        if not any(text.startswith(other) or other.startswith(text) for other in chosen):
            chosen.append(text)
    if chosen:
        masses = sum_spellings(lm, vocabulary, chosen, ends="prefix", tolerance=0)
        expected = [1.0 if not text else brute_force(lm, vocabulary, text, "prefix")[0] for text in chosen]
        np.testing.assert_allclose(np.exp(masses.found), expected, rtol=1e-9)


@settings(max_examples=60, deadline=None)
@given(problem=problems(), tolerance=st.sampled_from([0.5, 0.1, 0.01, 1e-4]), max_rows=st.integers(1, 40))
def test_bounds_hold_wherever_the_search_stops(
    problem: tuple[str, int, int, list[bytes]], tolerance: float, max_rows: int
) -> None:
    name, order, seed, texts = problem
    if not texts:
        return
    vocabulary, lm = VOCABULARIES[name], ChainModel.random(VOCABULARIES[name], order, seed)
    exact = np.array([brute_force(lm, vocabulary, text, "token")[0] for text in texts])
    masses = sum_spellings(lm, vocabulary, texts, tolerance=tolerance, max_rows=max_rows)
    result = normalise_options([text.decode("latin-1") for text in texts], masses)
    if masses.rows < max_rows:
        assert masses.log_frontier <= masses.log_found + math.log(tolerance) + 1e-9
    assert masses.log_found <= math.log(exact.sum()) + 1e-9
    assert math.log(exact.sum()) <= np.logaddexp(masses.log_found, masses.log_frontier) + 1e-9
    assert sum(result.probabilities.values()) == pytest.approx(1)
    for share, (low, high), estimate in zip(exact / exact.sum(), result.bounds.values(), result.probabilities.values()):
        assert low - 1e-9 <= share <= high + 1e-9
        assert low - 1e-9 <= estimate <= high + 1e-9
        assert high - low <= result.unresolved + 1e-9
    if result.is_certain:
        best = texts[[text.decode("latin-1") for text in texts].index(result.best)]
        assert exact[texts.index(best)] == pytest.approx(exact.max())


def test_canonical_tokenisations_take_one_call() -> None:
    lm = ChainModel.random(PIECES, 1, 3)
    masses = sum_spellings(lm, PIECES, [b"abba", b"ab", b"bab"], tolerance=1e6)
    assert masses.model_calls == 1 and (masses.spellings >= 1).all()
    assert len(lm.row_counts) == 1


def test_a_few_rounds_resolve_a_text_of_many_tokenisations() -> None:
    """2^23 tokenisations, of which a model that prefers long tokens writes nearly only one."""
    vocabulary = Vocabulary.from_tokens([b"a", b"aa", None], eos_ids=[2])
    rows = np.array([[0.02, 0.9, 0.08]] * 4)
    lm = ChainModel(np.log(rows), 1)
    masses = sum_spellings(lm, vocabulary, [b"a" * 24], tolerance=1e-2, max_rows=100_000)
    ways = [1.0, 0.02]
    for _ in range(23):
        ways.append(0.02 * ways[-1] + 0.9 * ways[-2])
    assert (
        math.exp(masses.log_found) <= ways[24] * 0.08 <= math.exp(np.logaddexp(masses.log_found, masses.log_frontier))
    )
    assert masses.model_calls < 30


def test_a_text_that_the_vocabulary_cannot_spell() -> None:
    with pytest.raises(VocabularyError):
        sum_spellings(ChainModel.random(TWO, 1, 0), TWO, [b"xyz"])


def test_texts_without_probability() -> None:
    lm = ChainModel(np.log(np.array([[1e-300, 1.0, 1e-300]] * 4)), 1)
    lm.logs[:, 0] = -np.inf
    masses = sum_spellings(lm, TWO, [b"a", b"aa"])
    with pytest.raises(UnsatisfiableError):
        normalise_options(["a", "aa"], masses)


class Short(ChainModel):
    """A model with positions for three tokens."""

    max_new_tokens = 3


def test_spellings_beyond_the_model_positions_stay_unresolved() -> None:
    lm = Short(ChainModel.random(PIECES, 1, 3).logs, 1)
    masses = sum_spellings(lm, PIECES, [b"abba"], tolerance=0)
    spelled = {(0, 1, 1, 0), (2, 3), (4, 0)}
    assert masses.spellings[0] >= 2 and masses.frontier and spelled
    with pytest.raises(LimitError):
        sum_spellings(lm, PIECES, [b"aaaa"])
