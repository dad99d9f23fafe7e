"""N-gram models against their definition: contexts by count, distributions by means, states by the longest suffix."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from constrain.base.errors import ArgumentError
from constrain.sampling.research.ngram import SMALLEST, NGram

SIZE = 3
Context = tuple[int, ...]
TEXTS = st.lists(st.lists(st.integers(0, SIZE - 2), max_size=6), min_size=1, max_size=5)


def laws_of(rows: list[tuple[list[int], np.ndarray]], order: int, most: int) -> dict[Context, np.ndarray]:
    """Return the distributions by context, as `NGram.of_rows` defines them."""
    seen: dict[Context, list[np.ndarray]] = defaultdict(list)
    for before, law in rows:
        for length in range(min(order, len(before)) + 1):
            seen[tuple(before[len(before) - length :])].append(law)
    longer = sorted((c for c in seen if c), key=lambda c: (-len(seen[c]), len(c), c))[:most]
    even, laws = np.full(SIZE, 1 / SIZE), dict[Context, np.ndarray]()
    for context in sorted([(), *longer], key=len):
        mean = np.mean([*seen[context], laws[context[1:]] if context else even], axis=0)
        laws[context] = (mean + SMALLEST * even) / (1 + SMALLEST)
    return laws


@settings(max_examples=60, deadline=None)
@given(texts=TEXTS, order=st.integers(0, 3), most=st.integers(0, 6))
def test_distributions_are_means_by_context(texts: list[list[int]], order: int, most: int) -> None:
    end = SIZE - 1
    rows = [(text[:i], np.eye(SIZE)[token]) for text in texts for i, token in enumerate([*text, end])]
    expected = laws_of(rows, order, most)
    for model in (
        NGram.of_rows(rows, order=order, contexts=most),
        NGram.of_texts(texts, end=end, size=SIZE, order=order, contexts=most),
    ):
        assert set(model.contexts) == set(expected)
        for context, number in model.contexts.items():
            assert np.exp(model.logs[number]) == pytest.approx(expected[context], rel=1e-12, abs=0)


@settings(max_examples=60, deadline=None)
@given(texts=TEXTS, order=st.integers(0, 3), text=st.lists(st.integers(0, SIZE - 1), max_size=6))
def test_the_state_is_the_longest_suffix(texts: list[list[int]], order: int, text: list[int]) -> None:
    model = NGram.of_texts(texts, end=SIZE - 1, size=SIZE, order=order, contexts=5)
    names = list(model.contexts)

    def longest(tokens: list[int]) -> Context:
        return max((c for c in names if tuple(tokens[len(tokens) - len(c) :]) == c), key=len)

    assert names[model.start] == ()
    assert names[model.state(text)] == longest(text)
    after = model.follow(model.state(text), np.arange(SIZE))
    assert [names[state] for state in after] == [longest([*text, token]) for token in range(SIZE)]
    assert (model.next_logprobs([text, []]) == model.logs[[model.state(text), model.start]]).all()


@pytest.mark.parametrize("size", [4096, 4097])
def test_large_vocabularies_are_learnt_from_too(size: int) -> None:
    """Beyond some size rows are computed on demand: the distribution of the first token is the same mean."""
    model = NGram.of_texts([[7], [7], [size - 2]], end=size - 1, size=size, order=1, contexts=1)
    assert list(model.contexts) == [(), (7,)]
    first = np.exp(model.logs[0])
    wanted = np.full(size, 1 / size / 7)
    wanted[[7, size - 2, size - 1]] += np.array([2, 1, 3]) / 7
    assert first == pytest.approx(wanted, rel=1e-6)
    assert np.exp(model.logs[1]) == pytest.approx((wanted + 2 * np.eye(1, size, size - 1)[0]) / 3, rel=1e-6)


@pytest.mark.parametrize(
    ("contexts", "logs"),
    [
        ([()], np.log(np.full((2, 2), 0.5))),
        ([()], np.log(np.full(2, 0.5))),
        ([()], np.log(np.full((1, 2), 0.4))),
        ([(0,)], np.log(np.full((1, 2), 0.5))),
        ([(), (0, 1)], np.log(np.full((2, 2), 0.5))),
    ],
)
def test_invalid_ngram_tables_raise(contexts: list[Context], logs: Any) -> None:
    with pytest.raises(ArgumentError):
        NGram(contexts, logs)
    with pytest.raises(ArgumentError, match="no row"):
        NGram.of_rows([], order=1)
