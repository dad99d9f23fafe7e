"""Drafts are lossless: texts from the scheduler with every kind of draft against the masked distribution.

Deterministic drafts give the same text for the same seed; sampled drafts the same distribution, by a G-test against
the enumerated law of masked sampling.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from constrain.decoding.generation_loop import finish_runs
from constrain.decoding.language_model_runner import LanguageModelRunner
from constrain.decoding.outcomes import Outcome
from constrain.decoding.request_run import RequestRun
from constrain.decoding.requests import GenerationRequest
from constrain.decoding.scheduler import Scheduler
from constrain.decoding.token_choice import TokenChoice
from constrain.sampling.core.masked_sampling import PLAIN, Proposal, allowed_tokens, apply_proposal, pick_token
from constrain.speculation.adaptive_drafts import AdaptiveDrafts
from constrain.speculation.combined_drafts import ForcedFirst, MergedDrafts
from constrain.speculation.draft_source import NO_DRAFT, DraftSource, DraftTree
from constrain.speculation.forced_drafts import ForcedDrafts
from constrain.speculation.model_drafts import ModelDrafts, draw_without_replacement
from constrain.speculation.prompt_lookup import PromptLookup
from constrain.speculation.suffix_lookup import SuffixHistory
from constrain.speculation.text_drafts import TextDrafts
from constrain.speculation.token_recycling import SuccessorMatrix
from tests.markov_factory import PASS_ABOVE, Case, ChainModel, cases, g_test

MOST = 24
"""Greatest length of texts whose weights are compared."""
DEPTH = 4
"""Number of tokens whose distribution is compared."""
Tokens = tuple[int, ...]


class NoDrafts:
    """Proposes nothing."""

    def propose(self, context, matcher, limit: int) -> DraftTree:
        return NO_DRAFT

    def observe(self, tokens) -> None:
        pass


class RandomTrees(NoDrafts):
    """Proposes random trees, refused tokens and end tokens included; sampled ones with their distribution."""

    def __init__(self, size: int, seed: int, sampled: bool) -> None:
        self.size, self.rng, self.sampled = size, np.random.default_rng(seed), sampled

    def propose(self, context, matcher, limit: int) -> DraftTree:
        rng, tokens, parents, probabilities = self.rng, [], [], {}
        for parent in range(-1, 3):
            if parent < len(tokens) and len(tokens) < limit:
                share = rng.dirichlet(np.full(self.size, 0.3))
                found = draw_without_replacement(share, min(int(rng.integers(1, 4)), limit - len(tokens)), rng)
                tokens += found
                parents += [parent] * len(found)
                probabilities[parent] = share
        return DraftTree(tuple(tokens), tuple(parents), probabilities if self.sampled else {})


def model_drafts(case: Case, seed: int, lm=None, **options) -> ModelDrafts:
    vocabulary = case.constraint.vocabulary
    draft = ChainModel.random(vocabulary, 1, seed + 77) if lm is None else lm
    rng = np.random.default_rng([seed, 5])
    return ModelDrafts(draft, prompt_length=0, size=vocabulary.size, ends=vocabulary.eos_ids, rng=rng, **options)


def text_drafts(case: Case, seed: int) -> TextDrafts:
    vocabulary = case.constraint.vocabulary
    return TextDrafts(case.lm, draft_vocabulary=vocabulary, vocabulary=vocabulary, prompt_length=0)


HISTORIES: dict[str, SuffixHistory] = {}
MATRICES: dict[str, SuccessorMatrix] = {}
DETERMINISTIC: dict[str, Callable[[Case, int], DraftSource]] = {
    "forced": lambda case, seed: ForcedDrafts(),
    "prompt": lambda case, seed: PromptLookup(least=1),
    "suffix": lambda case, seed: HISTORIES.setdefault(case.name, SuffixHistory()).start_text([]),
    "recycling": lambda case, seed: MATRICES.setdefault(
        case.name, SuccessorMatrix(case.constraint.vocabulary.size, 3)
    ).start_text([]),
    "text": text_drafts,
    "top": lambda case, seed: model_drafts(case, seed, case.lm, proposal=Proposal(0), branching=(2, 1)),
    "random": lambda case, seed: RandomTrees(case.constraint.vocabulary.size, seed, sampled=False),
    "merged": lambda case, seed: AdaptiveDrafts(
        MergedDrafts([PromptLookup(least=1), DETERMINISTIC["recycling"](case, seed)]), 0.05
    ),
}
SAMPLED: dict[str, Callable[[Case, int], DraftSource]] = {
    "model": model_drafts,
    "the model itself": lambda case, seed: model_drafts(case, seed, case.lm),
    "model tree": lambda case, seed: model_drafts(case, seed, branching=(3, 2, 1)),
    "adaptive model": lambda case, seed: ForcedFirst(AdaptiveDrafts(model_drafts(case, seed), 0.1)),
    "random": lambda case, seed: RandomTrees(case.constraint.vocabulary.size, seed, sampled=True),
}
NAMES = ["pieces", "bytes", "traps, trigram", "a^n b^n", "sums", "single"]


def submit(
    case: Case, sources: Sequence[DraftSource], seeds: Sequence[object], proposal: Proposal = PLAIN
) -> tuple[Scheduler, list[RequestRun]]:
    """One text per source, all in one batch; the seed of each is given."""
    scheduler = Scheduler(LanguageModelRunner(lambda _: case.lm, case.constraint.vocabulary.size), slots=len(sources))
    runs = [
        scheduler.submit(
            GenerationRequest(
                case.constraint.vocabulary,
                [np.random.default_rng(seed)],
                constraint=case.constraint,
                max_tokens=MOST,
                choice=TokenChoice(proposal),
                draft_source=lambda source=source: source,
            )
        )
        for source, seed in zip(sources, seeds)
    ]
    return scheduler, runs


def generate(
    case: Case, sources: Sequence[DraftSource], seeds: Sequence[object], proposal: Proposal = PLAIN
) -> list[Outcome]:
    """The texts to their ends."""
    scheduler, runs = submit(case, sources, seeds, proposal)
    finish_runs(scheduler, runs)
    return [run.outcomes[0] for run in runs]


def begin(case: Case, sources: Sequence[DraftSource], seeds: Sequence[object], proposal: Proposal) -> Counter[Tokens]:
    """The first DEPTH tokens of each text, (-1,) after the last one of a shorter text."""
    scheduler, runs = submit(case, sources, seeds, proposal)
    found: list[Tokens] = []
    while runs:
        scheduler.step()
        for run in list(runs):
            outcomes = [sample.outcome for sample in run.live] if run.live else run.outcomes
            if len(outcomes[0].tokens) >= DEPTH or run.is_done:
                found.append(tuple([*outcomes[0].tokens, *([-1] if run.is_done else [])][:DEPTH]))
                runs.remove(run)
                scheduler.cancel(run)
    return Counter(found)


def masked_law(case: Case, proposal: Proposal = PLAIN) -> dict[Tokens, float]:
    """The distribution of the first DEPTH tokens under masked sampling."""
    law: dict[Tokens, float] = {}
    ends = case.constraint.vocabulary.eos_ids

    def walk(matcher, p: float) -> None:
        if len(matcher.tokens) == DEPTH:
            law[tuple(matcher.tokens)] = p
            return
        allowed = allowed_tokens(matcher.mask(None))
        shares = apply_proposal(case.lm.logs[case.lm.context(matcher.tokens)][allowed], proposal)
        for token, share in zip(allowed.tolist(), shares.tolist()):
            if token in ends:
                ended = (*matcher.tokens, -1)
                law[ended] = law.get(ended, 0.0) + p * share
            elif share:
                fork = matcher.fork()
                fork.advance(token)
                walk(fork, p * share)

    walk(case.constraint.matcher(), 1.0)
    assert math.fsum(law.values()) == pytest.approx(1)
    return law


def weight_by_replay(case: Case, tokens: Sequence[int], proposal: Proposal) -> tuple[float, float]:
    """log p and log p / q of a text, position by position."""
    matcher, ends = case.constraint.matcher(), case.constraint.vocabulary.eos_ids
    logprob = weight = 0.0
    for token in [*tokens, ends[0]]:
        row = case.lm.logs[case.lm.context(matcher.tokens)]
        allowed = allowed_tokens(matcher.mask(None))
        shares = apply_proposal(row[allowed], proposal)
        same = np.isin(allowed, ends) if token in ends else allowed == token
        here = np.logaddexp.reduce(row[allowed[same]])
        logprob, weight = logprob + here, weight + here - np.log(shares[same].sum())
        if token not in ends:
            matcher.advance(token)
    return float(logprob), float(weight)


@pytest.mark.parametrize("kind", DETERMINISTIC)
@pytest.mark.parametrize("proposal", [PLAIN, Proposal(0), Proposal(0.7, top_p=0.9)], ids=str)
def test_deterministic_drafts_give_the_same_text_for_the_same_seed(kind: str, proposal: Proposal) -> None:
    accepted = 0
    for name in NAMES:
        case, seeds = cases()[name], range(4)
        plain = generate(case, [NoDrafts() for _ in seeds], seeds, proposal)
        drafted = generate(case, [DETERMINISTIC[kind](case, seed) for seed in seeds], seeds, proposal)
        for one, other in zip(plain, drafted):
            assert other.tokens == one.tokens
            assert other.finish_reason == one.finish_reason
            assert (other.logprob, other.log_weight) == pytest.approx((one.logprob, one.log_weight), abs=1e-12)
            if one.finish_reason == "complete":
                assert other.stats.model_calls + other.stats.forced_tokens == one.stats.model_calls
                replayed = weight_by_replay(case, other.tokens, proposal)
                assert (other.logprob, other.log_weight) == pytest.approx(replayed, abs=1e-9)
            accepted += other.stats.forced_tokens
    assert accepted > 5


@pytest.mark.parametrize("kind", SAMPLED)
@pytest.mark.parametrize(
    "name",
    ["pieces", "single", *(pytest.param(one, marks=pytest.mark.slow) for one in ("bytes", "traps, trigram", "sums"))],
)
def test_sampled_drafts_give_the_masked_distribution(kind: str, name: str) -> None:
    case, n = cases()[name], 250
    proposal = Proposal(0.8, top_k=3) if name in ("pieces", "sums") else PLAIN
    sources = [SAMPLED[kind](case, seed) for seed in range(n)]
    assert (
        g_test(begin(case, sources, [[seed, 1] for seed in range(n)], proposal), masked_law(case, proposal))
        > PASS_ABOVE
    )


@pytest.mark.parametrize("kind", DETERMINISTIC)
def test_deterministic_drafts_give_the_masked_distribution(kind: str) -> None:
    case, n = cases()["pieces"], 250
    sources = [DETERMINISTIC[kind](case, seed) for seed in range(n)]
    assert g_test(begin(case, sources, [[seed, 2] for seed in range(n)], PLAIN), masked_law(case)) > PASS_ABOVE


@pytest.mark.parametrize("kind", SAMPLED)
def test_sampled_drafts_do_not_change_weights(kind: str) -> None:
    case = cases()["pieces"]
    for proposal in (PLAIN, Proposal(0.8, top_k=3)):
        for outcome in generate(case, [SAMPLED[kind](case, seed) for seed in range(12)], range(12), proposal):
            replayed = weight_by_replay(case, outcome.tokens, proposal)
            assert outcome.finish_reason == "budget" or (outcome.logprob, outcome.log_weight) == pytest.approx(replayed)


@pytest.mark.parametrize("kind", SAMPLED)
def test_sampled_drafts_do_not_change_the_likeliest_text(kind: str) -> None:
    for name in NAMES:
        case, seeds = cases()[name], range(3)
        (plain,) = generate(case, [NoDrafts()], [0], Proposal(0))
        drafted = generate(case, [SAMPLED[kind](case, seed) for seed in seeds], seeds, Proposal(0))
        assert all(outcome.tokens == plain.tokens for outcome in drafted)


def test_the_model_itself_as_its_draft_is_nearly_always_accepted() -> None:
    """Equal distributions accept every token; only the end of a text and drafts beyond it are extra."""
    case = cases()["pieces"]
    outcomes = generate(case, [model_drafts(case, seed, case.lm) for seed in range(60)], range(60))
    tokens = sum(len(outcome.tokens) for outcome in outcomes)
    assert sum(outcome.stats.model_calls for outcome in outcomes) < 60 * 2 + 0.35 * tokens


def test_samples_of_one_request_do_not_share_a_sampled_draft() -> None:
    """All begin after one prompt, with one row: a sampled draft there would make the texts alike."""
    case = cases()["pieces"]
    pairs, n = Counter[Tokens](), 200
    first: dict[Tokens, float] = {}
    for tokens, p in masked_law(case).items():
        key = tuple(token for token in tokens[:1] if token >= 0)
        first[key] = first.get(key, 0.0) + p
    joint = {(*a, -2, *b): p * q for a, p in first.items() for b, q in first.items()}
    for seed in range(n):
        scheduler = Scheduler(LanguageModelRunner(lambda _: case.lm, 8))
        generators = [np.random.default_rng([seed, k]) for k in range(2)]
        run = scheduler.submit(
            GenerationRequest(
                case.constraint.vocabulary,
                generators,
                constraint=case.constraint,
                max_tokens=MOST,
                draft_source=lambda seed=seed: model_drafts(case, seed, case.lm),
            )
        )
        finish_runs(scheduler, [run])
        one, other = (outcome.tokens[:1] for outcome in run.outcomes)
        pairs[(*one, -2, *other)] += 1
    assert g_test(pairs, joint) > PASS_ABOVE


def test_a_matcher_after_rejected_drafts_is_that_of_a_fresh_replay() -> None:
    """Listeners see the position: random trees are accepted in part and rejected in part."""
    case, seen = cases()["brackets"], []

    class Watching(RandomTrees):
        def propose(self, context, matcher, limit: int) -> DraftTree:
            fresh = case.constraint.matcher()
            for token in context:
                fresh.advance(token)
            assert matcher.tokens == list(context)
            assert matcher.state == fresh.state
            assert (matcher.mask(None) == fresh.mask(None)).all()
            seen.append(len(context))
            return super().propose(context, matcher, limit)

    size = case.constraint.vocabulary.size
    generate(case, [Watching(size, seed, sampled=seed % 2 == 0) for seed in range(8)], range(8))
    assert len(seen) > 20


def test_pick_token_is_what_a_position_without_a_draft_uses() -> None:
    """The same random numbers as the loop that anybody would write."""
    case = cases()["pieces"]
    for seed in range(10):
        rng, matcher = np.random.default_rng(seed), case.constraint.matcher()
        while True:
            row = case.lm.logs[case.lm.context(matcher.tokens)]
            token = pick_token(row, allowed_tokens(matcher.mask(None)), rng, PLAIN, (6, 7)).token
            if token in (6, 7):
                break
            matcher.advance(token)
        (outcome,) = generate(case, [PromptLookup()], [seed])
        assert outcome.tokens == matcher.tokens
