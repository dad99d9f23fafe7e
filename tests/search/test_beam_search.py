"""Beam search against exhaustive search, against the rule in its simplest form, and against transformers."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from constrain import compile as compile_constraint
from constrain.base.errors import ArgumentError, LimitError
from constrain.engine.text_enumeration import hashable_json
from constrain.sampling.checkers import BothCheckers, Checker, ValidatorChecker
from constrain.search import BeamSearch, FoundAnswers, Lookahead, beam_search
from constrain.vocabulary.vocabulary import Vocabulary
from tests.markov_factory import ALL_BYTES, LETTERS, PIECES, Case, ChainModel, cases, empty, regular
from tests.model_factory import build_model

WIDE = 3000
"""Wider than the language of any fixture."""
BIAS = 12.0
"""Added to the logit of the end token, so that texts of many lengths end."""


def likeliest(case: Case, n: int) -> list[float]:
    """Return the log-probabilities of the n likeliest token sequences."""
    return sorted((math.log(p) for p in case.law().values() if p > 0), reverse=True)[:n]


def spelled(vocabulary: Vocabulary, tokens: tuple[int, ...]) -> str:
    return vocabulary.transcript(tokens).decode("utf-8", "replace")


@pytest.mark.parametrize("name", list(cases()))
def test_a_beam_as_wide_as_the_language_is_exhaustive(name: str) -> None:
    case = cases()[name]
    law = case.law()
    found = beam_search(case.lm, case.constraint, BeamSearch(width=WIDE), n=WIDE, max_tokens=case.max_tokens)
    assert [answer.logprob for answer in found] == pytest.approx(likeliest(case, WIDE))
    for answer in found:
        assert answer.logprob == pytest.approx(math.log(law[answer.tokens]))
        assert answer.text == spelled(case.constraint.vocabulary, answer.tokens)


def search_plainly(case: Case, width: int) -> dict[tuple[int, ...], float]:
    """Return the texts that the plain rule finds with a mask made of the oracle's texts: no budget, no early end."""
    law, ends = case.law(), list(case.constraint.vocabulary.eos_ids)
    prefixes = {tokens[:k] for tokens in law for k in range(len(tokens) + 1)}
    beam, found = [((), 0.0)], dict[tuple[int, ...], float]()
    while beam:
        candidates = []
        for tokens, logprob in beam:
            row = case.lm.next_logprobs([list(tokens)])[0]
            if tokens in law:
                candidates.append((logprob + float(np.logaddexp.reduce(row[ends])), None, tokens))
            after = [token for token in range(len(row)) if (*tokens, token) in prefixes and row[token] > -np.inf]
            candidates += [(logprob + float(row[token]), token, (*tokens, token)) for token in after]
        candidates.sort(key=lambda one: -one[0])
        found |= {tokens: logprob for logprob, token, tokens in candidates[:width] if token is None}
        beam = [(tokens, logprob) for logprob, token, tokens in candidates if token is not None][:width]
    return found


@pytest.mark.parametrize("width", [1, 2, 3, 7])
@pytest.mark.parametrize("name", ["traps", "brackets", "sums", "a^n b^n", "counting"])
def test_a_narrow_beam_follows_the_rule(name: str, width: int) -> None:
    """Where every byte is a token the shortest completion in bytes is that in tokens: the budget cuts what the oracle
    cuts."""
    case = cases()[name]
    expected = search_plainly(case, width)
    options = BeamSearch(width=width, patience=1000, early_stopping="never")
    if not expected:
        with pytest.raises(LimitError):
            beam_search(case.lm, case.constraint, options, n=1, max_tokens=case.max_tokens)
        return
    found = beam_search(case.lm, case.constraint, options, n=1000 * width, max_tokens=case.max_tokens)
    assert {answer.tokens: answer.logprob for answer in found} == pytest.approx(expected)


