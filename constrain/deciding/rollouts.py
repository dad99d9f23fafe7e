"""Continuations of hypotheses under a constraint: drawn from the model, or greedy. All of them can end in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..sampling.core.language_model import LanguageModel
from ..search.candidate_order import iterate_falling
from ..search.completion_budget import CompletionBudget
from ..search.hypotheses import Candidate, Hypothesis, Row, Searchable, SearchSpace
from ..search.search_results import FoundTokens

__all__ = ["Branch", "continue_branches", "continue_each", "open_space", "start_branch"]


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """A text so far. end: log-probability of its end if it has ended, in nats; None while it can be continued."""

    head: Hypothesis
    end: float | None = None

    @property
    def logprob(self) -> float:
        """Log-probability under the model in nats, of the end too."""
        return self.head.logprob + (self.end or 0.0)

    @property
    def text(self) -> str:
        """The text so far."""
        return self.head.text.decode("utf-8", "replace")

    @property
    def found(self) -> FoundTokens:
        """The tokens of a text that has ended."""
        assert self.end is not None
        return FoundTokens(self.head.tokens, (*self.head.steps, self.end))


def open_space(lm: LanguageModel, constraint: Searchable, max_tokens: int) -> SearchSpace:
    """Return the prefixes of a constraint, with completions that fit into max_tokens."""
    budget = CompletionBudget(constraint.vocabulary, max_tokens)
    return SearchSpace(lm, constraint, max_tokens, budget=budget)


def start_branch(space: SearchSpace) -> Branch:
    """Return the empty text."""
    return Branch(space.start())


def continue_branches(
    space: SearchSpace, branches: Sequence[Branch], steps: int, rng: np.random.Generator | None = None
) -> list[Branch]:
    """Return the continuations of texts, see `continue_each`, without those that have no token that may follow."""
    return [one for one in continue_each(space, branches, steps, rng) if one is not None]


def continue_each(
    space: SearchSpace, branches: Sequence[Branch], steps: int, rng: np.random.Generator | None = None
) -> list[Branch | None]:
    """Continue texts by at most `steps` tokens each, with one call of the model per step for all of them.

    rng: tokens are drawn from the model under the constraint; None: the likeliest ones are taken. Texts that have ended
    stay as they are. Tokens after which no end within the budget is known are taken only where there are no others.
    None stands for a text without any token that may follow.
    """
    out: list[Branch | None] = list(branches)
    for _ in range(steps):
        running = [(i, one) for i, one in enumerate(out) if one is not None and one.end is None]
        if not running:
            break
        rows = space.request_rows([one.head.tokens for _, one in running])
        for (i, one), row in zip(running, rows):
            out[i] = take_token(space, one, row, rng)
    return out


def take_token(space: SearchSpace, branch: Branch, row: Row, rng: np.random.Generator | None) -> Branch | None:
    """Return a text with one token more, or ended; None if no token may follow.

    Tokens are tried in the order of their log-probabilities plus Gumbel noise, which is that of draws without
    replacement: the first admissible one is a draw from the model restricted to those.
    """
    children = space.list_children(branch.head, row)
    keys = np.append(children.logs, children.end)
    if rng is not None:
        keys = keys + rng.gumbel(size=len(keys))
    spare: Candidate | None = None
    for i in iterate_falling(keys):
        if keys[i] == -np.inf:
            break
        if i == len(children.tokens):
            return Branch(branch.head, children.end)
        step = float(children.logs[i])
        candidate = Candidate(branch.head, int(children.tokens[i]), step, float(keys[i]))
        if space.admit(candidate):
            if candidate.fits:
                return Branch(candidate.extend())
            spare = spare or candidate
    return None if spare is None else Branch(spare.extend())
