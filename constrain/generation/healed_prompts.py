"""Token healing at the end of a prompt, as an option of `generate`: the checks, and the healed request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..base.errors import UnsupportedError, check_choice
from ..base.options import Limits
from ..decoding.prompt_healing import heal_prompt, prepend_bytes
from ..engine.constraint import Constraint
from ..integrations.transformers_models import LoadedModel, is_encoder_decoder
from ..sampling import LanguageModel
from ..vocabulary.vocabulary import Vocabulary

__all__ = ["HealedRequest", "check_healing", "check_healing_sampler", "heal_request"]


class HealedRequest(NamedTuple):
    """What is generated after a healed prompt.

    prompt: the token ids that are kept. constraint: the constraint with the prefix before it. prefix: the bytes of the
    ids taken back, with which every generated text begins; they are not part of the result.
    """

    prompt: list[int]
    constraint: Constraint | None
    prefix: bytes


def check_healing_sampler(heal: object, sampler: str) -> None:
    """Raise an error unless `heal` is a choice that the sampler supports."""
    check_choice("heal", heal, ("none", "prompt"))
    if heal != "none" and sampler not in ("masked", "auto"):
        raise UnsupportedError(
            f"the sampler {sampler!r} does not support heal={heal!r}",
            hint='Use sampler="masked", or compile the constraint of decoding.prompt_healing.prepend_bytes.',
        )


def check_healing(heal: object, model: LoadedModel | LanguageModel, retry_prompt: str | None) -> None:
    """Raise an error unless `heal` is a choice that the model and the other options support."""
    check_choice("heal", heal, ("none", "prompt"))
    if heal == "none":
        return
    if retry_prompt is not None:
        raise UnsupportedError(
            'heal="prompt" was given with retry_prompt=, which changes the end of the prompt',
            hint="Leave one of them out.",
        )
    if not isinstance(model, LoadedModel):
        raise UnsupportedError(
            'heal="prompt" needs the tokens of the prompt, and a LanguageModel holds its own prompt',
            hint="Take tokens back with decoding.prompt_healing.heal_prompt, or use constrain.session.",
        )
    if is_encoder_decoder(model.model):
        raise UnsupportedError(
            f'heal="prompt" was given, and {model.name} reads its prompt with an encoder: the text does not continue it'
        )


def heal_request(
    vocabulary: Vocabulary, prompt: Sequence[int], constraint: Constraint | None, limits: Limits
) -> HealedRequest:
    """Return the request after token healing. The first token of the prompt is always kept."""
    healed = heal_prompt(vocabulary, prompt, least=1)
    return HealedRequest(list(healed.kept), prepend_bytes(constraint, healed.prefix, vocabulary, limits), healed.prefix)
