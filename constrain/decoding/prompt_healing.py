"""Token healing: take back the tokens at the end of a given text that the tokenizer could merge with what follows.

A prompt is tokenised as if the text ended there. Where it does not end at a token boundary of the whole text ("http:"
before "//", a space before a word), the model is made to continue from tokens that it has never seen there. Token
healing (Lundberg 2023, "The Art of Prompt Design: Prompt Boundaries and Token Healing"; `chop_tokens` of llguidance)
removes them and constrains the continuation to begin with their bytes:

    prompt ids  ->  kept ids, prefix: the bytes of the ids taken back
    constraint L  ->  prefix L, compiled as any other constraint: its masks spell the prefix in every possible way

*The distribution.* With p(x | kept) the model's distribution of token strings x after the kept ids, healed texts follow

    p(x | kept, the bytes of x are the prefix and a text of L)

as far as the sampler follows p given a constraint at all. Masked sampling records the difference as for every other
constraint: the mass that the masks leave while the prefix is spelled is part of `log_weight`, whose exponential is an
unbiased estimate of the probability, given the kept ids, that the text continues with the prefix and a text of L.

*What is taken back.* Let s be the bytes of the last k tokens. The tokenizer could merge them with what follows only if
some token begins with s and is longer. The largest such k is taken back, at least as far as the start of a character.
Special tokens are never taken back, nor anything before them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from ..base.options import Limits
from ..compilation.constraint_compiler import compile_grammar
from ..grammar.merged_rules import MergedRules
from ..grammar.nodes import Free, Grammar, Literal, Sequence as NodeSequence

if TYPE_CHECKING:
    from ..engine.constraint import Constraint
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["HealedPrompt", "count_open_tokens", "heal_prompt", "prepend_bytes", "retokenize_border"]


@dataclass(frozen=True, slots=True)
class HealedPrompt:
    """A prompt whose last tokens were taken back.

    kept: the ids that remain. prefix: the bytes of those taken back, with which the continuation has to begin.
    """

    kept: tuple[int, ...]
    prefix: bytes


@lru_cache(maxsize=4)
def sort_tokens(vocabulary: Vocabulary) -> tuple[bytes, ...]:
    """Return the bytes of all ordinary tokens in ascending order, each once."""
    return tuple(sorted({token for token in vocabulary.tokens if token}))


def has_longer_token(vocabulary: Vocabulary, data: bytes) -> bool:
    """Return whether some token begins with `data` and is longer."""
    tokens = sort_tokens(vocabulary)
    index = bisect_right(tokens, data)
    return index < len(tokens) and tokens[index].startswith(data)


def count_open_tokens(vocabulary: Vocabulary, tokens: Sequence[int]) -> int:
    """Return how many tokens at the end the tokenizer could merge with what follows.

    Parameters
    ----------
    vocabulary : Vocabulary
    tokens : sequence of int
        The tokens of a text.

    Returns
    -------
    int
        The largest number k of last tokens such that some token begins with their bytes and is longer, raised where
        these bytes begin inside a character. 0 if there is none. Only ordinary tokens are counted.
    """
    longest, suffix, count = vocabulary.by_bytes[1][-1], b"", 0
    for number, token in enumerate(reversed(tokens), 1):
        spelled = vocabulary.tokens[token]
        if not spelled or len(suffix) >= longest:
            break
        suffix = spelled + suffix
        if has_longer_token(vocabulary, suffix):
            count = number
    return count and extend_to_character(vocabulary, tokens, count)


def extend_to_character(vocabulary: Vocabulary, tokens: Sequence[int], count: int) -> int:
    """Return `count`, raised until the bytes of the last `count` tokens do not start inside a UTF-8 character; the
    original count if they always do.
    """
    for number in range(count, len(tokens) + 1):
        spelled = vocabulary.tokens[tokens[-number]]
        if not spelled:
            break
        if spelled[0] & 0xC0 != 0x80:
            return number
    return count


def heal_prompt(vocabulary: Vocabulary, prompt: Sequence[int], least: int = 0) -> HealedPrompt:
    """Take back the tokens at the end of a prompt that the tokenizer could merge with what follows.

    Parameters
    ----------
    vocabulary : Vocabulary
    prompt : sequence of int
        The ids of the prompt.
    least : int
        Number of ids at the start that are kept in any case.

    Returns
    -------
    HealedPrompt
    """
    count = count_open_tokens(vocabulary, prompt[least:])
    kept = tuple(prompt[: len(prompt) - count])
    return HealedPrompt(kept, vocabulary.text(prompt[len(kept) :]))


def prepend_bytes(
    constraint: Constraint | None, prefix: bytes, vocabulary: Vocabulary, limits: Limits = Limits()
) -> Constraint | None:
    """Return the constraint whose texts are `prefix` and a text of `constraint`.

    Parameters
    ----------
    constraint : Constraint or None
        None allows every text.
    prefix : bytes
        Whole characters; b"" returns the constraint itself.
    vocabulary : Vocabulary
        The tokens.
    limits : Limits
        Budgets of the new constraint if `constraint` is None; otherwise those of `constraint` are used.

    Returns
    -------
    Constraint or None
    """
    if not prefix:
        return constraint
    if constraint is None:
        return compile_grammar(Grammar(NodeSequence((Literal(prefix), Free())), {}), vocabulary, limits)
    rules = MergedRules([constraint.grammar])
    start = NodeSequence((Literal(prefix), rules.start(0)))
    return compile_grammar(Grammar(start, rules), vocabulary, constraint.limits)


def retokenize_border(
    vocabulary: Vocabulary, tokens: Sequence[int], data: bytes, most: int = 1
) -> tuple[int, list[int]]:
    """Return how a text is continued with bytes by the tokens that the tokenizer itself would choose.

    The last tokens are tokenised together with the new bytes, so that they can merge with them.

    Parameters
    ----------
    vocabulary : Vocabulary
    tokens : sequence of int
        The tokens of the text so far.
    data : bytes
        What follows.
    most : int
        Number of tokens at the end that may change, at least 1; one more where they begin inside a character.

    Returns
    -------
    taken_back : int
        Number of tokens to remove from the end.
    appended : list of int
        The tokens that take their place and spell their bytes and `data`.

    Raises
    ------
    VocabularyError
        If no tokens spell `data`.
    """
    if not data:
        return 0, []
    if not tokens or not vocabulary.tokens[tokens[-1]]:
        return 0, vocabulary.tokenize(data)
    count = 1
    while count < min(most, len(tokens)) and vocabulary.tokens[tokens[-count - 1]]:
        count += 1
    count = extend_to_character(vocabulary, tokens, count)
    border = list(tokens[len(tokens) - count :])
    made = vocabulary.tokenize(vocabulary.text(border) + data)
    same = 0
    while same < min(count, len(made)) and made[same] == border[same]:
        same += 1
    return count - same, made[same:]
