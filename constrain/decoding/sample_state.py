"""One text in progress: its Matcher, token budget, random generator, drafts and Outcome.

A text takes from every step the rows and masks after its last token and along its draft:

    while the sampled token is a child in the draft:  row, mask  ->  sample  ->  advance  ->  go to the child's row

Each token is sampled from the model's own row, and the draft only saves forward passes: the distribution is exactly
that of one pass per token, and so is the text for a given generator, unless the draft was sampled (see
`speculation.verification`).

*The budget*: a token after which no completion fits in the remaining tokens is rejected (see `token_budget`). After a
few rejections the known completion is written out; its tokens are then the draft of the next steps, which only score
them.

*A check* of single tokens is consulted for what the mask allows, as far as is needed to draw one (`checked_position`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter_ns
from typing import TYPE_CHECKING

import numpy as np

from ..base.errors import ConstrainError, LimitError
from ..engine.length_limits import name_full_context
from ..sampling.core.masked_sampling import Pick
from ..sampling.core.results import log_sum
from ..sampling.core.token_masses import allowed_tokens, mask_of
from ..speculation.draft_source import NO_DRAFT, ROOT, DraftTree, observe_batch, observe_draft_rows
from ..speculation.forced_drafts import LONGEST_DRAFT, ForcedDrafts
from ..speculation.verification import pick_drafted
from .checked_position import CheckedPosition
from .forced_runs import fits_budget, list_merging_tokens, plan_forced_run
from .logit_adjustment import adjust_changed, normalise_logits
from .model_runner import LogprobRows
from .outcomes import Outcome, Piece, PieceEmitter, TokenOrigin
from .requests import GenerationRequest
from .row_sampling import Mask, choose_token, find_log_proposals, make_full_mask
from .step_masks import NodeMask
from .stop_strings import StopTracker
from .token_budget import Closing

if TYPE_CHECKING:
    from ..engine.matcher import Matcher

__all__ = ["SampleState"]

TRIES = 8
"""Maximum number of tokens tried at one position when the budget is tight, before the known completion is written."""


class SampleState:
    """One text in progress.

    Attributes
    ----------
    matcher : Matcher or None
        The position in the constraint.
    outcome : Outcome
        The text so far; complete once `is_finished`.
    unfed : list of int
        Tokens of the text that the model has not been fed.
    draft : DraftTree
        The draft of the step that is running.

    Raises
    ------
    LimitError
        If the shortest text does not fit in max_tokens.
    """

    def __init__(
        self, request: GenerationRequest, rng: np.random.Generator, listener: Callable[[Piece], None] | None
    ) -> None:
        self.request, self.rng = request, rng
        self.start_ns = perf_counter_ns()
        self.ends = request.vocabulary.eos_ids
        self.matcher: Matcher | None = None if request.constraint is None else request.constraint.matcher()
        with name_full_context(request.positions_left):
            self.closing = Closing(request.vocabulary, self.matcher, request.max_tokens) if self.matcher else None
        self.checked = self.begin_check()
        self.source = request.draft_source()
        self.is_adjusted = not request.choice.adjustment.is_empty
        self.outcome = Outcome(skipped=len(request.prefix))
        stop = request.choice.stop
        self.stops = StopTracker(stop, request.vocabulary, len(request.prefix)) if stop else None
        self.emitter = PieceEmitter(request.vocabulary, listener, self.stops, len(request.prefix))
        self.prompt = set(request.prompt)
        self.counts: Counter[int] = Counter()
        self.context = list(request.prompt)
        self.unfed: list[int] = []
        self.draft = NO_DRAFT
        self.unwritten: list[int | None] | None = None
        self.run: list[int] = []
        self.unscored: tuple[int, ...] = ()
        self.open_tokens: tuple[int, ...] = ()
        self.has_runs = request.choice.forced != "sample" and self.matcher is not None
        if self.has_runs:
            self.start_run()
        if self.has_runs and request.choice.forced == "unscored":
            self.outcome.logprob = self.outcome.log_weight = self.outcome.stats.forced_logprob = math.nan
        self.is_finished = False
        self.mask_ns = self.advance_ns = self.model_ns = self.positions = 0

    def begin_check(self) -> CheckedPosition | None:
        """Return the position in the checker of the request, if it has one."""
        request = self.request
        if request.check is None or self.matcher is None or self.closing is None:
            return None
        checked = CheckedPosition(request.check, request.vocabulary, request.max_tokens)
        checked.begin(self.matcher, self.closing, request.max_tokens)
        return checked

    @property
    def remaining(self) -> int:
        """How many more tokens the text may have, end token included."""
        return self.request.max_tokens - len(self.outcome.tokens)

    @property
    def must_end(self) -> bool:
        """Whether the constraint allows nothing more."""
        return self.matcher is not None and self.matcher.is_finished

    def propose_draft(self, texts: int) -> DraftTree:
        """Choose and return the draft of the next step. texts: how many texts the batch has."""
        if self.unwritten is not None:
            self.draft = DraftTree.chain([token for token in self.unwritten if token is not None][: LONGEST_DRAFT - 1])
        elif self.has_runs:
            self.draft = DraftTree.chain([*self.run, *self.open_tokens][: min(LONGEST_DRAFT, self.remaining) - 1])
        elif self.remaining > 1:
            observe_batch(self.source, texts)
            self.draft = self.source.propose(self.context, self.matcher, self.remaining - 1)
        else:
            self.draft = NO_DRAFT
        return self.draft

    @property
    def is_draft_forced(self) -> bool:
        """Whether a draft of the text is forced text only, which may as well be drafted in a later step."""
        return self.unwritten is not None or self.has_runs or isinstance(self.source, ForcedDrafts)

    def take_rows(self, rows: LogprobRows, masks: Sequence[NodeMask], draft: DraftTree) -> list[int]:
        """Sample tokens along the rows of a step. Return the nodes of the draft that were accepted.

        rows: float [1 + len(draft), V], after the text and after each node. masks: at the same places; written to.
        Raises the error of a mask, errors of the listener, and ArgumentError for a row that is not a distribution.
        """
        self.outcome.stats.model_calls += 1
        written, node, kept = len(self.outcome.tokens), ROOT, list[int]()
        if hasattr(self.source, "observe_rows"):
            observe_draft_rows(self.source, self.context, draft, rows)
        while True:
            row = self.adjust_row(rows[node + 1]) if self.is_adjusted else rows[node + 1]
            token = self.take_row(row, masks[node + 1], draft, node)
            has_run = self.append_unscored()
            if token is None or self.outcome.stop is not None or (has_run and self.must_end):
                self.finish()
                break
            child = draft.children.get(node, {}).get(token)
            if child is None:
                break
            kept.append(child)
            node = child
            if has_run or (self.matcher is None and self.remaining == 0):
                break
        fresh = self.outcome.tokens[written:]
        self.unfed = fresh[len(kept) :]
        self.context += fresh
        self.source.observe(fresh)
        if not self.is_finished and self.matcher is None and self.remaining == 0:
            self.outcome.finish_reason = "length"
            self.finish()
        return kept

    def take_row(self, row: LogprobRows, mask: NodeMask, draft: DraftTree, node: int) -> int | None:
        """Append one token from the row after a node of the draft and return it; None if the text has ended."""
        if self.unwritten is None:
            if isinstance(mask, ConstrainError):
                if isinstance(mask, LimitError) and not self.outcome.tokens:
                    mask.is_of_source = True  # before any token: whoever sends the constraint again meets it again
                raise mask
            if self.run and mask is not None:
                return self.write_forced(row, mask, self.run.pop(0))
            known = make_full_mask(self.request.vocabulary.size) if mask is None else mask
            choice = self.choose(row, known, draft, node)
            if choice is not None:
                if self.has_runs and choice.token not in self.ends and mask is not None:
                    choice = self.take_run(row, mask, choice)
                return self.append_choice(choice, draft.children.get(node, {}))
            completion = self.find_completion()
            if completion is None:
                return None
            self.outcome.finish_reason = "budget"
            self.unwritten = [*completion, None]
        return self.write(row, self.unwritten.pop(0))

    def find_completion(self) -> list[int] | None:
        """Return the tokens that close the text now. If none are known, return None and set the finish_reason."""
        assert self.closing is not None
        if self.outcome.finish_reason == "dead_end":
            return None
        tokens: list[int] | None = None
        if self.checked is not None and self.matcher is not None:
            tokens = self.checked.find_closing(self.matcher, self.closing, self.remaining)
        elif self.closing.data is not None:
            tokens = self.closing.tokens()
        if tokens is None:
            self.outcome.finish_reason = "length"
        return tokens

    def append_choice(self, choice: Pick, children: dict[int, int]) -> int | None:
        """Append a sampled token and return it; None for an end token."""
        self.count(choice)
        if choice.token in self.ends:
            return None
        origin: TokenOrigin = "forced" if choice.token in children else "drawn"
        self.outcome.stats.forced_tokens += origin == "forced"
        self.append_token(choice.token, choice.logprob, choice.logmass, origin)
        return choice.token

    def append_token(self, token: int, logprob: float, logmass: float, origin: TokenOrigin) -> None:
        """Append a token that the Matcher has taken, look for a stop string, and emit it."""
        self.outcome.tokens.append(token)
        if self.is_adjusted:
            self.counts[token] += 1
        if self.stops is not None and self.stops.advance(token, self.matcher):
            assert self.stops.match is not None
            self.outcome.stop = self.stops.match.stop
            if self.outcome.finish_reason == "complete":
                self.outcome.finish_reason = "stop"
        self.emitter.emit(token, logprob, logmass, origin, self.matcher)

    # ---- forced runs --------------------------------------------------------------------------------------------

    def start_run(self) -> None:
        """Begin the text with a forced run, if there is one and it fits in the budget."""
        if self.matcher is not None and self.closing is not None:
            run = plan_forced_run(self.matcher, self.request.vocabulary, None)
            if fits_budget(self.closing, self.matcher, run.tokens, self.remaining):
                self.run, self.open_tokens = list(run.tokens), run.open_tokens

    def take_run(self, row: LogprobRows, mask: Mask, choice: Pick) -> Pick:
        """Plan the forced run after a sampled token, which the Matcher has taken. Return the first token that the run
        leaves in its place, with the probability that any token with this run was sampled (see `forced_runs`).
        """
        assert self.matcher is not None
        assert self.closing is not None
        vocabulary, token = self.request.vocabulary, choice.token
        run = plan_forced_run(self.matcher, vocabulary, token)
        first, rest = (run.tokens[0], run.tokens[1:]) if run.taken_back else (token, run.tokens)
        self.matcher.rollback(1)
        if run.tokens and not (
            mask[first >> 5] >> (first & 31) & 1
            and fits_budget(self.closing, self.matcher, (first, *rest), self.remaining)
        ):
            first, rest, self.outcome.finish_reason = token, (), "budget"
        self.open_tokens, is_scored = run.open_tokens, self.request.choice.forced == "canonical"
        merging = list_merging_tokens(self.matcher, vocabulary, first, rest) if is_scored else []
        self.matcher.advance(first)
        if first != token:
            self.closing.follow(self.matcher, first, self.remaining - 1)
        if not is_scored:
            self.unscored = rest
            return replace(choice, token=first)
        self.run = list(rest)
        if not merging:
            return choice
        logs, logmass = find_log_proposals(row, mask, [first, *merging], self.request.choice.proposal)
        total = log_sum(logs)
        self.outcome.stats.forced_logprob += float(logs[0]) - total
        return Pick(first, float(row[first]), total, logmass)

    def write_forced(self, row: LogprobRows, mask: Mask, token: int) -> int:
        """Append a token of a forced run and return it."""
        assert self.matcher is not None
        assert self.closing is not None
        logs, logmass = find_log_proposals(row, mask, [token], self.request.choice.proposal)
        logprob = float(row[token])
        self.outcome.stats.forced_logprob += float(logs[0])
        self.outcome.stats.forced_tokens += 1
        self.count(Pick(token, logprob, 0.0, logmass))
        self.matcher.advance(token)
        self.closing.follow(self.matcher, token, self.remaining - 1)
        self.append_token(token, logprob, logmass, "forced")
        return token

    def append_unscored(self) -> bool:
        """Append the forced run after the last token, which the model is fed and not asked about. Return whether there
        was one.
        """
        run, self.unscored = self.unscored, ()
        for token in run:
            assert self.matcher is not None
            assert self.closing is not None
            self.matcher.advance(token)
            self.closing.follow(self.matcher, token, self.remaining - 1)
            self.outcome.stats.forced_tokens += 1
            self.append_token(token, math.nan, math.nan, "forced")
            if self.outcome.stop is not None:
                break
        return bool(run)

    def adjust_row(self, row: LogprobRows) -> LogprobRows:
        """Return the log-probabilities after penalties and biases."""
        adjustment = self.request.choice.adjustment
        return normalise_logits(adjust_changed(row, adjustment, self.prompt, self.counts)[0])

    def choose(self, row: LogprobRows, mask: Mask, draft: DraftTree, node: int) -> Pick | None:
        """Sample a token and advance the Matcher with it. Return None if the text has to be closed now."""
        self.positions += 1
        if self.matcher is None or self.closing is None:
            return self.draw(row, mask, draft, node)
        if self.remaining == 1:
            last = mask & mask_of(self.ends, self.request.vocabulary.size)
            if (last != mask).any():
                mask, self.outcome.finish_reason = last, "budget"
        for tried in range(TRIES):
            choice = self.draw(row, mask, draft, node)
            draft = NO_DRAFT  # a token that the budget refused is drawn again independently
            if choice is None and self.checked is not None and not tried and self.remaining > 1:
                self.outcome.finish_reason = "dead_end"
            if choice is None or choice.token in self.ends:
                return choice
            start = perf_counter_ns()
            self.matcher.advance(choice.token)
            self.advance_ns += perf_counter_ns() - start
            if self.follow_token(choice.token):
                return choice
            self.matcher.rollback(1)
            mask.view(np.uint32)[choice.token >> 5] &= np.uint32(0xFFFFFFFF ^ (1 << (choice.token & 31)))
            if not self.closing.lost:  # else no completion exists at all: the mask was too permissive
                self.outcome.stats.refused_for_budget += 1
                self.outcome.finish_reason = "budget"
        return None

    def follow_token(self, token: int) -> bool:
        """Return whether the text can be closed in time after a token, which the Matcher has taken."""
        assert self.matcher is not None
        assert self.closing is not None
        if self.checked is None:
            return self.closing.follow(self.matcher, token, self.remaining - 1)
        before = self.closing.data, self.closing.spelled, self.closing.state
        if not self.closing.follow(self.matcher, token, self.remaining - 1):
            return False
        if self.checked.follow(self.matcher, self.closing, token, self.remaining - 1):
            return True
        self.closing.data, self.closing.spelled, self.closing.state = before
        self.closing.lost = False
        return False

    def draw(self, row: LogprobRows, mask: Mask, draft: DraftTree, node: int) -> Pick | None:
        """Draw an allowed token, by rejection sampling where the tokens of the draft after a node were sampled."""
        proposal, probabilities = self.request.choice.proposal, draft.probabilities.get(node)
        if self.checked is not None:
            last = int(self.remaining == 1)
            return self.checked.draw(row, mask, self.outcome.tokens, self.rng, proposal, last=last)
        if probabilities is None:
            return choose_token(row, mask, self.rng, proposal, self.ends)
        allowed = allowed_tokens(mask)
        if not len(allowed):
            return None
        siblings = list(draft.children.get(node, ()))
        return pick_drafted(row, allowed, self.rng, proposal, self.ends, siblings, probabilities)

    def write(self, row: LogprobRows, token: int | None) -> int | None:
        """Append a token that was not sampled and return it; None means the end token."""
        logprob = float(np.logaddexp.reduce(row[list(self.ends) if token is None else [token]]))
        self.count(Pick(-1, logprob, 0.0, 0.0))
        if token is not None:
            assert self.matcher is not None
            self.matcher.advance(token)
            self.outcome.stats.closing_tokens += 1
            self.append_token(token, logprob, 0.0, "closing")
        return token

    def count(self, choice: Pick) -> None:
        """Add the log-probabilities of a chosen token to the sums."""
        self.outcome.logprob += choice.logprob
        self.outcome.log_weight += choice.logprob - choice.logproposal
        self.outcome.stats.log_mass += choice.logmass

    def finish(self) -> None:
        """Set the bytes of the text and the statistics."""
        self.is_finished = True
        outcome, stats = self.outcome, self.outcome.stats
        outcome.data = self.request.vocabulary.transcript(outcome.tokens)
        if self.stops is not None:
            outcome.data = self.stops.cut(outcome.data)
        outcome.data = outcome.data[outcome.skipped :]
        self.emitter.flush()
        has_end = outcome.finish_reason not in ("length", "dead_end") and outcome.stop is None
        stats.tokens = len(outcome.tokens) + has_end
        if self.checked is not None:
            checks = self.checked.checks
            stats.counts = {"checks": checks, "checks_per_token": checks / max(self.positions, 1)}
        stats.mask_us = self.mask_ns / max(self.positions, 1) / 1e3
        stats.advance_us = self.advance_ns / max(self.positions, 1) / 1e3
        stats.model_us_total = self.model_ns / 1e3
        stats.total_us = (perf_counter_ns() - self.start_ns) / 1e3
