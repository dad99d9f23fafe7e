"""Hypotheses, and how they are extended: what the searches share.

A `Hypothesis` is a prefix with its log-probability and its position in the constraint. `SearchSpace` asks the model for
the rows after several of them in one call and lists their children: the tokens that the mask allows, and the end of the
text, whose probability is that of all end tokens together. A constraint without masks (a Checker) is asked only about
the candidates that a search wants to use, in `admit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from ..base.cached_property import cached_property
from ..base.errors import LimitError, check_count
from ..engine.constraint import Constraint
from ..engine.length_limits import TokenLimit, explain_short_limit
from ..sampling.checkers import Checker, CheckerPosition
from ..sampling.core.language_model import LanguageModel, check_mass, rows_after
from ..sampling.core.results import log_sum
from ..sampling.core.sampler_arguments import MOST_DRAWS, check_constraint
from ..sampling.core.token_masses import allowed_tokens
from .completion_budget import CompletionBudget
from .phrase_progress import PhraseProgress, PhraseState

__all__ = ["END", "Candidate", "Children", "Hypothesis", "SearchSpace", "Searchable", "check_search_arguments"]

END = -1
"""Stands for all end tokens."""
Searchable = Union[Constraint, Checker]
Row = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Hypothesis:
    """A prefix of a text.

    steps: log-probability of each token under the model, nats. position: after the tokens. completion: bytes that end
    the text within the budget, None if none is known. phrases: state of the phrases. text: bytes of the tokens.
    """

    tokens: tuple[int, ...]
    steps: tuple[float, ...]
    logprob: float
    position: CheckerPosition
    completion: bytes | None = None
    phrases: PhraseState = PhraseProgress.start
    text: bytes = b""


@dataclass(slots=True, eq=False)
class Candidate:
    """A token after a hypothesis, or its end. key: by which candidates are ranked. Admitting it sets the position, the
    text, the completion and the state of the phrases, and `fits`: whether a completion within the budget is known.
    repeats: whether it is a less likely spelling of a text that was found before.
    """

    parent: Hypothesis
    token: int
    step: float
    key: float
    position: CheckerPosition | None = None
    completion: bytes | None = None
    phrases: PhraseState = field(default=PhraseProgress.start)
    text: bytes = b""
    fits: bool = True
    repeats: bool = False

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """Sorts candidates: those that fit the budget first, new texts among them first, then by falling key."""
        return not self.fits, self.repeats, -self.key

    @property
    def logprob(self) -> float:
        """Log-probability of the prefix with this token."""
        return self.parent.logprob + self.step

    def extend(self) -> Hypothesis:
        """Return the hypothesis with the token. It must have been admitted."""
        parent, position = self.parent, self.position
        assert position is not None
        tokens, steps = (*parent.tokens, self.token), (*parent.steps, self.step)
        return Hypothesis(tokens, steps, self.logprob, position, self.completion, self.phrases, self.text)


@dataclass(frozen=True, slots=True)
class Children:
    """The tokens after a hypothesis: int64 [k], ascending, without end tokens; logs: float64 [k], their
    log-probabilities, all finite. end: that of the end, -inf if the text may not end.
    """

    tokens: NDArray[np.int64]
    logs: NDArray[np.float64]
    end: float


class SearchSpace:
    """The prefixes of a constraint under a model.

    Parameters
    ----------
    lm, constraint, max_tokens
        As in `beam_search`.
    phrases : PhraseProgress, optional
        Phrases without which a text may not end.
    budget : CompletionBudget, optional
        Computes the completions of hypotheses; without it they have none.
    """

    def __init__(
        self,
        lm: LanguageModel,
        constraint: Searchable,
        max_tokens: int,
        phrases: PhraseProgress | None = None,
        budget: CompletionBudget | None = None,
    ) -> None:
        self.lm, self.constraint, self.vocabulary = lm, constraint, constraint.vocabulary
        self.max_tokens, self.phrases, self.budget = max_tokens, phrases, budget
        self.ends = list(self.vocabulary.eos_ids)
        self.calls = self.rows = self.checks = 0
        self.known: dict[tuple[int, ...], Row] = {}

    def start(self) -> Hypothesis:
        """Return the empty prefix."""
        position = self.constraint.matcher()
        state = PhraseProgress.start
        if self.budget is None:
            return Hypothesis((), (), 0.0, position)
        completion = self.budget.find_completion(position, state, None, None, self.max_tokens)
        return Hypothesis((), (), 0.0, position, completion)

    def request_rows(self, prefixes: Sequence[tuple[int, ...]]) -> list[Row]:
        """Return the model's row after each prefix, with at most one call of the model."""
        missing = [prefix for prefix in dict.fromkeys(prefixes) if prefix not in self.known]
        found = dict(self.known)
        if missing:
            rows = rows_after(self.lm, [list(prefix) for prefix in missing], self.vocabulary.size)
            self.calls, self.rows = self.calls + 1, self.rows + len(missing)
            found.update(zip(missing, rows))
        return [found[prefix] for prefix in prefixes]

    def list_children(self, parent: Hypothesis, row: Row) -> Children:
        """Return the children of a hypothesis, given the model's row after it. At the last token there is only the
        end.
        """
        allowed = self.list_allowed(parent.position)
        ending = np.isin(allowed, self.ends)
        end = -np.inf
        if ending.any() and (self.phrases is None or self.phrases.is_met(parent.phrases)):
            end = log_sum(row[allowed[ending]].astype(np.float64))
        tokens = allowed[~ending]
        if len(parent.tokens) + 1 >= self.max_tokens:
            tokens = tokens[:0]
        logs = row[tokens].astype(np.float64)
        check_mass(log_sum(logs))
        possible = logs > -np.inf
        return Children(tokens[possible], logs[possible], end)

    def list_allowed(self, position: CheckerPosition) -> NDArray[np.int64]:
        """Return the tokens of a mask (int64 [k], ascending); without one all that have bytes, and the end tokens."""
        mask = compute_mask(position)
        if mask is not None:
            return allowed_tokens(mask)
        return self.texts

    def admit(self, candidate: Candidate) -> bool:
        """Test a candidate that is about to be used; if it is allowed, set its position, phrases and completion."""
        if not self.is_allowed(candidate):
            return False
        if self.budget is not None and candidate.position is not None:
            parent = candidate.parent
            remaining = self.max_tokens - len(parent.tokens) - 1
            candidate.completion = self.budget.find_completion(
                candidate.position, candidate.phrases, parent.completion, candidate.token, remaining
            )
            candidate.fits = candidate.completion is not None
        return True

    def is_allowed(self, candidate: Candidate) -> bool:
        """Test a candidate; if it is allowed, set its position and phrases."""
        parent, token = candidate.parent, candidate.token
        if not hasattr(parent.position, "mask"):
            self.checks += 1
            if not parent.position.allows(self.ends[0] if token == END else token):
                return False
        if token == END:
            return True
        candidate.position = parent.position.fork()
        candidate.position.advance(token)
        candidate.text = parent.text + self.vocabulary.spelled(token)
        if self.phrases is not None:
            candidate.phrases = self.phrases.advance(parent.phrases, self.vocabulary.tokens[token] or b"")
        return True

    @cached_property
    def texts(self) -> NDArray[np.int64]:
        """All tokens that have bytes, and the end tokens (int64 [k], ascending)."""
        texts = {token for token, data in enumerate(self.vocabulary.tokens) if data}
        return np.array(sorted(texts | set(self.ends)), np.int64)

    def nothing_found(self) -> LimitError:
        """Return the error for a search without answers."""
        limit = TokenLimit(self.max_tokens, getattr(self.lm, "max_new_tokens", None))
        return explain_short_limit(self.constraint, self.max_tokens) or limit.make_error(
            f"no text was found that satisfies the constraint within {limit.name}",
            f"{limit.cure.capitalize()}, or widen the search.",
        )

    @property
    def stats(self) -> dict[str, float]:
        """Counts by name: model_calls, rows computed in them, checks of single tokens."""
        return {"model_calls": self.calls, "rows": self.rows, "checks": self.checks}


def compute_mask(position: Any) -> NDArray[np.int32] | None:
    """Return the mask of a position; of joint positions that of the first; None if there is none."""
    if hasattr(position, "mask"):
        mask: NDArray[np.int32] = position.mask(None)
        return mask
    return compute_mask(position.first) if hasattr(position, "first") else None


def check_search_arguments(lm: object, constraint: object, n: Any, max_tokens: Any) -> None:
    """Raise TypeError, ArgumentError or LimitError unless the arguments of a search are valid."""
    if not isinstance(lm, LanguageModel) or isinstance(lm, type):
        raise TypeError(f"lm is a {type(lm).__name__}: it must have a method next_logprobs, see sampling.LanguageModel")
    check_constraint(constraint)
    if check_count("n", n, 1) > MOST_DRAWS:
        raise LimitError(f"n is {n}: at most {MOST_DRAWS:,} texts are searched for in one call")
    check_count("max_tokens", max_tokens, 1)