@pytest.mark.parametrize("name", list(cases()))
@pytest.mark.parametrize("width", [1, 3])
def test_every_answer_is_complete_within_the_budget(name: str, width: int) -> None:
    case = cases()[name]
    shortest = min(len(tokens) + 1 for tokens in case.law())
    for max_tokens in range(shortest, case.max_tokens + 1):
        found = beam_search(case.lm, case.constraint, BeamSearch(width=width), n=width, max_tokens=max_tokens)
        for answer in found:
            assert len(answer.tokens) < max_tokens
            assert case.accepts(case.constraint.vocabulary.transcript(answer.tokens))


def test_each_step_is_one_call_of_the_model() -> None:
    case = cases()["brackets"]
    case.lm.row_counts.clear()
    found = beam_search(case.lm, case.constraint, BeamSearch(width=5, groups=5), n=2, max_tokens=9)
    assert len(case.lm.row_counts) == found.stats["model_calls"] <= 9
    assert sum(case.lm.row_counts) == found.stats["rows"]


def test_a_language_without_texts_in_time_is_a_limit_error() -> None:
    case = empty()
    with pytest.raises(LimitError, match="max_tokens is 5; the shortest text found takes 7 tokens"):
        beam_search(case.lm, case.constraint, max_tokens=case.max_tokens)


# ---- scores and stopping ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalization", ["power", "wu"])
@pytest.mark.parametrize("exponent", [-0.5, 0.0, 0.6, 1.0, 2.0])
def test_scores_rank_the_whole_language(exponent: float, normalization: Any) -> None:
    case = cases()["tiny mass"]
    options = BeamSearch(
        width=WIDE, length_penalty=exponent, normalization=normalization, patience=9, early_stopping="never"
    )
    found = beam_search(case.lm, case.constraint, options, n=9, max_tokens=case.max_tokens)

    def score(tokens: tuple[int, ...], p: float) -> float:
        length = len(tokens) + 1
        return math.log(p) / (length if normalization == "power" else (5 + length) / 6) ** exponent

    expected = sorted((score(tokens, p) for tokens, p in case.law().items()), reverse=True)[:9]
    assert [answer.score for answer in found] == pytest.approx(expected)


def test_patience_is_the_number_of_finished_texts() -> None:
    """First come, first served: the search ends at the step at which `patience * width` texts have ended."""
    case = cases()["tiny mass"]

    def search(patience: float, n: int) -> FoundAnswers:
        options = BeamSearch(width=20, patience=patience, early_stopping="always")
        return beam_search(case.lm, case.constraint, options, n=n, max_tokens=case.max_tokens)

    lengths = sorted(len(answer.tokens) + 1 for answer in search(1000, 20_000))
    calls = []
    for patience in (0.05, 0.25, 0.5, 1.0):
        found = search(patience, math.ceil(patience * 20))
        assert len(found) == math.ceil(patience * 20)
        assert found.stats["model_calls"] == lengths[len(found) - 1]
        calls.append(found.stats["model_calls"])
    assert calls[0] < calls[-1]


def test_the_heuristic_without_penalty_ends_early_and_loses_nothing() -> None:
    case = cases()["tiny mass"]
    calls = []
    for rule in ("heuristic", "never"):
        options = BeamSearch(width=40, early_stopping=rule, patience=0.05)
        found = beam_search(case.lm, case.constraint, options, n=2, max_tokens=case.max_tokens)
        full = beam_search(case.lm, case.constraint, BeamSearch(width=WIDE), n=2, max_tokens=case.max_tokens)
        assert [one.tokens for one in found] == [one.tokens for one in full]
        calls.append(found.stats["model_calls"])
    assert calls[0] == calls[1] <= case.max_tokens


