"""What the model is prompted with: the prompt, the constraint if it is to be shown, and the chat template.

    prompt  --PromptTemplate-->  prompt and constraint  --chat template-->  token ids

A prompt is used unchanged unless more is requested. Messages are always rendered by the chat template of the tokenizer.
A mask enforces the constraint whether the model has seen it or not; a model that has seen it needs less enforcing, so
its texts are better and less distorted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from string import Formatter
from typing import TYPE_CHECKING, Any, cast

from .. import grammars
from ..base.errors import ArgumentError, ConstrainError, Refusal, UnsupportedError, check_type

if TYPE_CHECKING:
    from ..integrations.transformers_models import LoadedModel, Prompt
    from .generation_arguments import ConstraintRequest

__all__ = ["PromptTemplate", "add_refusals", "as_prompt_template", "compose_prompt", "describe_constraint"]

PLACES = ("prompt", "constraint")
RETRY_PLACES = ("text", "reason")


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    """Texts that show a constraint to the model, one for each kind of constraint.

    Each is a format string in the syntax of `str.format` with the fields {prompt} and {constraint}; braces are doubled.
    With messages, {prompt} is the text of the last message of the user, which the result replaces.

    Attributes
    ----------
    schema, regex, grammar, choices : str
        The texts. {constraint} is the JSON Schema as JSON, the pattern, the text of the grammar, and the choices as a
        JSON array.

    Raises
    ------
    TypeError
        If a template is not a str.
    ArgumentError
        If a template is malformed or has other fields.
    """

    schema: str = (
        "{prompt}\n\nAnswer with JSON only, without comments, that conforms to this JSON Schema:\n{constraint}"
    )
    regex: str = "{prompt}\n\nAnswer with nothing but a text that matches this regular expression:\n{constraint}"
    grammar: str = "{prompt}\n\nAnswer with nothing but a text of the language that this grammar defines:\n{constraint}"
    choices: str = "{prompt}\n\nAnswer with exactly one of these texts:\n{constraint}"

    def __post_init__(self) -> None:
        for one in fields(self):
            check_template(f"the template {one.name}", getattr(self, one.name), PLACES)


def fill_template(template: str, prompt: str, constraint: Callable[[], str]) -> str:
    """Return a template with its fields filled. constraint: called only if the template shows it."""
    shown = any(place == "constraint" for _, place, _, _ in Formatter().parse(template))
    return template.format(prompt=prompt, constraint=constraint() if shown else "")


def check_template(name: str, template: object, places: tuple[str, ...]) -> None:
    """Raise TypeError unless a template is a str, and ArgumentError unless all its fields are among `places`."""
    check_type(name, template, str, f"give a format string with the fields {' and '.join(places)}")
    try:
        parsed = list(Formatter().parse(cast(str, template)))
    except ValueError as error:
        raise ArgumentError(
            f"{name} is malformed: {error}", hint="Braces of the text are doubled: {{ and }}."
        ) from error
    for _, place, spec, conversion in parsed:
        if place is not None and (place not in places or spec or conversion):
            raise ArgumentError(
                f"{name} has the field {{{place}}}",
                hint=f"Its fields are {' and '.join(f'{{{one}}}' for one in places)}; braces of the text are doubled.",
            )


def as_prompt_template(show_constraint: object) -> PromptTemplate | None:
    """Return the argument `show_constraint`: a PromptTemplate, or a str, which is the template of all kinds."""
    if show_constraint is None or isinstance(show_constraint, PromptTemplate):
        return show_constraint
    wanted = "give a constrain.PromptTemplate or a text with {prompt} and {constraint}"
    check_type("show_constraint", show_constraint, str, wanted)
    text = cast(str, show_constraint)
    check_template("show_constraint", text, PLACES)
    return PromptTemplate(text, text, text, text)


def compose_prompt(
    prompt: Prompt,
    request: ConstraintRequest | None,
    loaded: LoadedModel,
    *,
    chat: str,
    template: PromptTemplate | None,
) -> Prompt:
    """Return what the model is prompted with.

    request: the constraint, None for an unconstrained text. chat: "template" turns a text into a message of the user;
    "plain" does not. Messages stay messages. Without a template, a model with a prompt format of its own (the embedded
    model) is shown the constraint in that format.
    """
    if template is not None and request is not None:
        prompt = show_constraint_in(prompt, request, template)
    elif (
        template is None
        and loaded.compose is not None
        and chat == "plain"
        and (prompt is None or isinstance(prompt, str))
    ):
        return loaded.compose(prompt, **({} if request is None else request.prompt_arguments()))
    if chat == "template" and (prompt is None or isinstance(prompt, str)):
        return [{"role": "user", "content": prompt or ""}]
    return prompt


def show_constraint_in(prompt: Prompt, request: ConstraintRequest, template: PromptTemplate) -> Prompt:
    """Return a prompt of the same kind with the constraint; raise ArgumentError for token ids."""
    [kind] = ("schema" if name == "type" else name for name in request.given)

    def fill(text: str) -> str:
        return fill_template(getattr(template, kind), text, lambda: describe_constraint(request))

    if prompt is None or isinstance(prompt, str):
        return fill(prompt or "")
    messages = [dict(one) for one in prompt if isinstance(one, Mapping)]
    if len(messages) != len(prompt) or not messages:
        raise ArgumentError("show_constraint= needs a prompt of text or messages, not of token ids")
    last = next((one for one in reversed(messages) if one.get("role") == "user"), None)
    if last is None or not isinstance(last.get("content"), str):
        raise ArgumentError("show_constraint= needs a message of the role user whose content is a text")
    last["content"] = fill(last["content"])
    return messages


def describe_constraint(request: ConstraintRequest) -> str:
    """Return the constraint of a request as the text that a prompt shows."""
    shown = request.prompt_arguments()
    if "schema" in shown:
        schema = shown["schema"]
        return schema if isinstance(schema, str) else json.dumps(schema, ensure_ascii=False)
    if request.choices is not None:
        return json.dumps(list(request.choices), ensure_ascii=False)
    if request.regex is not None:
        return request.regex
    if not isinstance(request.grammar, str):
        raise UnsupportedError(
            f"a {type(request.grammar).__name__} has no text that a prompt could show",
            hint="Give a template that describes it, without {constraint}.",
        )
    return grammars.text(request.grammar) if request.grammar in grammars.names() else request.grammar


def check_retry_prompt(retry_prompt: object) -> None:
    """Raise TypeError or ArgumentError unless the argument is None or a template with {text} and {reason}."""
    if retry_prompt is not None:
        check_template("retry_prompt", retry_prompt, RETRY_PLACES)


def add_refusals(prompt: Prompt, refusals: Sequence[Refusal], retry_prompt: str) -> list[dict[str, Any]]:
    """Return messages that continue a conversation with each refused text and, by the user, with its reason.

    Raise ConstrainError unless the prompt is a list of messages.
    """
    messages = [dict(one) for one in prompt or () if isinstance(one, Mapping)]
    if not messages:
        raise ConstrainError(
            "retry_prompt= was given with a prompt that is not a list of messages",
            hint='Give messages, or chat="template", which makes a message of a text.',
        )
    for text, reason in refusals:
        messages.append({"role": "assistant", "content": text})
        messages.append({"role": "user", "content": retry_prompt.format(text=text, reason=reason)})
    return messages
