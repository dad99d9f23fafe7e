"""Write one field of a longer text: the model continues given tokens until a constraint has its longest match.

A field is followed by text that is not known yet, so no end token marks its end. The model simply continues: the field
is the longest prefix of the continuation that the constraint L accepts (maximal munch), and what was written beyond it
is discarded. With h the bytes of tokens that were taken back before the field (see `prompt_healing`), the law of the
field is

    P(w) proportional to p(the continuation begins with h, and the longest prefix in L of what follows is w)

where p is the model after the kept tokens, and an end token ends the continuation. Tokens may cross both borders: their
beginning may spell h, and their end what follows the field. The mask is that of the language h L followed by anything;
a second Matcher, of h L alone, finds the longest match and stops as soon as no longer one is possible.

Masked sampling draws from this law up to the weight exp(log_weight), the product of the masses that the masks left:
E[exp(log_weight) f(w)] = sum over w of P'(w) f(w), with P' the unnormalised probability above.

With a stop text, L is the texts of the constraint before the first occurrence of the stop text, which the model has to
write as well; it is not part of the field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..base.errors import TokenRefused, UnsatisfiableError
from ..compilation.constraint_compiler import compile_grammar
from ..engine.length_limits import TokenLimit
from ..forms.sources import free_text
from ..grammar.grammar_dfa import to_dfa
from ..grammar.intersection import intersect_grammar
from ..grammar.merged_rules import MergedRules
from ..grammar.nodes import Free, Grammar, Literal as LiteralBytes, Sequence as NodeSequence
from ..sampling.core.language_model import LanguageModel, rows_after
from ..sampling.core.masked_sampling import PLAIN, Pick, Proposal, allowed_tokens, pick_token
from .token_budget import Closing

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..engine.matcher import Matcher

__all__ = ["FieldConstraint", "WrittenField", "build_field_constraint", "write_field"]

DRAFT = 64
"""Most forced tokens that the model is asked about ahead of time."""
TRIES = 8
"""Most tokens tried at one step when the budget is tight, before the known completion is written out."""


@dataclass(frozen=True, slots=True, eq=False)
class FieldConstraint:
    """The languages of a field: `open` is h L followed by anything, `closed` is h L. before, after: number of bytes of
    h, and of the stop text at the end of L.
    """

    open: Constraint
    closed: Constraint
    before: int
    after: int


@dataclass(slots=True)
class WrittenField:
    """A written field.

    tokens: all tokens that the model wrote, those beyond the field included, without an end token. data: the bytes of
    the field. kept: number of tokens that end within the field; rest: the bytes of the field after these. logprob: of
    the tokens, in nats. log_weight: see the module. finish_reason: "budget" if the budget changed the field. calls:
    number of calls of the model.
    """

    tokens: list[int]
    data: bytes = b""
    kept: int = 0
    rest: bytes = b""
    logprob: float = 0.0
    log_weight: float = 0.0
    finish_reason: Literal["complete", "budget"] = "complete"
    calls: int = 0


def build_field_constraint(constraint: Constraint, prefix: bytes, stop: str = "") -> FieldConstraint:
    """Return the languages of a field.

    Parameters
    ----------
    constraint : Constraint
        The language of the field.
    prefix : bytes
        The bytes h of the tokens taken back before the field; whole characters.
    stop : str
        The text that ends the field; "" for none.

    Returns
    -------
    FieldConstraint

    Raises
    ------
    UnsatisfiableError
        If every text of the constraint contains the stop text.
    UnsupportedError
        If a constraint with a stop text cannot be intersected with a regular language.
    """
    grammar, vocabulary, limits = constraint.grammar, constraint.vocabulary, constraint.limits
    if stop:
        grammar = stop_grammar(grammar, stop, limits)
    rules = MergedRules([grammar])
    parts = (LiteralBytes(prefix), rules.start(0)) if prefix else (rules.start(0),)
    closed = compile_grammar(Grammar(NodeSequence(parts), rules), vocabulary, limits)
    opened = compile_grammar(Grammar(NodeSequence((*parts, Free())), rules), vocabulary, limits)
    return FieldConstraint(opened, closed, len(prefix), len(stop.encode()))


def stop_grammar(grammar: Grammar, stop: str, limits: Any) -> Grammar:
    """Return the texts of a grammar followed by the first occurrence of a stop text."""
    rules = MergedRules([grammar])
    stopped = Grammar(NodeSequence((rules.start(0), LiteralBytes(stop.encode()))), rules)
    first = to_dfa(free_text(until=stop).grammar(limits), "stop=", limits)
    product = intersect_grammar(stopped, first, limits)
    if product is None:
        raise UnsatisfiableError(
            f"every text of the constraint contains the stop text {stop!r}", hint="Give another stop text."
        )
    return product


def write_field(
    lm: LanguageModel,
    field: FieldConstraint,
    tokens: list[int],
    *,
    rng: np.random.Generator,
    limit: TokenLimit,
    proposal: Proposal = PLAIN,
) -> WrittenField:
    """Write one field after given tokens by masked sampling.

    Parameters
    ----------
    lm : LanguageModel
    field : FieldConstraint
        The languages of the field.
    tokens : list of int
        The text so far, without the tokens that were taken back.
    rng : numpy.random.Generator
        The only source of randomness.
    limit : TokenLimit
        Most tokens that the model writes. A field that would take more is closed early.
    proposal : Proposal
        How a token is chosen among the allowed ones.

    Returns
    -------
    WrittenField

    Raises
    ------
    LimitError
        If the shortest field does not fit in the limit.
    """
    return FieldWriter(lm, field, tokens, rng, limit, proposal).run()


class FieldWriter:
    """The state of one field: a Matcher for the mask, one for the longest match, a completion for the budget."""

    def __init__(
        self,
        lm: LanguageModel,
        field: FieldConstraint,
        tokens: list[int],
        rng: np.random.Generator,
        limit: TokenLimit,
        proposal: Proposal,
    ) -> None:
        self.lm, self.field, self.before, self.rng = lm, field, tokens, rng
        self.limit, self.proposal = limit, proposal
        self.vocabulary = field.open.vocabulary
        self.matcher: Matcher = field.open.matcher()
        self.match: Matcher = field.closed.matcher()
        # The invariant of Closing counts an end token, which a field does not have.
        self.closing = Closing(self.vocabulary, self.matcher, limit.most + 1)
        self.out = WrittenField([])
        self.length = 0
        self.longest = 0 if self.match.is_complete else -1
        self.rows: list[NDArray[np.floating[Any]]] = []
        self.draft: list[int] = []

    def run(self) -> WrittenField:
        """Write tokens until no longer match is possible, then cut the field out of them."""
        while not self.match.is_finished:
            choice = self.choose() if len(self.out.tokens) < self.limit.most else None
            if choice is None:
                self.close()
                break
            self.out.logprob += choice.logprob
            self.out.log_weight += choice.logprob - choice.logproposal
            if choice.token in self.vocabulary.eos_ids or not self.take(choice.token):
                break
        self.cut()
        return self.out

    def next_row(self) -> NDArray[np.floating[Any]]:
        """Return the model's row after the tokens so far, asked for together with the rows along a forced run."""
        if not self.rows:
            most = min(DRAFT, max(0, self.limit.most - len(self.out.tokens) - 1))
            self.draft = self.match.forced_tokens()[:most]
            text = self.before + self.out.tokens
            prefixes = [text + self.draft[:k] for k in range(len(self.draft) + 1)]
            self.rows = list(rows_after(self.lm, prefixes, self.vocabulary.size))
            self.out.calls += 1
        return self.rows.pop(0)

    def choose(self) -> Pick | None:
        """Sample a token that leaves room for a completion, and advance the Matcher of the mask with it. None if there
        is no such token.
        """
        row, ends = self.next_row(), self.vocabulary.eos_ids
        allowed = allowed_tokens(self.matcher.mask(None))
        remaining = self.limit.most - len(self.out.tokens)
        for _ in range(TRIES):
            if not len(allowed):
                return None
            choice = pick_token(row, allowed, self.rng, self.proposal, ends)
            if choice.token in ends:
                return choice
            self.matcher.advance(choice.token)
            if self.closing.follow(self.matcher, choice.token, remaining):
                return choice
            self.matcher.rollback(1)
            allowed = allowed[allowed != choice.token]
            self.out.finish_reason = "budget"
        return None

    def take(self, token: int) -> bool:
        """Append a token and extend the match by its bytes. Return whether a longer match is still possible."""
        self.out.tokens.append(token)
        if self.draft and self.draft[0] == token:
            self.draft.pop(0)
        else:
            self.draft, self.rows = [], []
        for byte in self.vocabulary.spelled(token):
            try:
                self.match.advance_bytes(bytes((byte,)))
            except TokenRefused:
                return False
            self.length += 1
            if self.match.is_complete:
                self.longest = self.length
        return True

    def close(self) -> None:
        """End the field because of the budget: append the known completion, whatever its probability."""
        self.out.finish_reason = "budget"
        if self.closing.data is None:
            raise self.limit.make_error(
                f"a field did not end within {self.limit.name}, and no tokens spell a completion",
                f"{self.limit.cure.capitalize()}.",
            )
        self.rows = []
        for token in self.closing.tokens():
            row = self.next_row() if not self.rows else self.rows.pop(0)
            self.out.logprob += float(row[token])
            self.out.log_weight += float(row[token])
            self.matcher.advance(token)
            self.take(token)

    def cut(self) -> None:
        """Set the bytes of the field, and which tokens are within it."""
        out, end = self.out, self.longest - self.field.after
        data = b"".join(self.vocabulary.spelled(token) for token in out.tokens)
        out.data = data[self.field.before : end]
        position = 0
        for token in out.tokens:
            after = position + len(self.vocabulary.spelled(token))
            if after > end:
                break
            out.kept, position = out.kept + 1, after
        out.rest = data[position:end]