@pytest.mark.parametrize("early", [True, False, "never"])
@pytest.mark.parametrize(("width", "penalty"), [(3, 0.0), (5, 1.0), (4, -0.7)])
def test_beam_search_matches_transformers(early: Any, width: int, penalty: float) -> None:
    """Without a constraint on the tokens: all tokens of the tokenizer, hypotheses of both ended by the end token."""
    torch = pytest.importorskip("torch")
    loaded = build_model("llama", seed=3)
    vocabulary, prompt = loaded.vocabulary, [5, 9, 11]
    ban = [token for token in range(vocabulary.size) if not vocabulary.tokens[token]]
    ban = [token for token in ban if token not in vocabulary.eos_ids] + list(
        range(vocabulary.size, loaded.model.config.vocab_size)
    )
    end = vocabulary.eos_ids[0]

    class Anything:
        """A model with the same bias; it allows every token with bytes."""

        def next_logprobs(self, prefixes: list[list[int]]) -> Any:
            with torch.no_grad():
                logits = loaded.model(torch.tensor([prompt + prefix for prefix in prefixes])).logits[:, -1]
            logits[:, ban] = -torch.inf
            logits[:, end] += BIAS
            if len(prefixes[0]) == 11:
                logits[:, [token for token in range(logits.shape[1]) if token != end]] = -torch.inf
            return torch.log_softmax(logits[:, : vocabulary.size].double(), -1).numpy()

    out = loaded.model.generate(
        torch.tensor([prompt]), num_beams=width, num_return_sequences=width, do_sample=False, max_new_tokens=12,
        early_stopping=early, length_penalty=penalty, sequence_bias={(end,): BIAS}, renormalize_logits=True,
        bad_words_ids=[[token] for token in ban], return_dict_in_generate=True, output_scores=True, pad_token_id=end,
        eos_token_id=end, forced_eos_token_id=end,
    )  # fmt: skip
    theirs = [row[len(prompt) :].tolist() for row in out.sequences]
    ended = [tuple(row[: row.index(end)]) for row in theirs if end in row]
    rule = {True: "always", False: "heuristic", "never": "never"}[early]
    options = BeamSearch(width=width, length_penalty=penalty, early_stopping=rule)
    everything = ValidatorChecker(vocabulary)
    found = beam_search(Anything(), everything, options, n=width, max_tokens=12)
    assert len(ended) == len(theirs) == width
    assert [answer.tokens for answer in found] == ended
    assert [answer.score for answer in found] == pytest.approx(out.sequences_scores.tolist(), abs=1e-4)


# ---- answers that are distinct ----------------------------------------------------------------------------------


def test_distinct_texts_have_the_probability_of_all_their_spellings() -> None:
    case = cases()["pieces"]
    masses = defaultdict[str, float](float)
    for tokens, p in case.law().items():
        masses[spelled(PIECES, tokens)] += p
    options = BeamSearch(width=WIDE, distinct="text")
    found = beam_search(case.lm, case.constraint, options, n=WIDE, max_tokens=case.max_tokens)
    assert {answer.text: math.exp(answer.logprob) for answer in found} == pytest.approx(dict(masses))
    assert [answer.logprob for answer in found] == sorted((answer.logprob for answer in found), reverse=True)
    assert all(answer.tokens == answer.spellings[0].tokens for answer in found)


@pytest.mark.parametrize("n", [1, 2, 5, 10, 20])
def test_spellings_do_not_take_the_places_of_other_texts(n: int) -> None:
    """A beam of width n finds n texts, though each has many spellings; with token sequences as answers it does not."""
    case = regular("spellings", PIECES, "[ab]{4,5}", 7, seed=3)
    found = beam_search(case.lm, case.constraint, BeamSearch(width=n, distinct="text"), n=n, max_tokens=7)
    assert len({answer.text for answer in found}) == n
    if n >= 10:
        spellings = beam_search(case.lm, case.constraint, BeamSearch(width=n), n=n, max_tokens=7)
        assert len({answer.text for answer in spellings}) < n


