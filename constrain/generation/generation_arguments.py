"""The arguments of `generate`: the constraint that a call requests, and the checks made before the model is loaded.

Every check raises an error that names the argument, its value and what is expected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Union

from ..base.errors import (
    ArgumentError,
    ConstrainError,
    UnsupportedError,
    check_count,
    check_type,
    describe_value,
)
from ..base.options import Limits, Style
from ..checking.verdicts import TextChecker
from ..deciding import DECISIONS
from ..decoding.token_choice import TokenChoice
from ..forms import grammar as form_of
from ..forms.schema_sources import check_type_argument, normalise_schema, read_source_file
from ..frontends.python_types import to_schema
from ..integrations.model_hub import is_hub_id
from ..integrations.python_values import is_type, parse_json, to_value
from ..sampling import SAMPLERS, Checker
from ..sampling.core.masked_sampling import PLAIN
from ..sampling.core.sampler_arguments import MOST_DRAWS, is_count
from ..sampling.sampling_target import MODEL_TARGET, SamplingTarget

__all__ = [
    "Check",
    "ConstraintRequest",
    "build_request",
    "check_arguments",
    "check_target",
    "is_checked_after",
    "list_masked_options",
    "read_iterator",
]

Check = Union[Callable[[str], bool], Checker, TextChecker]
"""A condition on texts in addition to the constraint. A function may also raise ValueError with the reason."""


@dataclass(frozen=True, slots=True)
class ConstraintRequest:
    """The constraint arguments of `generate`, which it passes to `compile`. Exactly one of them must be given."""

    schema: Any = None
    regex: str | None = None
    grammar: Any = None
    choices: Sequence[str] | None = None
    type: Any = None

    def __post_init__(self) -> None:
        if len(self.given) != 1:
            names = " and ".join(f"{name}=" for name in self.given) or "nothing"
            raise ConstrainError(
                f"got {names}: give exactly one of schema=, regex=, grammar=, choices= and type=",
                hint="" if self.given else "The type of None is given as type=type(None).",
            )
        if self.choices is not None and not all(isinstance(choice, str) for choice in self.choices):
            raise ConstrainError("choices must be texts", hint="For other values use schema={'enum': [...]} or type=.")
        if isinstance(self.choices, str):
            raise ConstrainError(
                "choices is a single text, not a list", hint=f"Give a list of texts: choices=[{self.choices!r}]."
            )

    @property
    def given(self) -> dict[str, Any]:
        """The argument that was given, as a dict from its name to its value."""
        names = ("schema", "regex", "grammar", "choices", "type")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def find_type(self) -> Any:
        """Return the Python type that was given, or None."""
        return self.type if self.type is not None else self.schema if is_type(self.schema) else None

    def value(self, text: str) -> Any:
        """Parse a generated text into the value it represents, see `Generation.value`."""
        tp = self.find_type()
        if tp is not None:
            return to_value(tp, text)
        return parse_json(text) if self.schema is not None else text

    def prompt_arguments(self) -> dict[str, Any]:
        """Return the constraint as arguments of `demo.compose_prompt`, for models whose prompt includes it."""
        tp = self.find_type()
        if tp is not None:
            return {"schema": to_schema(tp)}
        return {name: value for name, value in self.given.items() if name in ("schema", "regex", "choices")}


def read_iterator(choices: Any) -> Any:
    """Return choices that can be read only once as a tuple, and anything else unchanged.

    Called where a call begins: what follows reads its choices several times.
    """
    return tuple(choices) if isinstance(choices, Iterator) else choices


def build_request(
    schema: Any,
    regex: str | None,
    grammar: Any,
    choices: Sequence[str] | None,
    type: Any,
    import_paths: Sequence[str | PathLike[str]],
) -> ConstraintRequest:
    """Make a ConstraintRequest. A Lark grammar with import paths is converted to a Form, which remembers them."""
    schema = normalise_schema(schema)
    check_type_argument(type)
    if isinstance(grammar, PathLike):
        grammar = read_source_file(grammar, "grammar")
    if isinstance(grammar, str) and import_paths:
        grammar = form_of(grammar, import_paths=import_paths)
    if choices is not None and not isinstance(choices, str):
        check_type("choices", choices, Iterable, "give a list of texts")
        choices = tuple(choices)
    return ConstraintRequest(schema, regex, grammar, choices, type)


def check_arguments(
    *,
    sampler: str,
    n: int | None,
    max_tokens: int,
    particles: int | None,
    choice: TokenChoice,
    stream: object,
    check: object,
    retries: int,
) -> None:
    """Raise an error for a value that is out of range, or for options that the sampler does not support."""
    check_sampler(sampler, particles, choice, stream, check)
    check_count("retries", retries)
    if n is not None and not 0 <= n <= MOST_DRAWS:
        raise ArgumentError(f"n is {n}: it is the number of texts, from 0 to {MOST_DRAWS:,}")
    if max_tokens < 1:
        raise ConstrainError(f"max_tokens is {max_tokens}: not even an end token fits", hint="Give 1 or more.")


def check_places(model: object, prompt: object) -> None:
    """Raise ArgumentError if the model was given in the place of the prompt, and the prompt in that of the model."""
    if isinstance(model, str) and isinstance(prompt, str) and len(prompt.split()) == 1 and len(model.split()) > 1:
        if prompt == "demo" or (is_hub_id(prompt) and "/" in prompt) or prompt.startswith((".", "/", "~")):
            name, text = describe_value(prompt), describe_value(model)
            raise ArgumentError(
                f"model is {text}, and prompt is {name}: they are in each other's place",
                hint=f"Give constrain.generate({name}, {text}, ...).",
            )


def check_sampler_name(sampler: object) -> None:
    """Raise TypeError or UnsupportedError unless the argument is the name of a sampler, or "auto"."""
    check_type("sampler", sampler, str, f"give one of {', '.join(SAMPLERS)} or 'auto'")
    if sampler not in SAMPLERS and sampler != "auto":
        known = ", ".join([*SAMPLERS, "auto"])
        raise UnsupportedError(f"there is no sampler {sampler!r}", hint=f"The samplers are {known}.")


def check_sampler(sampler: str, particles: int | None, choice: TokenChoice, stream: object, check: object) -> None:
    """Raise ConstrainError or UnsupportedError if the sampler does not support the given options."""
    if particles is not None:
        takers = [name for name, row in SAMPLERS.items() if row.takes_particles]
        if sampler not in takers or not is_count(particles) or particles < 1:
            raise ConstrainError(
                f"particles is {describe_value(particles)}, which the sampler {sampler!r} does not take",
                hint=f"Give a whole number from 1 on, with one of the samplers {', '.join(takers)}.",
            )
    if check is not None and not (callable(check) or isinstance(check, TextChecker) or hasattr(check, "matcher")):
        raise ConstrainError(
            f"check is {describe_value(check)}",
            hint="Give a function of a text that returns True or False, a checking.TextChecker or a sampling.Checker.",
        )
    if sampler in ("masked", "auto"):
        return
    if not choice.proposal.is_uncut or choice.proposal.temperature == 0:
        raise UnsupportedError(
            f"the sampler {sampler!r} draws from the model's own distribution: it has no top_k, top_p or min_p, and no "
            "temperature of 0",
            hint='Remove these options, or use sampler="masked".',
        )
    if choice.stop:
        raise UnsupportedError(
            f"the sampler {sampler!r} does not support stop=, because it draws texts that the model ends",
            hint='Remove stop=, or use sampler="masked".',
        )
    if choice.forced != "sample":
        raise UnsupportedError(
            f"the sampler {sampler!r} samples every token: it does not support forced={choice.forced!r}",
            hint='Remove forced=, or use sampler="masked".',
        )
    if stream is not None:
        raise UnsupportedError(
            f"the sampler {sampler!r} cannot stream, because it may discard a text until it is finished",
            hint='Remove stream=, or use sampler="masked".',
        )


def check_target(target: Any, options: Mapping[str, Any], choice: TokenChoice) -> None:
    """Raise TypeError or UnsupportedError unless `target` is a SamplingTarget that the other options allow.

    options: keyword arguments of `generate` by name, with a decision rule as the search.
    """
    check_type("target", target, SamplingTarget, "give a sampling.SamplingTarget")
    if target == MODEL_TARGET or options["sampler"] not in ("masked", "auto"):
        return
    refused = [name for name in ("stream", "draft") if options[name] is not None]
    if options["search"] is not None:
        refused.append("decide" if isinstance(options["search"], tuple(DECISIONS.values())) else "search")
    refused += ["stop"] * bool(choice.stop) + ["forced"] * (choice.forced != "sample")
    refused += ["heal"] * (options["heal"] != "none") + ["masks"] * (options["masks"] != "first")
    if refused:
        raise UnsupportedError(
            f"target= was given with {', '.join(f'{name}=' for name in refused)}, which only drawing from the model as "
            "it is supports",
            hint="Leave one of them out. (Beams take BeamSearch(critic=).)",
        )


def list_masked_options(choice: TokenChoice, stream: object, heal: object = "none") -> str:
    """Return the names of requested options that only the sampler "masked" supports, joined by commas; "" if there are
    none.
    """
    options = [] if stream is None else ["streaming"]
    names = ("temperature", "top_k", "top_p", "min_p")
    options += [name for name in names if getattr(choice.proposal, name) != getattr(PLAIN, name)]
    options += ["stop"] * bool(choice.stop) + ["forced"] * (choice.forced != "sample")
    return ", ".join([*options, "heal"] if heal != "none" else options)


def is_checked_after(sampler: str, masked_options: str) -> bool:
    """Return whether `check=` is called for texts after they were drawn, which are drawn again if it rejects them.

    Otherwise it is given to the sampler, which draws from the distribution given the constraint and the check.
    """
    return sampler == "masked" or bool(sampler == "auto" and masked_options)


def check_types(
    style: object, limits: object, n: object, max_tokens: object, seed: object, stream: object, prompt: object
) -> None:
    """Raise ConstrainError for arguments of the wrong type."""
    checks = [
        ("style", style, isinstance(style, Style), 'a constrain.Style, such as Style(whitespace="compact")'),
        ("limits", limits, isinstance(limits, Limits), "a constrain.Limits"),
        ("n", n, n is None or is_count(n), "a whole number, or None for one Generation"),
        ("max_tokens", max_tokens, is_count(max_tokens), "a whole number"),
        ("seed", seed, seed is None or (is_count(seed) and int(str(seed)) >= 0), "a whole number from 0 on, or None"),
        ("stream", stream, stream is None or callable(stream), "a function of one Piece, or None"),
        ("prompt", prompt, not isinstance(prompt, (bytes, int, float)), "a text, chat messages, token ids, or None"),
    ]
    for name, value, valid, expected in checks:
        if not valid:
            raise ConstrainError(f"{name} is {describe_value(value)}", hint=f"Give {expected}.")
