"""Models behind an API in the shape of OpenAI's: chat completions, and completions, which can continue a text.

    remote = RemoteModel(openai.OpenAI(base_url=...), "some-model")

The client is an `openai.OpenAI`, or any object with its methods `chat.completions.create` and `completions.create`; it
is given, so that keys, time limits and retries of connections are its own business, and nothing is imported here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ..base.errors import ArgumentError, ConstrainError, check_choice, check_type, describe_value, shorten_text

__all__ = ["RemoteAnswer", "RemoteModel", "RemoteToken"]

Prompt = Any
"""A text, or chat messages."""


class RemoteToken(NamedTuple):
    """One token of an answer.

    data: its bytes. logprob: in nats. alternatives: the likeliest tokens at its place, itself often among them, as
    pairs of bytes and log-probability.
    """

    data: bytes
    logprob: float
    alternatives: tuple[tuple[bytes, float], ...] = ()


class RemoteAnswer(NamedTuple):
    """An answer. tokens: if log-probabilities were requested. is_ended: whether the model ended the text itself."""

    text: str
    tokens: tuple[RemoteToken, ...] = ()
    is_ended: bool = True


@dataclass(frozen=True)
class RemoteModel:
    """A model behind an API in the shape of OpenAI's.

    Parameters
    ----------
    client : object
        An `openai.OpenAI`, or an object with the same methods.
    name : str
        The name of the model.
    api : {"chat", "completions"}
        The endpoint. Only "completions" can continue a text that has begun.
    options : mapping
        Further arguments of every request, such as temperature or response_format.
    """

    client: Any = field(repr=False)
    name: str
    api: Literal["chat", "completions"] = "chat"
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_type("name", self.name, str, "give the name of the model")
        check_choice("api", self.api, ("chat", "completions"))
        check_type("options", self.options, Mapping, "give a dict of arguments of a request")
        endpoint = getattr(self.client, "chat", None) if self.api == "chat" else self.client
        if not hasattr(getattr(endpoint, "completions", None), "create"):
            method = "chat.completions.create" if self.api == "chat" else "completions.create"
            raise ConstrainError(
                f"client is {describe_value(self.client)}, which has no {method}", hint="Give an openai.OpenAI."
            )

    def answer(self, prompt: Prompt, max_tokens: int, **more: Any) -> RemoteAnswer:
        """Request one answer. more: further arguments of this request.

        Raises
        ------
        ConstrainError
            If the answer has not the expected shape. Errors of the client are raised as they are.
        """
        if self.api == "completions":
            return self.continue_text(str(prompt), max_tokens, **more)
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else list(prompt)
        reply = self.client.chat.completions.create(
            model=self.name, messages=messages, max_tokens=max_tokens, **{**self.options, **more}
        )
        choice = first_choice(reply)
        text = getattr(getattr(choice, "message", None), "content", None)
        if not isinstance(text, str):
            raise ConstrainError(f"the model {shorten_text(self.name)} answered without a text")
        return RemoteAnswer(text, (), getattr(choice, "finish_reason", "stop") != "length")

    def continue_text(self, text: str, max_tokens: int, alternatives: int | None = None, **more: Any) -> RemoteAnswer:
        """Request a continuation of a text. alternatives: number of log-probabilities at each place, if any."""
        if self.api != "completions":
            raise ArgumentError(
                "a chat endpoint cannot continue a text that has begun",
                hint='Give RemoteModel(..., api="completions").',
            )
        wanted = {} if alternatives is None else {"logprobs": alternatives}
        reply = self.client.completions.create(
            model=self.name, prompt=text, max_tokens=max_tokens, **{**self.options, **wanted, **more}
        )
        choice = first_choice(reply)
        if not isinstance(getattr(choice, "text", None), str):
            raise ConstrainError(f"the model {shorten_text(self.name)} answered without a text")
        found = getattr(choice, "logprobs", None)
        tokens = () if found is None else read_tokens(found)
        return RemoteAnswer(choice.text, tokens, getattr(choice, "finish_reason", "stop") != "length")


def first_choice(reply: Any) -> Any:
    """Return the first choice of a reply."""
    choices = getattr(reply, "choices", None)
    if not isinstance(choices, Sequence) or not choices:
        raise ConstrainError(f"the reply of the client is {describe_value(reply)}, which has no choices")
    return choices[0]


def read_tokens(found: Any) -> tuple[RemoteToken, ...]:
    """Return the tokens of the `logprobs` of a completion: texts, log-probabilities and the likeliest at each place."""
    texts, logs = list(getattr(found, "tokens", None) or ()), list(getattr(found, "token_logprobs", None) or ())
    tops = list(getattr(found, "top_logprobs", None) or [None] * len(texts))
    if not len(texts) == len(logs) == len(tops):
        raise ConstrainError("the log-probabilities of the reply do not have one entry for each token")
    tokens = []
    for text, logprob, top in zip(texts, logs, tops):
        others = tuple((spell_token(other), float(value)) for other, value in (top or {}).items())
        tokens.append(RemoteToken(spell_token(text), -math.inf if logprob is None else float(logprob), others))
    return tuple(tokens)


def spell_token(text: str) -> bytes:
    """Return the bytes of a token of a completion; incomplete characters are written as ``bytes:\\\\xe2\\\\x82``."""
    if text.startswith("bytes:"):
        try:
            return text[len("bytes:") :].encode("latin-1").decode("unicode_escape").encode("latin-1")
        except (UnicodeDecodeError, UnicodeEncodeError):
            return text.encode()
    return text.encode("utf-8", "replace")
