"""The log-probability of a text: of its canonical tokenisation, of all tokenisations within bounds, or estimated.

    "canonical"   the tokens that the tokenizer itself chooses: a lower bound of the probability of the text
    "all"         the sum over all tokenisations, between certified bounds (`spelling_search`)
    "sampled"     an unbiased estimate of that sum, by masked sampling of the tokenisations of the text

Masked sampling from the language of one text draws a tokenisation x with probability p(x) / w(x), where w is the
product of the masses that the masks leave. So w has the expectation sum over x of p(x), which is the probability of the
text, and a small variance, since nearly all of the mass is usually on one tokenisation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..compilation.constraint_compiler import compile
from ..sampling.core.language_model import LanguageModel
from ..sampling.core.masked_sampling import draw_masked
from .option_trie import Ends
from .spelling_search import sum_spellings
from .token_scores import TokenScore, score_tokens

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["ScoredSpellings", "TextScore", "score_text"]

ScoredSpellings = Literal["canonical", "all", "sampled"]


@dataclass(frozen=True, slots=True)
class TextScore:
    """The log-probability of a text under a model. Logarithms are natural.

    Attributes
    ----------
    text : str
        The text.
    logprob : float
        Its log-probability: of the canonical tokenisation, the sum over all of them, or an estimate of this sum.
    bounds : (float, float)
        Certified lower and upper bounds of the log-probability of the text, all tokenisations included. The upper bound
        is 0 unless spellings = "all".
    tokens : tuple of TokenScore
        The canonical tokenisation, token by token, the end token last.
    log_weight : float or None
        Under a constraint: sum of the logs of the masses that its masks leave, along the canonical tokenisation.
    error : float
        Standard error of `logprob`, for spellings = "sampled"; otherwise 0.
    model_calls, rows : int
        Calls of the model, and positions that it evaluated.
    """

    text: str
    logprob: float
    bounds: tuple[float, float]
    tokens: tuple[TokenScore, ...]
    log_weight: float | None = None
    error: float = 0.0
    model_calls: int = 1
    rows: int = 0

    @property
    def canonical_logprob(self) -> float:
        """The log-probability of the canonical tokenisation."""
        return math.fsum(token.logprob for token in self.tokens)

    @property
    def masked_logprob(self) -> float | None:
        """The log-probability of the canonical tokenisation under masked sampling; None without a constraint."""
        return None if self.log_weight is None else self.canonical_logprob - self.log_weight


def score_text(
    lm: LanguageModel,
    vocabulary: Vocabulary,
    text: str,
    constraint: Constraint | None = None,
    *,
    spellings: ScoredSpellings = "canonical",
    ends: Ends = "token",
    tolerance: float = 1e-3,
    max_rows: int = 4096,
    n: int = 32,
    rng: np.random.Generator | None = None,
) -> TextScore:
    """Return the log-probability of a text.

    Parameters
    ----------
    lm, vocabulary
        The model, after its prompt, and its tokens.
    text : str
        The text. The constraint, if any, must accept it (see `check_acceptance`).
    constraint : Constraint, optional
        Adds the masses of its masks to the result.
    spellings : {"canonical", "all", "sampled"}
        See the module. "sampled" needs ends = "token".
    ends : {"token", "prefix"}
        Whether the end token is included.
    tolerance, max_rows
        For "all", see `sum_spellings`.
    n, rng
        For "sampled": the number of draws (at least 2) and the source of randomness.

    Returns
    -------
    TextScore

    Raises
    ------
    VocabularyError
        If no tokens spell the text.
    LimitError
        If the model has not enough positions.
    """
    data = text.encode()
    tokens = score_tokens(lm, vocabulary, vocabulary.tokenize(data) if data else [], constraint, ends=ends)
    canonical = math.fsum(token.logprob for token in tokens)
    calls, rows = -(-len(tokens) // 64), len(tokens)
    logprob, bounds, error = canonical, (canonical, 0.0), 0.0
    if spellings == "all":
        masses = sum_spellings(lm, vocabulary, [data], ends=ends, tolerance=tolerance, max_rows=max_rows)
        logprob = masses.log_found
        bounds = logprob, min(float(np.logaddexp(logprob, masses.log_frontier)), 0.0)
        calls, rows = calls + masses.model_calls, rows + masses.rows
    elif spellings == "sampled":
        logprob, error, more = estimate_logprob(lm, vocabulary, text, n, rng or np.random.default_rng())
        calls, rows = calls + more, rows + more * n
    log_weight = None if constraint is None else math.fsum(token.logmass for token in tokens)
    return TextScore(text, logprob, bounds, tokens, log_weight, error, calls, rows)


def estimate_logprob(
    lm: LanguageModel, vocabulary: Vocabulary, text: str, n: int, rng: np.random.Generator
) -> tuple[float, float, int]:
    """Return the log of an unbiased estimate of the probability of a text, its standard error (delta method), and the
    number of calls of the model.
    """
    constraint = compile(vocabulary, choices=[text])
    drawn = draw_masked(lm, constraint, n=n, rng=rng, max_tokens=len(text.encode()) + 1)
    relative = np.exp(drawn.log_weights - drawn.log_z) if drawn.log_z > -np.inf else np.zeros(n)
    error = float(relative.std(ddof=1)) / math.sqrt(n) if n > 1 else math.inf
    return drawn.log_z, error, int(drawn.stats["model_calls"])
