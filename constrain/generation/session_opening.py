"""`session`, and the models that sessions run on: one of their own, or slots of an Engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.errors import ConstrainError
from ..base.keyword_names import explain_keywords
from ..integrations.transformers_models import LoadedModel, Prompt, is_encoder_decoder
from ..sampling import LanguageModel
from ..vocabulary.vocabulary import Vocabulary
from .model_preparation import resolve_model
from .prompt_composition import compose_prompt
from .text_session import Session

__all__ = ["begin_session", "session"]


@explain_keywords
def session(
    model: Any, prompt: Prompt = None, *, tokenizer: Any = None, seed: int | None = None, max_tokens: int = 512
) -> Session:
    """Start a session: a text in which fixed parts, constrained fields and Python decisions alternate.

    Parameters
    ----------
    model : object
        As for `generate`.
    prompt : str, list of messages, token ids, optional
        As for `generate`. Its last tokens may be taken back, so that the text continues it across token boundaries.
    tokenizer : object, optional
        The tokenizer or Vocabulary of the model.
    seed : int, optional
        The same seed and the same program give the same text.
    max_tokens : int
        Maximum number of tokens of a field.

    Returns
    -------
    Session
        Also a context manager.

    Raises
    ------
    ConstrainError
        If an argument is invalid or the model cannot be loaded.

    Examples
    --------
    >>> with constrain.session("demo", "Describe a person.") as s:
    ...     s.text("Name: ")
    ...     name = s.write("name", regex="[A-Z][a-z]+")
    """
    loaded = resolve_model(model, tokenizer)
    if not isinstance(loaded, LoadedModel):
        return begin_session(loaded, tokenizer, prompt, lambda _: loaded, seed=seed, max_tokens=max_tokens)
    return begin_session(loaded, loaded.vocabulary, prompt, loaded.on, seed=seed, max_tokens=max_tokens)


def begin_session(
    model: LoadedModel | LanguageModel, vocabulary: Vocabulary, prompt: Prompt,
    open_model: Callable[[Any], LanguageModel], *, seed: int | None, max_tokens: int,
) -> Session:  # fmt: skip
    """Return a session. Raise ConstrainError if the prompt is invalid.

    open_model: returns the model after a prompt, which is a text or a list of token ids.
    """
    if not isinstance(model, LoadedModel):
        if prompt is not None:
            raise ConstrainError(
                "prompt= was given with a LanguageModel, which holds its own prompt", hint="Leave prompt= out."
            )
        return Session(open_model(None), vocabulary, seed=seed, max_tokens=max_tokens)
    composed = compose_prompt(prompt, None, model, chat="plain", template=None)
    ids = model.prompt_ids(composed)
    kept = len(ids) if is_encoder_decoder(model.model) else 1  # tokens that are never taken back
    return Session(open_model(ids[:kept]), vocabulary, prompt=ids[kept:], seed=seed, max_tokens=max_tokens)
