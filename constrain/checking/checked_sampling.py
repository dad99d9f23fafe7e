"""Masked sampling with a checker: tokens are drawn under the mask, in the order of a proposal, until one passes.

    masks="first"    row -> mask -> temperature, top-k, top-p -> tokens, each checked until one passes
    masks="after"    row -> temperature, top-k, top-p -> tokens, each checked, then looked up in the mask

With top-k, at most k tokens are checked at a step: the decoding of PICARD (Scholak et al. 2021, section 3), which has
no mask, is masks="after". A token that is rejected is not drawn again at this step (adaptive rejection, Lipkin et al.
2025), so the accepted one has the distribution of the proposal over all tokens that would pass, though most of them are
never checked. The weight of a text multiplies unbiased estimates of the mass of these (`sampling.token_rejection`).

The mask is cheap and rejects most tokens, so masks="first" needs far fewer checks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..base.errors import check_choice
from ..sampling.awrs import WeightedToken, draw_token
from ..sampling.core.language_model import LanguageModel, rows_after
from ..sampling.core.masked_sampling import PLAIN, Proposal, allowed_tokens, apply_proposal
from ..sampling.core.results import Draw, Draws, log_sum
from ..sampling.core.sampler_arguments import check_common_arguments, check_masks
from ..sampling.core.weight_statistics import weight_stats
from ..sampling.token_rejection import RECURSIVE

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..engine.matcher import Matcher
    from ..sampling.checkers import Checker, CheckerPosition

__all__ = ["Dead", "MaskOrder", "draw_checked"]

MaskOrder = Literal["first", "after"]
Dead = set[tuple[int, ...]]
"""Prefixes after which no token passed. They are avoided in later draws."""


@dataclass(slots=True)
class CheckedPosition:
    """A text in progress: its positions in the constraint and in the checker."""

    matcher: Matcher
    checked: CheckerPosition
    logprob: float = 0.0
    log_weight: float = 0.0

    def advance(self, token: int) -> None:
        """Append a token."""
        self.matcher.advance(token)
        self.checked.advance(token)


def draw_checked(
    lm: LanguageModel,
    constraint: Constraint,
    checker: Checker,
    *,
    n: int,
    rng: np.random.Generator,
    max_tokens: int,
    proposal: Proposal = PLAIN,
    masks: MaskOrder = "first",
    dead: Dead | None = None,
) -> Draws:
    """Draw n independent texts that satisfy a constraint and a checker.

    A text has weight 0 if it has not ended in time, or if no token passed at some step. Such a prefix is added to
    `dead`.

    Parameters
    ----------
    lm, constraint, n, rng, max_tokens
        As in `sampling.draw`.
    checker : Checker
        What tokens must pass besides the mask, such as a `VerdictChecker`.
    proposal : Proposal
        How tokens are chosen; with temperature 0, the likeliest one that passes.
    masks : {"first", "after"}
        Whether the mask is applied before the proposal, or to single tokens after the checker.
    dead : set of tuple of int, optional
        Prefixes to avoid, which later calls may use again.

    Returns
    -------
    Draws
        With the stats model_calls, steps, checks (tokens that were checked), checks_per_token and those of
        `weight_stats`.

    Raises
    ------
    ConstrainError
        If the checker fails.
    """
    check_common_arguments(lm, constraint, n, rng, max_tokens)
    check_masks(constraint, "masked")
    check_choice("masks", masks, ("first", "after"))
    step = CheckedStep(constraint, rng, proposal, masks, Dead() if dead is None else dead)
    texts = [CheckedPosition(constraint.matcher(), checker.matcher()) for _ in range(n)]
    live, calls, steps = list(texts), 0, 0
    for left in range(max_tokens, 0, -1):
        if not live:
            break
        rows = rows_after(lm, [text.matcher.tokens for text in live], constraint.vocabulary.size)
        calls, steps = calls + 1, steps + len(live)
        live = [text for text, row in zip(live, rows) if step.extend(text, row, last=left == 1)]
    for text in live:
        text.logprob = text.log_weight = -math.inf
    vocabulary, log_weights = constraint.vocabulary, np.array([text.log_weight for text in texts])
    draws = []
    for text in texts:
        tokens = tuple(token for token in text.matcher.tokens if token not in vocabulary.eos_ids)
        draws.append(Draw(tokens, vocabulary.decode(tokens), text.logprob, text.log_weight))
    costs = {
        "model_calls": calls,
        "steps": steps,
        "checks": step.checks,
        "checks_per_token": step.checks / max(steps, 1),
    }
    return Draws.of(draws, **costs, **weight_stats(log_weights))


class CheckedStep:
    """What draws the next token of a text. checks: the number of tokens that the checker was called for."""

    def __init__(
        self, constraint: Constraint, rng: np.random.Generator, proposal: Proposal, masks: MaskOrder, dead: Dead
    ) -> None:
        self.vocabulary, self.rng, self.proposal, self.masks = constraint.vocabulary, rng, proposal, masks
        self.ends, self.dead, self.checks = tuple(constraint.vocabulary.eos_ids), dead, 0
        texts = [index for index, token in enumerate(self.vocabulary.tokens) if token]
        self.every = np.array(sorted({*texts, *self.ends, *self.vocabulary.names}), np.int64)

    def extend(self, text: CheckedPosition, row: NDArray[np.floating[Any]], *, last: bool) -> bool:
        """Append a token to a text, and return whether it goes on. Its weight becomes 0 if no token passes."""
        tokens = allowed_tokens(text.matcher.mask(None)) if self.masks == "first" else self.every
        if last:
            tokens = tokens[np.isin(tokens, self.ends)]
        drawn, logproposal = self.draw(text, row, tokens)
        if drawn.token is None:
            if not last:
                self.dead.add(tuple(text.matcher.tokens))
            text.logprob = text.log_weight = -math.inf
            return False
        chosen = list(self.ends) if drawn.token in self.ends else [drawn.token]
        logprob = log_sum(row[chosen].astype(np.float64))
        text.logprob += logprob
        text.log_weight += logprob - logproposal + drawn.log_weight
        text.advance(drawn.token)
        return drawn.token not in self.ends

    def draw(
        self, text: CheckedPosition, row: NDArray[np.floating[Any]], tokens: NDArray[np.int64]
    ) -> tuple[WeightedToken, float]:
        """Return a token that passes, with the estimated log mass of such tokens under the proposal, and the log of the
        proposal's probability of this token.
        """
        nothing = WeightedToken(None, -math.inf, 0), -math.inf
        logs = row[tokens].astype(np.float64)
        if not len(tokens) or logs.max() == -np.inf:
            return nothing
        prefix = tuple(text.matcher.tokens)

        def check(token: int) -> bool:
            return self.passes(text, prefix, token)

        if self.proposal.temperature == 0:
            token = self.find_likeliest(tokens, logs, check)
            return nothing if token is None else (WeightedToken(token, 0.0, 0), 0.0)
        with np.errstate(divide="ignore"):
            proposed = np.log(apply_proposal(logs, self.proposal))
        full = np.full(len(row), -np.inf)
        full[tokens] = proposed
        drawn = draw_token(full, check, self.rng, method=RECURSIVE, allowed=tokens[proposed > -np.inf], ends=self.ends)
        if drawn.token is None:
            return nothing
        return drawn, log_sum(full[list(self.ends) if drawn.token in self.ends else [drawn.token]])

    def find_likeliest(self, tokens: NDArray[np.int64], logs: NDArray[np.float64], check: Any) -> int | None:
        """Return the likeliest token that passes, of the top_k likeliest; None if there is none."""
        order = np.argsort(-logs, kind="stable")[: self.proposal.top_k]
        return next((int(tokens[k]) for k in order if logs[k] > -np.inf and check(int(tokens[k]))), None)

    def passes(self, text: CheckedPosition, prefix: tuple[int, ...], token: int) -> bool:
        """Return whether a token passes the checker, the mask, and is not known to be dead."""
        if (*prefix, token) in self.dead:
            return False
        self.checks += 1
        return text.checked.allows(token) and (self.masks == "first" or text.matcher.allows(token))
