"""Each draft source against a slow definition of what it proposes."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from constrain.base.errors import ArgumentError
from constrain.sampling.core.masked_sampling import Proposal
from constrain.speculation.adaptive_drafts import MARGIN, AdaptiveDrafts, choose_length, scale_cost
from constrain.speculation.combined_drafts import ForcedFirst, MergedDrafts
from constrain.speculation.draft_source import NO_DRAFT, ROOT, DraftSource, DraftTree, observe_batch
from constrain.speculation.model_drafts import ModelDrafts, draw_without_replacement
from constrain.speculation.prompt_lookup import PromptLookup
from constrain.speculation.suffix_automaton import START, SuffixAutomaton
from constrain.speculation.suffix_lookup import SuffixHistory
from constrain.speculation.text_drafts import TextDrafts
from constrain.speculation.token_recycling import SuccessorMatrix
from constrain.vocabulary.vocabulary import Vocabulary
from tests.finite_grammar_factory import FiniteConstraint
from tests.markov_factory import PASS_ABOVE, cases, g_test
from tests.model_factory import TableModel

few = st.lists(st.integers(0, 2), max_size=30)
BYTES = Vocabulary.bytes()


# ---- prompt look-up --------------------------------------------------------------------------------------------------


@given(few, st.integers(1, 3), st.integers(3, 6), st.integers(1, 5))
@settings(max_examples=200)
def test_prompt_lookup_continues_the_longest_match(context: list[int], least: int, most: int, limit: int) -> None:
    want: list[int] = []
    for length in range(most, least - 1, -1):
        starts = [i for i in range(len(context) - length) if context[i : i + length] == context[-length:]]
        if starts:
            start = starts[-1] + length
            want = context[start : start + limit]
            break
    assert PromptLookup(least, most).propose(context, None, limit) == DraftTree.chain(want)


def test_prompt_lookup_stops_where_the_constraint_refuses() -> None:
    context = list(b"ab=12; ab=") + []
    matcher = FiniteConstraint(BYTES, [b"13", b"12"]).matcher()
    assert PromptLookup().propose(context, matcher, 9) == DraftTree.chain(b"12")
    with pytest.raises(ArgumentError, match="least is 3"):
        PromptLookup(3, 2)


# ---- suffix look-up --------------------------------------------------------------------------------------------------


def occurrences(texts: list[list[int]], part: list[int]) -> list[tuple[int, int]]:
    return [(t, i) for t, x in enumerate(texts) for i in range(len(x) - len(part) + 1) if x[i : i + len(part)] == part]


@given(st.lists(few, max_size=4), st.booleans())
@settings(max_examples=150)
def test_the_automaton_counts_all_substrings(texts: list[list[int]], interleaved: bool) -> None:
    automaton, last = SuffixAutomaton(), [START] * len(texts)
    order = [(i, k) for k, text in enumerate(texts) for i in range(len(text))]
    for i, k in sorted(order) if interleaved else order:
        last[k] = automaton.append(last[k], texts[k][i])
    assert len(automaton) <= 1 + 2 * sum(map(len, texts))
    for length in range(1, 5):
        for code in range(3**length):
            part = [code // 3**i % 3 for i in range(length)]
            state: int | None = START
            for token in part:
                state = None if state is None else automaton.transitions[state].get(token)
            found = occurrences(texts, part)
            assert (state is not None) == bool(found)
            if state is not None:
                assert automaton.counts[state] == len(found)
    for k, text in enumerate(texts):
        assert automaton.lengths[last[k]] == len(text)


@given(st.lists(few, max_size=3), few, few)
@settings(max_examples=150)
def test_the_longest_suffix_is_found_also_after_splits(
    texts: list[list[int]], text: list[int], more: list[int]
) -> None:
    automaton, states = SuffixAutomaton(), [(START, 0)]
    for other in texts:
        last = START
        for token in other:
            last = automaton.append(last, token)
    for token in text:
        states.append(automaton.follow(*states[-1], [token]))
    last = START
    for token in more:
        last = automaton.append(last, token)
    for end, (state, length) in enumerate(states):
        held = [n for n in range(end + 1) if occurrences(texts, text[end - n : end]) or n == 0]
        assert length == max(held)
        shorter = {n: s for s, n in automaton.suffixes(state, length)}
        assert max(shorter) == length
        after = automaton.follow(state, length, [0])[1]
        known = [n for n in range(length + 1) if occurrences([*texts, more], [*text[end - n : end], 0])]
        assert after == (max(known) + 1 if known else 0)


@given(st.lists(few, max_size=3), few)
@settings(max_examples=150)
def test_suffix_drafts_follow_the_longest_suffix_with_a_continuation(texts: list[list[int]], text: list[int]) -> None:
    history = SuffixHistory()
    for other in texts:
        history.add(other)
    source = history.start_text(text[:2])
    for token in text[2:]:
        source.observe([token])
    every = [*texts, text]
    tree = source.propose(text, None, 6)
    assert tree == source.propose(text, None, 6)
    for length in range(len(text), 0, -1):
        part = text[len(text) - length :]
        following = Counter(every[t][i + length] for t, i in occurrences(every, part) if i + length < len(every[t]))
        if following:
            total = len(occurrences(every, part))
            likely = [token for token, n in following.items() if n / total >= 0.05]
            assert set(tree.children[ROOT]) <= set(likely)
            assert tree.tokens[0] in [token for token, n in following.items() if n == max(following.values())]
            return
    assert tree == NO_DRAFT


def test_rest_reads_a_fixed_collection() -> None:
    history = SuffixHistory(text="ignored")
    history.add(list(b"the quick brown fox"))
    source = history.start_text(list(b"a qui"))
    size = len(history.automaton)
    assert source.propose(list(b"a qui"), None, 3) == DraftTree.chain(b"ck ")
    source.observe(list(b"ck br"))
    assert source.propose(list(b"a quick br"), None, 9) == DraftTree.chain(b"own fox")
    assert source.propose(list(b"a quick brow"), None, 9) == DraftTree.chain(b"n fox"), "further on than the text"
    assert len(history.automaton) == size


def test_a_full_history_is_emptied() -> None:
    history = SuffixHistory(most_states=40)
    first, second = history.start_text([1, 2, 3]), history.start_text([4, 5])
    rng = np.random.default_rng(0)
    for _ in range(50):
        for source in (first, second):
            source.observe(rng.integers(0, 9, 3).tolist())
            source.propose([1, 2], None, 4)
            assert len(history.automaton) <= 40
    assert history.epoch > 3


# ---- token recycling -------------------------------------------------------------------------------------------------


def test_recycled_tokens_are_the_best_of_the_last_row() -> None:
    matrix = SuccessorMatrix(5, width=2)
    source = matrix.start_text([0, 1, 0])
    assert source.propose([0], None, 2) == DraftTree((1, 0), (ROOT, 0)), "the pairs of the prompt"
    source.observe_rows([0, 3], np.array([[0, 1, 5, 9, 2], [7, 1, 0, 0, 8]], np.float32))
    assert matrix.successors[[0, 3]].tolist() == [[3, 2], [4, 0]]
    assert source.propose([0], None, 4) == DraftTree((3, 2, 4, 0), (ROOT, ROOT, 0, 0))
    source.observe([2, 1])
    assert matrix.successors[2].tolist() == [-1, -1], "rows are known: pairs are not learnt"
    pairs = matrix.start_text([4])
    pairs.observe([2, 1, 2, 0, 2, 1])
    assert matrix.successors[2].tolist() == [1, 0]
    assert matrix.start_text([]).propose([], None, 3) == NO_DRAFT


# ---- models ----------------------------------------------------------------------------------------------------------


def test_draws_without_replacement_have_their_law() -> None:
    weights, rng, n = np.array([0.5, 0.0, 0.3, 0.2]), np.random.default_rng(0), 3000
    for count in (1, 2, 3, 4):
        law = {}
        for i in (0, 2, 3):
            for j in (0, 2, 3):
                if i != j:
                    law[i, j] = weights[i] * weights[j] / (1 - weights[i])
        drawn = [tuple(draw_without_replacement(weights, count, rng)) for _ in range(n)]
        assert {len(one) for one in drawn} == {min(count, 3)}
        if count == 1:
            law = {(i,): weights[i] for i in (0, 2, 3)}
        assert g_test(Counter(one[:2] for one in drawn), law) > PASS_ABOVE


@pytest.mark.parametrize("branching", [(1,), (2, 1), (2, 2)])
def test_the_draft_of_a_model_is_drawn_from_its_masked_rows(branching: tuple[int, ...]) -> None:
    case = cases()["pieces"]
    vocabulary = case.constraint.vocabulary
    source = ModelDrafts(
        case.lm, prompt_length=1, size=vocabulary.size, ends=vocabulary.eos_ids, rng=np.random.default_rng(0),
        branching=branching,
    )  # fmt: skip
    for _ in range(20):
        matcher = case.constraint.matcher()
        matcher.advance(0)
        tree = source.propose([7, 0], matcher, 5)
        assert len(tree) <= 5
        for node, share in tree.probabilities.items():
            position = matcher.fork()
            path = [tree.tokens[i] for i in tree.path(node)]
            for token in path:
                position.advance(token)
            row = np.exp(case.lm.logs[case.lm.context([0, *path])])
            row[[token for token in range(8) if token in (6, 7) or not position.allows(token)]] = 0
            assert share == pytest.approx(row / row.sum())
        assert set(tree.probabilities) == set(tree.parents)
        assert all(len(found) <= branching[min(1, len(branching) - 1)] for n, found in tree.children.items() if n >= 0)
    with pytest.raises(ArgumentError, match="branching"):
        ModelDrafts(case.lm, prompt_length=0, size=8, ends=(6,), rng=np.random.default_rng(0), branching=())


def test_at_temperature_0_the_likeliest_tokens_are_drafted() -> None:
    case = cases()["pieces"]
    source = ModelDrafts(
        case.lm,
        prompt_length=0,
        size=8,
        ends=(6, 7),
        rng=np.random.default_rng(0),
        proposal=Proposal(0),
        branching=(2,),
    )
    tree = source.propose([], case.constraint.matcher(), 2)
    row = case.lm.logs[case.lm.context([])].copy()
    row[[token for token in range(8) if not case.constraint.matcher().allows(token)]] = -np.inf
    assert tree == DraftTree(tuple(np.argsort(-row)[:2].tolist()), (ROOT, ROOT))
    assert not tree.probabilities


def test_a_model_of_another_vocabulary_drafts_text() -> None:
    """The draft model writes bytes, and the target has whole words."""
    words = Vocabulary.from_tokens(
        [b"name", b"na", b"me", b": ", b"Anna", b"A", b"n", b"a", b"Bob", b"x", None], eos_ids=[10]
    )
    spelled = b"name: Anna"
    table = np.full((BYTES.size + 1, BYTES.size), -9.0)
    for before, after in zip([BYTES.size, *spelled], [*spelled, BYTES.eos_ids[0]]):
        table[before, after] = 0
    for before, after in zip(b" Bo", b"Bob"):
        table[before, after] = -2
    lm = TableModel(BYTES.size)
    lm.table = table - np.logaddexp.reduce(table, axis=1, keepdims=True)
    source = TextDrafts(lm, draft_vocabulary=BYTES, vocabulary=words, prompt_length=1)
    assert source.propose([9], None, 3) == DraftTree.chain([0]), "name, and a colon that may be part of something else"
    matcher = FiniteConstraint(words, [b"name: Anna", b"name: Bob"]).matcher()
    matcher.advance(0)
    tree = source.propose([9, 0], matcher, 9)
    assert tree.tokens[0] == 3
    refused = FiniteConstraint(words, [b"name: Bob"]).matcher()
    assert source.propose([9], refused, 20).tokens == (0, 3), "its own choice is refused; the next best is taken"


# ---- combinations ----------------------------------------------------------------------------------------------------


class Scripted:
    """Proposes given trees, and remembers what it was told."""

    def __init__(self, *trees: DraftTree) -> None:
        self.trees, self.asked, self.seen = list(trees), [], []

    def propose(self, context, matcher, limit: int) -> DraftTree:
        self.asked.append((list(context), limit))
        return self.trees.pop(0) if self.trees else NO_DRAFT

    def observe(self, tokens) -> None:
        self.seen += tokens


def test_sources_are_merged_until_the_draft_is_full() -> None:
    first, second = Scripted(DraftTree.chain([1, 2])), Scripted(DraftTree.chain([1, 3]), DraftTree.chain([4]))
    merged = MergedDrafts([first, second])
    assert isinstance(merged, DraftSource)
    assert merged.propose([0], None, 3) == DraftTree((1, 2, 3), (ROOT, 0, 0))
    merged.observe([1])
    assert first.seen == second.seen == [1]
    full = MergedDrafts([Scripted(DraftTree.chain([1, 2])), third := Scripted()])
    assert len(full.propose([0], None, 2)) == 2
    assert not third.asked


def test_forced_text_comes_first() -> None:
    inner = Scripted(DraftTree.chain([9]), DraftTree.chain([98]))
    source = ForcedFirst(inner)
    matcher = FiniteConstraint(BYTES, [b"12ax", b"12by"]).matcher()
    assert source.propose([7], matcher, 6).tokens == (49, 50, 9)
    assert inner.asked == [([7, 49, 50], 4)]
    assert source.propose([7], matcher, 1).tokens == (49,)
    assert source.propose([7], None, 3).tokens == (98,)
    assert matcher.tokens == []


def test_draft_lengths_have_the_most_tokens_per_cost() -> None:
    for rate in (0, 0.03, 0.3, 0.7, 0.95, 1):
        for cost in (0.01, 0.05, 0.3, 1, 2):
            value = [sum(rate**i for i in range(k + 1)) / (1 + cost * k) for k in range(41)]
            length = choose_length(rate, cost, 40)
            assert value[length] == pytest.approx(max(value) if max(value) > MARGIN else 1)
    assert choose_length(1, 0.01, 0) == 0


def test_a_source_that_is_rejected_is_asked_less_and_one_that_is_accepted_more() -> None:
    class Copy:
        def propose(self, context, matcher, limit):
            return DraftTree.chain([5] * limit)

        def observe(self, tokens) -> None:
            pass

    source, text, lengths = AdaptiveDrafts(Copy(), 0.1), [1], []
    for _ in range(12):
        lengths.append(len(source.propose(text, None, 32)))
        text += [5] * (lengths[-1] + 1)
    assert lengths[-1] == max(lengths) >= 16
    asked = 0
    for _ in range(300):
        asked += len(source.propose(text, None, 32))
        text += [6]
    assert asked < 130, "most of it before the rate has fallen"
    late = sum(len(source.propose(text, None, 32)) for _ in [text.append(6) for _ in range(128)])
    assert late <= 2 * 4
    for _ in range(300):
        length = len(source.propose(text, None, 32))
        text += [5] * (length + 1)
    assert len(source.propose(text, None, 32)) >= 8, "it recovers"


def test_drafts_after_forced_text_that_was_not_written_say_nothing() -> None:
    inner = Scripted(DraftTree.chain([5]), DraftTree.chain([5]))
    source = AdaptiveDrafts(inner, 0.1)
    before = source.rate
    source.propose([1, 2, 3], None, 4)
    source.propose([1, 2, 9], None, 4)
    assert source.rate == before
    source.propose([1, 2, 9, 5], None, 4)
    assert source.rate > before


def test_in_large_batches_less_is_drafted() -> None:
    class Copy:
        def propose(self, context, matcher, limit):
            return DraftTree.chain([5] * limit)

        def observe(self, tokens) -> None:
            pass

    lengths = {}
    for most in (24.0, math.inf):
        for texts in (1, 8, 32):
            source = ForcedFirst(AdaptiveDrafts(Copy(), 1 / 25, most))
            observe_batch(source, texts)
            lengths[most, texts] = len(source.propose([1], None, 64))
    assert lengths[24, 1] > lengths[24, 8] > lengths[24, 32] > 0
    assert lengths[math.inf, 32] == lengths[math.inf, 1] == lengths[24, 1]
    assert scale_cost(1, 24) == 1
    assert scale_cost(10**9, 24) == pytest.approx(25), "a row of a huge batch costs what a text costs"
