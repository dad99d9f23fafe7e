"""Draw texts in rounds, and the exact law of a constraint with few texts, with which their histogram is compared.

Every round adds to the estimate. Samplers that learn (`asap`, `exact`) keep what they learnt from round to round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..base.errors import UnsatisfiableError
from ..base.work import spend_work
from ..engine.constraint import Constraint
from ..engine.matcher import Matcher
from ..sampling.core.language_model import LanguageModel
from ..sampling.core.results import Draw, Draws
from ..sampling.sampler_table import SAMPLERS, draw
from ..sampling.success_trie import SuccessTrie
from ..scoring.choice_result import normalise_options
from ..scoring.spelling_search import sum_spellings

__all__ = ["COMPARED_SAMPLERS", "MOST_TEXTS", "SamplerRounds", "compute_law", "list_accepted_texts"]

COMPARED_SAMPLERS = tuple(name for name in SAMPLERS if name not in ("markov", "without_replacement"))
"""markov needs a Markov model, and draws without replacement do not form a histogram."""
PARTICLES = 8
"""Particles of a population, for the samplers that have them; a text is drawn from each."""
MOST_TEXTS = 40
"""Maximum number of texts whose law is computed."""
MOST_POSITIONS = 2_000
"""Maximum number of positions that are visited while the texts are listed."""
LISTING = 20
"""Units of work of a position."""
TRIE_BYTES = 16 << 20
LAW_ROWS = 2_048
"""Maximum number of positions at which the model is evaluated for the law."""


@dataclass(slots=True)
class SamplerRounds:
    """The draws of one sampler so far.

    name: of the sampler. trie: what it has learnt, if it learns.
    """

    lm: LanguageModel
    constraint: Constraint
    name: str
    rng: np.random.Generator
    max_tokens: int
    draws: list[Draw] = field(default_factory=list)
    unfinished: int = 0
    trie: SuccessTrie | None = None

    def run(self, n: int) -> dict[str, Any]:
        """Draw n more texts, and return the state of the estimate as JSON data.

        drawn: texts so far. unfinished: those that did not end within `max_tokens`. counts: how often each text was
        drawn. shares: the estimate of its probability given the constraint, by the weights of the draws. ess: effective
        number of draws.
        """
        row = SAMPLERS[self.name]
        options: dict[str, Any] = {}
        if row.uses_trie:
            self.trie = self.trie or SuccessTrie(self.max_tokens, max_bytes=TRIE_BYTES)
            options["trie"] = self.trie
        if row.takes_particles:
            options["particles"] = PARTICLES
        made = draw(
            self.lm, self.constraint, sampler=self.name, n=n, rng=self.rng, max_tokens=self.max_tokens, **options
        )  # fmt: skip
        self.draws += made.draws
        self.unfinished += made.unfinished
        return self.describe()

    def describe(self) -> dict[str, Any]:
        """Return the state of the estimate as JSON data, see `run`."""
        every = Draws(tuple(self.draws), unfinished=self.unfinished)
        return {
            "sampler": self.name, "drawn": len(self.draws) + self.unfinished, "unfinished": self.unfinished,
            "counts": dict(Counter(one.text for one in self.draws).most_common()),
            "shares": every.by_text(), "ess": float(every.ess),
        }  # fmt: skip


def list_accepted_texts(constraint: Constraint) -> list[bytes] | None:
    """Return all texts of a constraint in lexical order, in every spelling; None if there are more than MOST_TEXTS."""
    try:
        return sorted(walk_texts(constraint.matcher()))
    except TooManyTextsToList:
        return None


class TooManyTextsToList(Exception):
    """There are more than MOST_TEXTS texts, or MOST_POSITIONS positions do not suffice to list them."""


def walk_texts(start: Matcher) -> Iterator[bytes]:
    """Yield the texts after a position, depth first. Raise TooManyTextsToList, see there."""
    waiting, positions, found = [(start.fork(), b"")], 0, 0
    while waiting:
        matcher, text = waiting.pop()
        positions += 1
        spend_work(LISTING, "the list of texts")
        if positions + len(waiting) > MOST_POSITIONS:
            raise TooManyTextsToList
        if matcher.is_complete:
            found += 1
            if found > MOST_TEXTS:
                raise TooManyTextsToList
            yield text
        forced = matcher.forced()
        for step in [forced] if forced else [bytes((byte,)) for byte in sorted(matcher.next_bytes())]:
            further = matcher.fork()
            further.advance_bytes(step)
            waiting.append((further, text + step))


def compute_law(lm: LanguageModel, constraint: Constraint) -> dict[str, Any]:
    """Return the distribution of the model given the constraint, as JSON data: `texts`, each with its probability.

    The probability of a text is the sum over its tokenisations. log_total: log of the probability that the model
    satisfies the constraint; unresolved: the share of mass that was not summed up, at most. texts is None, with a
    `reason`, if there are too many texts or the model gives none of them any probability.
    """
    texts = list_accepted_texts(constraint)
    if texts is None:
        return {"texts": None, "reason": f"the constraint has more than {MOST_TEXTS} texts"}
    masses = sum_spellings(lm, constraint.vocabulary, texts, max_rows=LAW_ROWS)
    try:
        law = normalise_options([text.decode("utf-8", "replace") for text in texts], masses)
    except UnsatisfiableError as error:
        return {"texts": None, "reason": error.cause}
    ordered = sorted(law.probabilities.items(), key=lambda item: -item[1])
    return {"texts": dict(ordered), "log_total": law.log_total, "unresolved": law.unresolved}
