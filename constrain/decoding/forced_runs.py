"""Forced runs: append text that the constraint forces with the tokens that the tokenizer itself would choose.

Where the constraint forces the next bytes, the lossless loop still samples their tokens from the model's rows, since
the model may prefer another tokenisation of the same bytes. A forced run appends them without sampling (jump-forward
decoding with retokenisation, Zheng et al. 2024, SGLang, section 4), with token healing at both edges:

- Left edge. The last token and the forced bytes are tokenised together. If the tokenizer merges the last token into a
  longer one, that one replaces it; otherwise the last token stays and the forced bytes are tokenised by themselves.
- Right edge. Tokens at the end of the run that the tokenizer could merge with the free text after it are left out (see
  `prompt_healing`): the constraint still forces their bytes, so the next token is sampled among those that begin with
  them.

*What changes.* Let q be the law of token strings of the sampled loop, q' that of the loop with runs. A run is a
function of the tokens before it. So a step of the second loop goes from a state u, by a sampled token a, to the state
x = run(u a), and with a' the first token of x after u,

    q'(x | u) = sum of q(a | u) over the tokens a with run(u a) = x

These are a' itself and tokens whose bytes are a proper prefix of those of a': only by these is a token replaced
(`list_merging_tokens` finds them). Each final token string y therefore has one history, and its q'(y) is computed
exactly: log_weight = log p(y) / q'(y) is properly weighted for p restricted to the constraint and to token strings
whose forced runs are canonical. `stats.forced_logprob` is log q(y) / q'(y) <= 0, the log-probability that sampling
would have made the same choices. Because q <= q' for all y that q' can write, the total variation distance of the two
laws is

    1 - E'[exp(forced_logprob)]

It is 0 where the model gives all mass of the forced bytes to the tokenizer's own tokens. A tight token budget changes
both laws in ways that are not part of these sums (finish_reason "budget").

*Scored or not.* To sum these probabilities, the model has to return a row of logits for each token of a run: its last
layer and its normalisation for tokens that are known already. Runs that are not scored are fed like a prompt, and what
is written has the law q' all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from .prompt_healing import count_open_tokens

if TYPE_CHECKING:
    from ..engine.matcher import Matcher
    from ..vocabulary.vocabulary import Vocabulary
    from .token_budget import Closing

__all__ = ["NO_RUN", "ForcedRun", "fits_budget", "list_merging_tokens", "plan_forced_run"]


@dataclass(frozen=True, slots=True)
class ForcedRun:
    """A forced run after a text.

    taken_back: number of tokens to remove from the end of the text, 0 or 1. tokens: what is appended then; none if
    there is no run. open_tokens: how the tokenizer would spell the forced bytes that the run leaves out; these tokens
    are sampled, and a good draft of what is.
    """

    taken_back: int
    tokens: tuple[int, ...]
    open_tokens: tuple[int, ...] = field(default=(), compare=False)


NO_RUN = ForcedRun(0, ())


def plan_forced_run(matcher: Matcher, vocabulary: Vocabulary, last: int | None) -> ForcedRun:
    """Return the forced run after a text.

    Parameters
    ----------
    matcher : Matcher
        The position after the text. It is left as it is.
    vocabulary : Vocabulary
        The tokens.
    last : int or None
        The last token of the text, which the run may replace by a longer one; None if it must not.

    Returns
    -------
    ForcedRun
    """
    data = matcher.forced()
    if not data:
        return NO_RUN
    taken_back, tokens = join_forced_bytes(vocabulary, last, data)
    end = matcher.fork()
    end.advance_bytes(data)
    if end.is_finished or not tokens or tokens[-1] in vocabulary.names:
        return ForcedRun(taken_back, tuple(tokens))
    kept = len(tokens) - count_open_tokens(vocabulary, tokens)
    if kept:
        return ForcedRun(taken_back, tuple(tokens[:kept]), tuple(tokens[kept:]))
    return ForcedRun(0, (), tuple(vocabulary.tokenize(data) if taken_back else tokens))


def join_forced_bytes(vocabulary: Vocabulary, last: int | None, data: bytes) -> tuple[int, list[int]]:
    """Return how many tokens are taken back, 0 or 1, and the tokens of the bytes after them."""
    before = b"" if last is None else vocabulary.tokens[last] or b""
    if before:
        joined = vocabulary.tokenize(before + data)
        first = vocabulary.tokens[joined[0]] or b""
        if joined[0] == last:
            return 0, joined[1:]
        if len(first) > len(before):
            return 1, joined
    return 0, vocabulary.tokenize(data)


def list_merging_tokens(matcher: Matcher, vocabulary: Vocabulary, first: int, rest: tuple[int, ...]) -> list[int]:
    """Return the tokens, other than `first`, that a forced run turns into `first` and `rest`.

    Parameters
    ----------
    matcher : Matcher
        The position before `first`. It is left as it is.
    vocabulary : Vocabulary
        The tokens.
    first : int
        A token.
    rest : tuple of int
        The tokens of the run after `first`; empty if there is none.

    Returns
    -------
    list of int
    """
    shorter = shorter_tokens(vocabulary)[first]
    if not shorter:
        return []
    here, found = matcher.state[1], list[int]()
    states = matcher.states_after(shorter).tolist()
    is_free = here in states and not matcher.forced()  # as within a string, which most tokens leave where it is
    for token, state in zip(shorter, states):
        if state > 0 and not (is_free and state == here):
            matcher.advance(token)
            run = plan_forced_run(matcher, vocabulary, token)
            matcher.rollback(1)
            if run == ForcedRun(1, (first, *rest)):
                found.append(token)
    return found


class ShorterTokens(dict[int, tuple[int, ...]]):
    """For each token, those whose bytes begin its bytes and are fewer; listed when they are first asked for."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.tokens = vocabulary.tokens
        self.by_bytes: dict[bytes, list[int]] = {}
        for index, token in enumerate(self.tokens):
            if token:
                self.by_bytes.setdefault(token, []).append(index)

    def __missing__(self, token: int) -> tuple[int, ...]:
        spelled = self.tokens[token] or b""
        starts = (spelled[:length] for length in range(1, len(spelled)))
        self[token] = tuple(index for start in starts for index in self.by_bytes.get(start, ()))
        return self[token]


@lru_cache(maxsize=4)
def shorter_tokens(vocabulary: Vocabulary) -> ShorterTokens:
    """Return the table of shorter tokens of a vocabulary."""
    return ShorterTokens(vocabulary)


def fits_budget(closing: Closing, matcher: Matcher, tokens: tuple[int, ...], remaining: int) -> bool:
    """Return whether a text that continues with `tokens` can still be closed. Neither argument is changed.

    remaining: how many more tokens the text may have, end token included.
    """
    if len(tokens) >= remaining:
        return False
    before, trial = (closing.data, closing.spelled, closing.lost), matcher.fork()
    fits = True
    for number, token in enumerate(tokens, 1):
        trial.advance(token)
        if not closing.follow(trial, token, remaining - number):
            fits = False
            break
    closing.data, closing.spelled, closing.lost = before
    return fits