def test_distinct_values_have_the_probability_of_all_their_texts() -> None:
    tokens = [b"1", b".", b"0", b"e", b"true", b"[", b"]", None]
    known = [token for token in tokens if token]
    others = [bytes([i]) for i in range(256) if bytes([i]) not in known]
    vocabulary = Vocabulary.from_tokens([*known, *others, None], [len(known) + len(others)])
    constraint = compile_constraint(vocabulary, schema={"enum": [1, 10, [1], True]})
    rows = np.full((vocabulary.size + 1, vocabulary.size), 1e-9)
    rows[:, : len(known)] = np.random.default_rng(0).dirichlet(np.ones(len(known)), vocabulary.size + 1)
    rows[:, -1] = 0.3
    lm = ChainModel(np.log(rows / rows.sum(axis=1, keepdims=True)), 1)
    found = beam_search(lm, constraint, BeamSearch(width=200, distinct="value"), n=4, max_tokens=6)
    assert sorted(map(str, (answer.value for answer in found))) == sorted(map(str, [1, 10, [1], True]))
    assert len({hashable_json(answer.text.encode()) for answer in found}) == 4
    for answer in found:
        assert answer.logprob == pytest.approx(np.logaddexp.reduce([one.logprob for one in answer.spellings]))


# ---- diverse beams ----------------------------------------------------------------------------------------------


def test_groups_with_a_penalty_differ_and_without_one_repeat() -> None:
    """Vijayakumar et al.: without a penalty every group is the beam search of its own width."""
    case = cases()["brackets"]
    plain = beam_search(case.lm, case.constraint, BeamSearch(width=2), n=2, max_tokens=9)
    same = beam_search(case.lm, case.constraint, BeamSearch(width=6, groups=3), n=6, max_tokens=9)
    assert [answer.tokens for answer in same][:2] == [answer.tokens for answer in plain]
    diverse = beam_search(case.lm, case.constraint, BeamSearch(width=6, groups=3, diversity=3.0), n=6, max_tokens=9)
    assert len(diverse) > len(same)
    law = case.law()
    for answer in diverse:
        assert answer.logprob == pytest.approx(math.log(law[answer.tokens])), "the penalty is no part of it"


def test_the_penalty_of_the_second_group_is_that_of_the_paper() -> None:
    """Width 1 and two groups: the second group's first token maximises log p minus the penalty of the first's."""
    case = regular("free", LETTERS, "[abc]{3}", 5, seed=11)
    for diversity in (0.0, 0.5, 1.0, 2.0, 5.0):
        row = case.lm.next_logprobs([[]])[0][:3].copy()
        first = int(np.argmax(row))
        row[first] -= diversity
        options = BeamSearch(width=2, groups=2, diversity=diversity)
        found = beam_search(case.lm, case.constraint, options, n=2, max_tokens=5)
        assert {answer.tokens[0] for answer in found} == {first, int(np.argmax(row))}


# ---- checkers ---------------------------------------------------------------------------------------------------


