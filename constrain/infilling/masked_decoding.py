"""Decoding with masked diffusion models: positions become known in any order, and every output is in the language.

A masked diffusion model (Nie et al. 2025, "Large Language Diffusion Models", arXiv 2502.09992) sees a sequence in which
some tokens are unknown, and predicts a distribution for each position. The loop below makes some of them known after
each prediction. Muendler et al. (2025, arXiv 2508.10111) check after each choice whether the text can still be
completed, draw again if not, and give up after 100 draws. Here each position is drawn under the mask of the tokens that
some completion has there (`PositionLattice.position_mask`), so no choice is ever refused or leads to a dead end, and
100 % of outputs are in the language:

1. A lattice of all completions is built once. Every choice only removes completions from it, never the last one.
2. If there are too many states for all completions, the lattice is narrowed: it holds true completions, so the
   guarantee is the same, but tokens are missing from its masks. It is built again up to `most_builds` times, first with
   the tokens that the model prefers, and later when more is known, so that more of what remains fits.
3. After `most_calls` calls of the model, all remaining positions are filled at once, with the completion that is
   likeliest if the positions are independent, as the model's last prediction takes them (`likeliest_completion`).

As with masking in causal models, the distribution is not that of the model given the language: a position is drawn
without regard to how likely the completions are that remain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from numbers import Real
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..base.errors import (
    ArgumentError,
    LimitError,
    UnsatisfiableError,
    check_choice,
    check_count,
    check_type,
    describe_value,
)
from ..engine.constraint import Constraint
from ..sampling.core.masked_sampling import Pick, Proposal, pick_under
from ..sampling.core.sampler_arguments import check_constraint
from .gaps import KnownText, Span, TextGap, TokenPositions, read_spans
from .likeliest_completion import find_likeliest
from .position_lattice import PositionLattice

__all__ = ["MaskedLanguageModel", "MaskedOutcome", "decode_masked"]

Order = Literal["confident", "random", "left_to_right"]
PREFERRED = 32
"""Tokens per position, the likeliest ones, that a narrowed lattice tries where it cannot try all."""


@runtime_checkable
class MaskedLanguageModel(Protocol):
    """A model that predicts unknown tokens from those on both sides. It holds its prompt itself."""

    def logprobs(self, tokens: Sequence[int | None]) -> NDArray[np.floating[Any]]:
        """Return natural logs of each token's probability at each position: float [positions, V], rows normalised.

        Unknown tokens are None. Rows of known positions are not looked at.
        """
        ...


@dataclass(slots=True)
class MaskedOutcome:
    """A text that was decoded from a masked model.

    Attributes
    ----------
    tokens : list of int
        One token per position, end tokens included.
    data : bytes
        The text.
    logprob : float
        Sum of the log-probabilities of the chosen tokens, each at the time of the choice, in nats.
    log_mass : float
        Sum of the logs of the probability of all tokens that the masks allowed, at the same times.
    order : list of int
        The positions in the order in which they became known.
    model_calls, builds : int
        Number of calls of the model, and of lattices that were built.
    closing_tokens : int
        Positions that were filled without the model, after `most_calls` or where it gave no allowed token any
        probability.
    is_exact : bool
        Whether the lattice was complete from the beginning, so that no possible token was missing from a mask.
    """

    tokens: list[int] = field(default_factory=list)
    data: bytes = b""
    logprob: float = 0.0
    log_mass: float = 0.0
    order: list[int] = field(default_factory=list)
    model_calls: int = 0
    builds: int = 0
    closing_tokens: int = 0
    is_exact: bool = True

    @property
    def text(self) -> str:
        """The text as a str; bytes that are not UTF-8 become U+FFFD."""
        return self.data.decode("utf-8", "replace")


def decode_masked(
    model: MaskedLanguageModel,
    spans: Iterable[Span],
    constraint: Constraint,
    *,
    rng: np.random.Generator,
    order: Order = "confident",
    per_call: int = 1,
    block: int | None = None,
    temperature: float = 1.0,
    most_calls: int | None = None,
    most_states: int = 10_000,
    most_builds: int = 4,
) -> MaskedOutcome:
    """Fill the unknown positions of a sequence from a masked model, so that the text is in the constraint's language.

    Parameters
    ----------
    model : MaskedLanguageModel
        The model, after its prompt.
    spans : iterable of str, bytes, int, sequence of int or None, Gap, or None
        The sequence: known text, which is tokenised, known tokens, and gaps of a fixed number of tokens.
    constraint : Constraint
        What the text must satisfy.
    rng : numpy.random.Generator
        The only source of randomness.
    order : {"confident", "random", "left_to_right"}
        Which position becomes known next: the one whose drawn token is likeliest under the model, any, or the first.
    per_call : int
        How many positions become known per call of the model.
    block : int, optional
        Length of blocks that are finished one after another (semi-autoregressive decoding). None is one block.
    temperature : float
        Divides the log-probabilities; 0 selects the likeliest token.
    most_calls : int, optional
        Calls of the model after which the remaining positions are filled with the likeliest completion; None for no
        bound.
    most_states : int
        Most states of a lattice, see `infill_check`; beyond, it is narrowed.
    most_builds : int
        How often a narrowed lattice is built again.

    Returns
    -------
    MaskedOutcome
        A text of the language, always.

    Raises
    ------
    UnsatisfiableError
        If no completion is in the language.
    LimitError
        If no completion was found within `most_states`.
    TypeError, ArgumentError
        If an argument is not what it should be, or the model returns something else than log-probabilities.
    """
    check_constraint(constraint)
    check_type("model", model, MaskedLanguageModel, "it must have a method logprobs, see infilling.MaskedLanguageModel")
    if isinstance(rng, type) or not (hasattr(rng, "random") and hasattr(rng, "integers")):
        raise TypeError(f"rng is {describe_value(rng)}: give numpy.random.default_rng(seed)")
    check_choice("order", order, ("confident", "random", "left_to_right"))
    check_type("temperature", temperature, Real, "it is a number of 0 or more")
    settings = _Settings(
        rng=rng,
        order=order,
        block=None if block is None else check_count("block", block, 1),
        proposal=Proposal(temperature),
        most_states=check_count("most_states", most_states, 1),
        most_builds=check_count("most_builds", most_builds, 1),
    )
    per_call = check_count("per_call", per_call, 1)
    calls = None if most_calls is None else check_count("most_calls", most_calls)
    canvas = _Canvas(_read_positions(spans, constraint), constraint, settings)
    canvas.build()
    while canvas.unknown and (calls is None or canvas.outcome.model_calls < calls):
        rows = canvas.call(model)
        canvas.rebuild(rows)
        for position, pick in canvas.rank(rows)[:per_call]:
            canvas.accept(position, pick, rows)
    return canvas.finish()


@dataclass(frozen=True, slots=True)
class _Settings:
    """The checked arguments of `decode_masked`."""

    rng: np.random.Generator
    order: Order
    block: int | None
    proposal: Proposal
    most_states: int
    most_builds: int


def _read_positions(spans: Iterable[Span], constraint: Constraint) -> list[TokenPositions]:
    """Return the segments of a sequence of tokens. Raise ArgumentError for gaps of unknown length."""
    out: list[TokenPositions] = []
    for one in read_spans(spans, constraint.vocabulary):
        if isinstance(one, KnownText):
            tokens = tuple(constraint.vocabulary.tokenize(one.data))
            out.append(TokenPositions(tokens, len(tokens)))
        elif isinstance(one, TextGap) or one.low < len(one.known):
            raise ArgumentError(
                "a masked model has a fixed number of positions, and a gap does not say how many it takes",
                hint="Use Gap.tokens(count); the last gap of a text may be longer than needed.",
            )
        else:
            out.append(one)
    return out


class _Canvas:
    """The sequence while it is decoded. unknown: the unknown positions, ascending."""

    def __init__(self, segments: list[TokenPositions], constraint: Constraint, settings: _Settings) -> None:
        self.segments, self.constraint, self.settings = segments, constraint, settings
        self.tokens: list[int | None] = [token for one in segments for token in one.known]
        self.unknown = [index for index, token in enumerate(self.tokens) if token is None]
        self.gaps = len(self.unknown)
        self.outcome = MaskedOutcome()
        self.rows: NDArray[np.floating[Any]] | None = None  # the model's last prediction

    def build(self) -> None:
        """Build the first lattice: of all completions, or narrowed."""
        self.outcome.builds = 1
        try:
            lattice = PositionLattice.build(self.constraint, self.segments, self.settings.most_states)
        except LimitError:
            lattice = PositionLattice.build(self.constraint, self.segments, self.settings.most_states, beyond="narrow")
        if not lattice.is_possible:
            if lattice.is_exact:
                raise UnsatisfiableError(
                    f"no text of the constraint fits into these {len(self.tokens)} positions",
                    hint="Give more positions, or check the known parts with constrain.infill_check.",
                )
            raise LimitError(
                "No completion was found within most_states.", hint="Raise most_states, or make fewer tokens unknown."
            )
        self.lattice, self.outcome.is_exact = lattice, lattice.is_exact

    def rebuild(self, rows: NDArray[np.floating[Any]]) -> None:
        """Build a narrowed lattice again, at even intervals: more is known now, and `rows` say what the model prefers.

        It keeps a completion of the earlier one.
        """
        share = 1 - (self.outcome.builds - 1) / self.settings.most_builds
        if self.lattice.is_exact or self.outcome.builds > self.settings.most_builds:
            return
        if len(self.unknown) > share * self.gaps:
            return
        self.outcome.builds += 1
        tokens = iter(self.tokens)
        segments = [replace(one, known=tuple(islice(tokens, len(one.known)))) for one in self.segments]
        preferred = [np.argsort(row)[-PREFERRED:].astype(np.int64) for row in rows]
        try:
            lattice = PositionLattice.build(
                self.constraint,
                segments,
                self.settings.most_states,
                beyond="narrow",
                earlier=self.lattice,
                preferred=preferred,
            )
        except LimitError:  # The state cache is full: the earlier lattice goes on.
            return
        if lattice.is_possible:
            self.lattice = lattice

    def call(self, model: MaskedLanguageModel) -> NDArray[np.floating[Any]]:
        """Return the model's rows: float [positions, V]. Raise ArgumentError if they are something else."""
        self.outcome.model_calls += 1
        rows, size = np.asarray(model.logprobs(tuple(self.tokens))), self.constraint.vocabulary.size
        if rows.ndim != 2 or len(rows) != len(self.tokens) or rows.shape[1] < size or rows.dtype.kind != "f":
            raise ArgumentError(
                f"the model returned {rows.dtype}{list(rows.shape)} for {len(self.tokens)} positions: it must return "
                f"floats, one row of at least {size} log-probabilities for each position"
            )
        self.rows = rows
        return rows

    def rank(self, rows: NDArray[np.floating[Any]]) -> list[tuple[int, Pick | None]]:
        """Return the positions that may become known now, the next one first, and the tokens drawn for them so far."""
        block, order = self.settings.block, self.settings.order
        limit = len(self.tokens) if block is None else (self.unknown[0] // block + 1) * block
        some = [position for position in self.unknown if position < limit]
        if order == "confident":
            picks = [(position, self.pick(position, rows)) for position in some]
            return [*sorted(picks, key=lambda one: -one[1].logprob)]
        listed = some if order == "left_to_right" else self.settings.rng.permutation(some).tolist()
        return [(position, None) for position in listed]

    def pick(self, position: int, rows: NDArray[np.floating[Any]]) -> Pick:
        """Draw a token for a position under its mask."""
        mask, ends = self.lattice.position_mask(position), self.constraint.vocabulary.eos_ids
        pick = pick_under(rows[position], mask, self.settings.rng, self.settings.proposal, ends)
        assert pick is not None, "a lattice with a completion has a token at every position"
        return pick

    def accept(self, position: int, pick: Pick | None, rows: NDArray[np.floating[Any]]) -> None:
        """Make a position known. If its mask has changed since a token was drawn, another one may be drawn."""
        mask = self.lattice.position_mask(position)
        if pick is None or not mask[pick.token >> 5] >> (pick.token & 31) & 1:
            pick = self.pick(position, rows)
        token = pick.token
        if pick.logmass == -np.inf:  # The model excludes all tokens that are possible.
            token = self.complete()[position]
            self.outcome.closing_tokens += 1
        self.outcome.logprob += pick.logprob
        self.outcome.log_mass += pick.logmass
        self.put(position, token)

    def put(self, position: int, token: int) -> None:
        """Make a position known."""
        self.lattice.choose(position, token)
        self.tokens[position] = token
        self.unknown.remove(position)
        self.outcome.order.append(position)

    def complete(self) -> list[int]:
        """Return the tokens of one completion."""
        pieces = self.lattice.trace_completion().pieces
        return [piece for piece in pieces if isinstance(piece, int)]

    def finish(self) -> MaskedOutcome:
        """Fill what is still unknown with the likeliest completion under the last prediction, and return the result."""
        if self.unknown:
            self.outcome.closing_tokens += len(self.unknown)
            tokens, _ = (self.complete(), 0.0) if self.rows is None else find_likeliest(self.lattice, self.rows)
            for position in [*self.unknown]:
                token = tokens[position]
                assert token is not None, "no position of a sequence is absent"
                self.put(position, token)
        self.outcome.tokens = [token for token in self.tokens if token is not None]
        self.outcome.data = self.constraint.vocabulary.transcript(self.outcome.tokens)
        return self.outcome
