"""The arguments of `generate` that choose tokens, as a `TokenChoice`; and the end tokens of a call.

Numbers are checked before a model is loaded, names of tokens once its vocabulary is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast, get_args

from ..base.errors import ArgumentError, ConstrainError, check_choice, check_type
from ..decoding.logit_adjustment import LogitAdjustment, check_bias
from ..decoding.stop_strings import as_stop_strings
from ..decoding.token_choice import ForcedText, TokenChoice
from ..sampling.core.masked_sampling import Proposal
from ..vocabulary.vocabulary import Vocabulary

__all__ = ["build_proposal", "build_token_choice", "find_biased_tokens", "replace_end_tokens"]

TokenBiases = Mapping[int | str, float]


def build_proposal(temperature: float, top_k: int | None, top_p: float | None, min_p: float | None = None) -> Proposal:
    """Make the Proposal; raise ConstrainError for invalid values."""
    try:
        return Proposal(temperature, top_k, top_p, min_p)
    except (TypeError, ValueError) as error:
        raise ConstrainError(str(error)) from error


def build_token_choice(
    proposal: Proposal,
    *,
    repetition_penalty: float = 1.0,
    presence_penalty: float = 0.0,
    frequency_penalty: float = 0.0,
    logit_bias: TokenBiases | None = None,
    stop: object = None,
    forced: object = "sample",
) -> TokenChoice:
    """Make the TokenChoice of the arguments, without the biases that are given by text (`find_biased_tokens`).

    Raise TypeError or ArgumentError, which names the argument.
    """
    check_type("logit_bias", {} if logit_bias is None else logit_bias, Mapping, "give a dict of biases by token")
    for token, bias in (logit_bias or {}).items():
        if isinstance(token, str):
            check_bias(token, bias)
    by_id = {token: bias for token, bias in (logit_bias or {}).items() if not isinstance(token, str)}
    adjustment = LogitAdjustment(repetition_penalty, presence_penalty, frequency_penalty, by_id)
    check_choice("forced", forced, get_args(ForcedText))
    return TokenChoice(proposal, adjustment, as_stop_strings(stop), cast(ForcedText, forced))


def find_biased_tokens(choice: TokenChoice, logit_bias: TokenBiases | None, vocabulary: Vocabulary) -> TokenChoice:
    """Return the TokenChoice with the biases that are given by text: those of all tokens with this text or name.

    Raise ArgumentError for an unknown token, and for a text that is not one token.
    """
    biases = dict(choice.adjustment.logit_bias)
    for text, bias in (logit_bias or {}).items():
        if isinstance(text, str):
            for token in find_tokens(text, vocabulary):
                biases[token] = biases.get(token, 0.0) + bias
    adjustment = replace(choice.adjustment, logit_bias=biases)
    adjustment.check_tokens(vocabulary.size)
    return replace(choice, adjustment=adjustment)


def find_tokens(text: str, vocabulary: Vocabulary) -> list[int]:
    """Return the ids of the tokens of a text, or of the special token of that name."""
    if text in vocabulary.special:
        return [vocabulary.special[text]]
    data = text.encode("utf-8", "surrogatepass")
    found = [index for index, token in enumerate(vocabulary.tokens) if token == data] if data else []
    if not found:
        raise ArgumentError(
            f"logit_bias has the text {text!r}, which is not one token of the vocabulary",
            hint="Give the ids of its tokens, or a text that is one token, with its leading space if it has one.",
        )
    return found


def replace_end_tokens(vocabulary: Vocabulary, eos_ids: Iterable[int] | None) -> Vocabulary:
    """Return a Vocabulary whose texts end with other tokens; None keeps those that it has.

    A former end token is a special token then, which only a grammar that names it allows. Raise TypeError or
    VocabularyError for ids that are not token ids, or if there are none.
    """
    if eos_ids is None:
        return vocabulary
    return Vocabulary.from_tokens(
        vocabulary.tokens, eos_ids, special=vocabulary.special, encode=vocabulary.encode,
        encode_prompt=vocabulary.encode_prompt, leading_space=vocabulary.leading_space, name=vocabulary.name,
    )  # fmt: skip