class Asked:
    """A function of texts that counts its calls."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.calls = answer, 0

    def __call__(self, text: bytes) -> bool:
        self.calls += 1
        return bool(self.answer(text))


@pytest.mark.parametrize("width", [1, 2, 5, WIDE])
def test_a_checker_gives_the_same_as_a_mask(width: int) -> None:
    """Of a prefix-closed check: top-k with lazy refill is the check of the whole vocabulary."""
    case = regular("checked", LETTERS, "(a|bc|b){0,4}", 7, seed=12)
    prefixes = {text[:k] for text in map(bytes, all_texts(7)) if case.accepts(text) for k in range(len(text) + 1)}
    checker = ValidatorChecker(LETTERS, accepts=case.accepts, viable=lambda text: text in prefixes)
    options = BeamSearch(width=width)
    found = beam_search(case.lm, checker, options, n=width, max_tokens=5)
    masked = beam_search(case.lm, case.constraint, options, n=width, max_tokens=5)
    assert {one.tokens: one.logprob for one in masked} == pytest.approx({one.tokens: one.logprob for one in found})


def all_texts(most: int) -> list[bytes]:
    found = [b""]
    for _ in range(most):
        found += [text + letter for text in found for letter in (b"a", b"b", b"c")]
    return list(dict.fromkeys(found))


def test_a_checker_after_a_mask_checks_few_tokens() -> None:
    """PICARD: at most about 2 k checks a step, though 256 bytes are possible."""
    constraint = compile_constraint(ALL_BYTES, regex="[ -~]{1,12}")
    viable = Asked(lambda text: b"e" not in text)
    checker: Checker = BothCheckers(constraint, ValidatorChecker(ALL_BYTES, viable=viable))
    lm = ChainModel.random(ALL_BYTES, 1, 3)
    found = beam_search(lm, checker, BeamSearch(width=3), n=3, max_tokens=13)
    assert len(found) == 3 and all("e" not in answer.text for answer in found)
    assert found.stats["checks"] <= 2 * 3 * found.stats["model_calls"] + 60
    assert viable.calls < 3 * found.stats["checks"]


def test_a_joint_checker_equals_the_exhaustive_answer() -> None:
    case = cases()["brackets"]
    even = ValidatorChecker(ALL_BYTES, accepts=lambda text: text.count(b"()") == 2)
    found = beam_search(
        case.lm, BothCheckers(case.constraint, even), BeamSearch(width=WIDE), n=WIDE, max_tokens=case.max_tokens
    )
    law = {t: p for t, p in case.law().items() if spelled(ALL_BYTES, t).count("()") == 2}
    assert {one.tokens: math.exp(one.logprob) for one in found} == pytest.approx(law)


# ---- look-ahead and arguments -----------------------------------------------------------------------------------


def test_look_ahead_finds_what_a_greedy_beam_misses() -> None:
    """One step ahead decides between a likely token with unlikely successors and the other way round."""
    case = regular("trap", LETTERS, "ab|cb", 3, seed=0)
    rows = np.full((5, 4), 0.25)
    rows[4] = [0.6, 0.05, 0.3, 0.05]  # first token
    rows[0] = [0.4, 0.1, 0.4, 0.1]  # after a: b is unlikely
    rows[2] = [0.05, 0.85, 0.05, 0.05]  # after c: b is likely
    lm = ChainModel(np.log(rows), 1)
    greedy = beam_search(lm, case.constraint, BeamSearch(width=1), max_tokens=3)
    ahead = beam_search(lm, case.constraint, BeamSearch(width=1, lookahead=Lookahead(steps=1)), max_tokens=3)
    assert (greedy[0].text, ahead[0].text) == ("ab", "cb")


def test_look_ahead_keeps_log_probabilities_and_saves_the_next_call() -> None:
    case = cases()["sums"]
    options = BeamSearch(width=WIDE, lookahead=Lookahead(steps=2))
    found = beam_search(case.lm, case.constraint, options, n=5, max_tokens=case.max_tokens)
    assert [answer.logprob for answer in found] == pytest.approx(likeliest(case, 5))
    one = BeamSearch(width=2, lookahead=Lookahead(steps=1))
    found = beam_search(case.lm, case.constraint, one, max_tokens=case.max_tokens)
    assert found.stats["model_calls"] <= case.max_tokens


def test_more_answers_than_the_search_collects_are_refused() -> None:
    case = cases()["brackets"]
    with pytest.raises(ArgumentError, match="n is 5"):
        beam_search(case.lm, case.constraint, BeamSearch(width=4), n=5, max_tokens=9)
    assert len(beam_search(case.lm, case.constraint, BeamSearch(width=4, patience=2), n=8, max_tokens=9)) > 4


@pytest.mark.parametrize(
    "wrong",
    [
        {"width": 0}, {"width": 3, "groups": 2}, {"patience": 0}, {"patience": -1.0}, {"diversity": -1.0},
        {"normalization": "log"}, {"early_stopping": "sometimes"}, {"distinct": "meaning"},
        {"length_penalty": math.nan},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_options_are_argument_errors(wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=next(reversed(wrong)) if "groups" not in wrong else "groups"):
        BeamSearch(**wrong)
