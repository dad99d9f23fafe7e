"""Infilling with causal models: the gaps of a text are filled from left to right under a constraint.

The texts that agree with the spans are a language, and intersected with the constraint it is a constraint again
(`text_intersection`). So the known parts are forced, the gaps are free within what leads to the known parts after them,
and any sampler can be used, with the weights and guarantees that it has. The model sees what precedes a gap; what
follows reaches it only through the masks, unless its prompt shows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.errors import ArgumentError, UnsatisfiableError, check_type
from ..engine.constraint import Constraint
from ..sampling.core.language_model import LanguageModel
from ..sampling.core.results import Draw
from ..sampling.sampler_table import draw
from ..vocabulary.vocabulary import Vocabulary
from .constraint_states import START, ConstraintStates
from .gaps import Gap, read_spans
from .text_intersection import check_text_spans, infill_form, restrict_constraint, span_form

__all__ = ["FilledText", "infill"]


@dataclass(frozen=True, slots=True)
class FilledText:
    """A text whose gaps were filled.

    Attributes
    ----------
    text : str
        The whole text.
    gaps : tuple of str
        The text of each gap. Where several divisions are possible, the first gaps are as short as possible.
    draw : Draw
        The tokens, their log-probability under the model, and the weight.
    """

    text: str
    gaps: tuple[str, ...]
    draw: Draw


def infill(
    lm: LanguageModel,
    spans: Iterable[str | Gap],
    constraint: Constraint | None = None,
    *,
    vocabulary: Vocabulary | None = None,
    n: int = 1,
    rng: np.random.Generator,
    max_tokens: int,
    sampler: str = "masked",
    **options: Any,
) -> list[FilledText]:
    """Fill the gaps of a text from a causal model.

    Parameters
    ----------
    lm : LanguageModel
        The model, after its prompt.
    spans : iterable of str or Gap
        Known text, and gaps in characters.
    constraint : Constraint, optional
        The language of the whole text. Without it, each gap is only subject to its own constraint.
    vocabulary : Vocabulary, optional
        The tokens of the model; needed without a constraint.
    n : int
        Number of texts.
    rng : numpy.random.Generator
        The only source of randomness.
    max_tokens : int
        Most tokens of the whole text, end token included.
    sampler : str
        As for `sampling.draw`, which gets `options`, too.

    Returns
    -------
    list of FilledText
        At most n: texts that did not end within `max_tokens` are left out.

    Raises
    ------
    UnsatisfiableError
        If no text of the constraint agrees with the spans.
    UnsupportedError
        If the constraint cannot be intersected with the spans: it is not a plain context-free grammar.
    LimitError
        If the intersection is too large.
    TypeError, ArgumentError
        If an argument is not what it should be.
    """
    parts = check_text_spans(spans)
    form = infill_form(parts)
    if constraint is None:
        if vocabulary is None:
            raise ArgumentError("infill needs constraint=... or vocabulary=...: it must know the model's tokens")
        check_type("vocabulary", vocabulary, Vocabulary, "give a constrain.Vocabulary")
        restricted: Constraint | None = form.compile(vocabulary)
    else:
        check_type("constraint", constraint, Constraint, "give what constrain.compile returned")
        restricted = restrict_constraint(read_spans(parts, constraint.vocabulary), constraint)
    if restricted is None:
        raise UnsatisfiableError(
            "no text of the constraint agrees with the spans", hint="constrain.infill_check says whether one does."
        )
    draws = draw(lm, restricted, sampler=sampler, n=n, rng=rng, max_tokens=max_tokens, **options)
    ends = [_SpanEnds(span, restricted) for span in parts]
    return [_divide(one, parts, ends, restricted.vocabulary) for one in draws]


def _divide(one: Draw, spans: list[str | Gap], ends: list[_SpanEnds], vocabulary: Vocabulary) -> FilledText:
    """Return a drawn text with the texts of its gaps."""
    pieces = _divide_text(vocabulary.transcript(one.tokens), ends)
    gaps = (piece.decode("utf-8", "replace") for span, piece in zip(spans, pieces) if isinstance(span, Gap))
    return FilledText(one.text, tuple(gaps), one)


class _SpanEnds:
    """Where a span may end in a text."""

    def __init__(self, span: str | Gap, constraint: Constraint) -> None:
        self.states = None
        if isinstance(span, str):
            self.data = span.encode()
        else:
            self.states = ConstraintStates.of(span_form(span).compile(constraint.vocabulary, limits=constraint.limits))

    def list_ends(self, text: bytes, start: int) -> list[int]:
        """Return the positions at which a text of the span that begins at `start` may end, ascending."""
        if self.states is None:
            return [start + len(self.data)] if text.startswith(self.data, start) else []
        state, ends = START, [start] if self.states.is_accepting(START) else []
        for position in range(start, len(text)):
            state = self.states.step_bytes(state, text[position : position + 1])
            if state < 0:
                break
            if self.states.is_accepting(state):
                ends.append(position + 1)
        return ends


def _divide_text(text: bytes, parts: list[_SpanEnds]) -> list[bytes]:
    """Return the division of a text into the spans, the first ones as short as possible. There must be one.

    Dynamic programming over the positions at which each span may begin.
    """
    ends: list[dict[int, list[int]]] = []
    starts = {0}
    for part in parts:
        ends.append({start: part.list_ends(text, start) for start in starts})
        starts = {end for listed in ends[-1].values() for end in listed}
    usable = [{len(text)}]
    for listed_by_start in reversed(ends):
        usable.append({start for start, listed in listed_by_start.items() if not usable[-1].isdisjoint(listed)})
    usable.reverse()
    position, pieces = 0, list[bytes]()
    for k in range(len(parts)):
        end = next(end for end in ends[k][position] if end in usable[k + 1])
        pieces.append(text[position:end])
        position = end
    return pieces
