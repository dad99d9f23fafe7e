"""The results of the searches: answers, the token sequences that spell them, and what the search cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..engine.text_enumeration import hashable_json
from ..sampling.core.results import log_sum

if TYPE_CHECKING:
    from ..vocabulary.vocabulary import Vocabulary
    from .search_options import Distinct

__all__ = ["AnswerPool", "FoundAnswer", "FoundAnswers", "FoundTokens"]


@dataclass(frozen=True, slots=True)
class FoundTokens:
    """A token sequence that ends.

    Attributes
    ----------
    tokens : tuple of int
        Without the end token.
    steps : tuple of float
        Log-probability of each token under the model, and of the end, in nats; of draws only their sum.
    """

    tokens: tuple[int, ...]
    steps: tuple[float, ...]

    @property
    def logprob(self) -> float:
        """Log-probability under the model in nats, end token included."""
        return float(sum(self.steps))


@dataclass(frozen=True, slots=True)
class FoundAnswer:
    """One answer.

    Attributes
    ----------
    text : str
        Its text; special tokens appear by name.
    logprob : float
        Log of the sum of the probabilities of its spellings, in nats.
    score : float
        What the answers are ranked by: `logprob` with the length penalty, or the perturbed log-probability.
    spellings : tuple of FoundTokens
        The token sequences found for it, likeliest first; one unless answers are distinct by text or value.
    log_weight : float
        Log of the importance weight of a stochastic beam search; 0 for other searches.
    """

    text: str
    logprob: float
    score: float
    spellings: tuple[FoundTokens, ...]
    log_weight: float = 0.0

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens of the likeliest spelling, without the end token."""
        return self.spellings[0].tokens

    @property
    def value(self) -> Any:
        """The text as JSON; the text itself if it is not JSON."""
        try:
            return json.loads(self.text)
        except ValueError:
            return self.text


@dataclass(frozen=True, slots=True)
class FoundAnswers(Sequence[FoundAnswer]):
    """The answers of a search, best first.

    Attributes
    ----------
    answers : tuple of FoundAnswer
    stats : dict of str to float
        Counts by name: model_calls, rows computed in them, checks of single tokens.
    optimal : bool
        Whether these are proven to be the likeliest answers (see `best_first_search`).
    bound : float
        Log-probability that no token sequence exceeds that is not among the answers; 0 if unknown.
    """

    answers: tuple[FoundAnswer, ...]
    stats: dict[str, float] = field(default_factory=dict, compare=False)
    optimal: bool = False
    bound: float = 0.0

    def __len__(self) -> int:
        return len(self.answers)

    @overload
    def __getitem__(self, index: int) -> FoundAnswer: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[FoundAnswer]: ...
    def __getitem__(self, index: int | slice) -> FoundAnswer | Sequence[FoundAnswer]:
        return self.answers[index]

    def __iter__(self) -> Iterator[FoundAnswer]:
        return iter(self.answers)


class AnswerPool:
    """Finished token sequences, grouped into answers.

    Parameters
    ----------
    vocabulary : Vocabulary
    distinct : {"tokens", "text", "value"}
        Which sequences are the same answer.
    score : callable
        ``score(logprob, length)`` of an answer; the length is that of its likeliest spelling, end token included.
    bonus : callable, optional
        Of the bytes of a text: what is added to its log-probability for the score.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        distinct: Distinct,
        score: Callable[[float, int], float],
        bonus: Callable[[bytes], float] | None = None,
    ) -> None:
        self.vocabulary, self.distinct, self.score, self.bonus = vocabulary, distinct, score, bonus
        self.groups: dict[Hashable, list[FoundTokens]] = {}

    def add(self, found: FoundTokens) -> None:
        """Add a token sequence, unless it was added before."""
        data = self.vocabulary.transcript(found.tokens)
        keys: dict[str, Callable[[], Hashable]] = {
            "tokens": lambda: found.tokens,
            "text": lambda: data,
            "value": lambda: hashable_json(data),  # type: ignore[dict-item,return-value]
        }
        group = self.groups.setdefault(keys[self.distinct](), [])
        if all(found.tokens != other.tokens for other in group):
            group.append(found)
            group.sort(key=lambda one: -one.logprob)

    def merge(self, other: AnswerPool) -> None:
        """Add the sequences of another pool."""
        for group in other.groups.values():
            for found in group:
                self.add(found)

    def score_group(self, group: list[FoundTokens]) -> float:
        """Return the score of an answer."""
        more = 0.0 if self.bonus is None else self.bonus(self.vocabulary.transcript(group[0].tokens))
        return self.score(sum_spellings(group) + more, len(group[0].tokens) + 1)

    def kth_score(self, k: int) -> float:
        """Return the k-th largest score of an answer; -inf if there are fewer."""
        scores = sorted(map(self.score_group, self.groups.values()), reverse=True)
        return scores[k - 1] if k <= len(scores) else -np.inf

    def kth_logprob(self, k: int) -> float:
        """Return the k-th largest log-probability of the likeliest spelling of an answer; -inf if there are fewer."""
        best = sorted((group[0].logprob for group in self.groups.values()), reverse=True)
        return best[k - 1] if k <= len(best) else -np.inf

    def best(self, n: int) -> tuple[FoundAnswer, ...]:
        """Return the n best answers, best first."""
        answers = [self.build_answer(group) for group in self.groups.values()]
        return tuple(sorted(answers, key=lambda answer: -answer.score)[:n])

    def build_answer(self, group: list[FoundTokens]) -> FoundAnswer:
        """Return the answer of a group."""
        text = self.vocabulary.transcript(group[0].tokens).decode("utf-8", "replace")
        return FoundAnswer(text, sum_spellings(group), self.score_group(group), tuple(group))


def sum_spellings(group: list[FoundTokens]) -> float:
    """Return the log of the sum of the probabilities of token sequences."""
    return group[0].logprob if len(group) == 1 else log_sum(np.array([found.logprob for found in group]))
