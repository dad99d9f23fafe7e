"""What a model wanted at each token of an answer, what the constraint allowed, and who chose the token.

While an answer is generated, nothing of this is recorded, so that generation costs nothing more. An explanation runs
the model again over the tokens of the answer, as one chain of prefixes: with a key-value cache that is one forward pass
over the prompt and the answer (more for long answers, see `ROWS_BYTES`), much less than generating took.

The mass of a step is the share of the model's probability that the mask leaves. Over all steps, the product of the
masses is the weight by which masked sampling is off (see `sampling.core.masked_sampling`): 1 for a constraint that the
model would have satisfied anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...base.errors import ArgumentError
from ...sampling.core.language_model import LanguageModel, rows_after
from ...sampling.core.masked_sampling import allowed_tokens
from ...sampling.core.results import log_sum
from .answer_page import build_answer_page, draw_token_line
from .answer_steps import Chooser, ExplainedAnswer, TokenStep
from .answer_text import format_answer

if TYPE_CHECKING:
    from ...engine.constraint import Constraint
    from ...engine.matcher import Matcher
    from ...vocabulary.vocabulary import Vocabulary

__all__ = ["AnswerExplanation", "explain_answer"]

ROWS_BYTES = 64 << 20
"""Maximum number of bytes of the rows of the model that are requested at once."""


class AnswerExplanation(ExplainedAnswer):
    """An explained answer, and its presentations: `str()` is a table, `save_html` writes a page with plots, and a
    notebook shows the text coloured by who chose it.

    The attributes are those of `ExplainedAnswer`.
    """

    def __str__(self) -> str:
        return format_answer(self)

    def to_html(self) -> str:
        """Return a self-contained HTML page: no scripts, and nothing is fetched."""
        return build_answer_page(self)

    def save_html(self, path: str | PathLike[str]) -> None:
        """Write the HTML page to a file."""
        Path(path).write_text(build_answer_page(self), encoding="utf-8")

    def _repr_html_(self) -> str:
        return draw_token_line(self)


def explain_answer(
    lm: LanguageModel,
    constraint: Constraint,
    tokens: Sequence[int],
    *,
    ending: Literal["end", "open"] = "end",
    closing_tokens: int = 0,
) -> AnswerExplanation:
    """Explain an answer token by token, by running the model over it.

    Parameters
    ----------
    lm : LanguageModel
        The model, after its prompt.
    constraint : Constraint
        What the answer was generated under.
    tokens : sequence of int
        The tokens of the answer, without an end token.
    ending : {"end", "open"}
        "end": the end token is explained too.
    closing_tokens : int
        Number of tokens at the end that were written to close the text within the token budget.

    Returns
    -------
    AnswerExplanation
        Up to the first token that the constraint refuses, if there is one; `note` says so.

    Raises
    ------
    ArgumentError
        If a token is not one of the vocabulary, or the model returns no distributions.
    """
    vocabulary = constraint.vocabulary
    wrong = next((token for token in tokens if not 0 <= token < vocabulary.size), None)
    if wrong is not None:
        raise ArgumentError(f"there is no token {wrong}; the vocabulary has {vocabulary.size:,} tokens")
    start = perf_counter()
    taken = accepted_tokens(constraint, tokens)
    note = "" if len(taken) == len(tokens) else f"the constraint refuses token {len(taken)}, where the table ends"
    ends = len(taken) == len(tokens) and ending == "end"
    last = vocabulary.eos_ids[:1] if ends else ()
    steps = tuple(make_steps(lm, constraint, [*taken, *last], len(tokens) - closing_tokens))
    text = vocabulary.transcript(taken).decode("utf-8", "replace")
    return AnswerExplanation(text, steps, constraint, len(steps), perf_counter() - start, note)


def accepted_tokens(constraint: Constraint, tokens: Iterable[int]) -> list[int]:
    """Return the tokens up to the first that the constraint refuses."""
    matcher, accepted = constraint.matcher(), []
    for token in tokens:
        if not matcher.allows(token):
            break
        matcher.advance(token)
        accepted.append(token)
    return accepted


def make_steps(lm: LanguageModel, constraint: Constraint, tokens: Sequence[int], closing: int) -> Iterator[TokenStep]:
    """Yield the steps of tokens that the constraint allows; those from `closing` on closed the text."""
    matcher, ends = constraint.matcher(), constraint.vocabulary.eos_ids
    for number, (token, row) in enumerate(zip(tokens, iterate_rows(lm, tokens, constraint.vocabulary.size))):
        allowed = allowed_tokens(matcher.mask())
        is_end = token in ends
        wanted = int(np.argmax(row))
        if matcher.constraint.vocabulary.eos_ids and wanted in ends and token in ends:
            wanted = token
        chosen_by: Chooser = "model"
        if is_forced(matcher, token, len(allowed), is_end):
            chosen_by = "forced"
        elif number >= closing and not is_end:
            chosen_by = "closing"
        elif not matcher.allows(wanted):
            chosen_by = "mask"
        group = [index for index in ends if index < len(row)] if is_end else [token]
        wanted_group = [index for index in ends if index < len(row)] if wanted in ends else [wanted]
        yield TokenStep(
            number, token, b"" if is_end else constraint.vocabulary.transcript((token,)), chosen_by, wanted,
            token_data(constraint.vocabulary, wanted), log_sum(row[wanted_group]), log_sum(row[group]),
            min(0.0, log_sum(row[allowed].astype(np.float64))), len(allowed), is_end,
        )  # fmt: skip
        if not is_end:
            matcher.advance(token)


def is_forced(matcher: Matcher, token: int, allowed: int, is_end: bool) -> bool:
    """Return whether the constraint left only the text of a token, in whatever tokens it is spelled."""
    if is_end:
        return matcher.is_finished
    data = matcher.constraint.vocabulary.tokens[token]
    return allowed == 1 or (bool(data) and matcher.forced().startswith(data or b""))


def token_data(vocabulary: Vocabulary, token: int) -> bytes:
    """Return the bytes of any token; the name of an end token or another special one."""
    if token in vocabulary.eos_ids or vocabulary.tokens[token] is None:
        return next((name.encode() for name, index in vocabulary.special.items() if index == token), b"<special>")
    return vocabulary.tokens[token] or b""


def iterate_rows(lm: LanguageModel, tokens: Sequence[int], size: int) -> Iterator[NDArray[np.floating[Any]]]:
    """Yield the row of the model before each token, requested as chains of prefixes of bounded size."""
    step = max(1, ROWS_BYTES // (8 * size))
    for first in range(0, len(tokens), step):
        prefixes = [list(tokens[:end]) for end in range(first, min(first + step, len(tokens)))]
        yield from rows_after(lm, prefixes, size)
