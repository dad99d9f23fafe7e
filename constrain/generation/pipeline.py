"""High-level text generation: `generate` takes a model, a prompt and a constraint, and returns text that satisfies it.

model, tokenizer  ->  LoadedModel  ->  after the prompt  ->  LanguageModel  --+
schema | regex | grammar | choices | type  ->  compile  ->  Constraint  ------+->  generation loop or sampler  ->
Generation
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from os import PathLike
from time import perf_counter_ns
from typing import Any, Union, overload

import numpy as np

from ..base.errors import (
    ArgumentError,
    ConstrainError,
    LimitError,
    UnsupportedError,
    ValueRefused,
    check_type,
    describe_value,
)
from ..base.json_documents import References
from ..base.options import Limits, Style
from ..compilation.constraint_compiler import compile
from ..decoding.generation_loop import FinishReason, Outcome, Piece, Stats, generate_text
from ..engine.constraint import Constraint
from ..forms import grammar as form_of
from ..frontends.python_types import to_schema
from ..integrations.python_values import is_type, parse_json, to_value
from ..integrations.transformers_models import LoadedModel, Prompt, VocabularyTokenizer, as_loaded, load_model
from ..integrations.vocabulary_match import check_tokenizer
from ..sampling import SAMPLERS, Checker, LanguageModel, add_post_filter, draw
from ..sampling.core.masked_sampling import PLAIN, Proposal
from ..sampling.core.sampler_arguments import MOST_DRAWS
from ..sampling.core.weight_statistics import weight_stats
from ..sampling.sampler_choice import choose_sampler
from ..vocabulary.vocabulary import Vocabulary

__all__ = ["Generation", "generate"]

Check = Union[Callable[[str], bool], Checker]
"""A condition on texts in addition to the constraint."""

ATTEMPTS = 64
"""Maximum number of unfinished texts per requested text before `generate` gives up."""
PARTICLES = 16
"""Default number of particles. The median of our fixtures is then near p given L; use more where a twist is missing
(see the how-to)."""


@dataclass(frozen=True, slots=True)
class Generation:
    """One text generated under a constraint.

    Attributes
    ----------
    text : str
        The generated text; special tokens appear by name.
    value : object
        The parsed text: JSON for a schema; an instance for a Pydantic model, dataclass, NamedTuple or Enum; a dict for
        a TypedDict; the text itself for a regex, grammar or choice.
    tokens : tuple of int
        Token ids, without the end token.
    logprob : float
        Log-probability of the text under the model in nats, end token included.
    log_weight : float
        Log of the ratio of the model's probability to the probability with which the text was drawn, in nats (see
        `sampling.core.masked_sampling`).
    finish_reason : {"complete", "budget"}
        "complete": the model ended the text. "budget": the text was closed, or kept short, to end within max_tokens.
        Unfinished texts are never returned; they are drawn again and counted in ``stats.counts["unfinished"]``.
    stats : Stats
        Cost of the text.
    """

    text: str
    value: Any
    tokens: tuple[int, ...]
    logprob: float
    log_weight: float
    finish_reason: FinishReason
    stats: Stats = field(compare=False, repr=False)


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
            names = ", ".join(f"{name}=" for name in self.given) or "none"
            raise ConstrainError(
                f"exactly one of schema=, regex=, grammar=, choices= and type= says what to write; got {names}"
            )
        if self.choices is not None and not all(isinstance(choice, str) for choice in self.choices):
            raise ConstrainError("choices are texts", hint="For other values use schema={'enum': [...]} or type=.")
        if isinstance(self.choices, str):
            raise ConstrainError("choices is one text", hint=f"Give a list of texts: choices=[{self.choices!r}].")

    @property
    def given(self) -> dict[str, Any]:
        """The argument that was given, as a dict from its name to its value."""
        names = ("schema", "regex", "grammar", "choices", "type")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def value(self, text: str) -> Any:
        """Parse a generated text into the value it represents, see `Generation.value`."""
        tp = self.type if self.type is not None else self.schema if is_type(self.schema) else None
        if tp is not None:
            return to_value(tp, text)
        return parse_json(text) if self.schema is not None else text

    def shown(self) -> dict[str, Any]:
        """Return the parts of the constraint that are shown to a model whose prompt includes the constraint."""
        tp = self.type if self.type is not None else self.schema if is_type(self.schema) else None
        if tp is not None:
            return {"schema": to_schema(tp)}
        return {name: value for name, value in self.given.items() if name in ("schema", "regex", "choices")}


@overload
def generate(
    model: Any, prompt: Prompt = None, *, schema: Any = ..., regex: str | None = ..., grammar: Any = ...,
    choices: Sequence[str] | None = ..., type: Any = ..., tokenizer: Any = ..., style: Style = ...,
    registry: Mapping[str, Any] | None = ..., base_uri: str = ...,
    import_paths: Sequence[str | PathLike[str]] = ..., limits: Limits = ..., sampler: str = ...,
    particles: int | None = ..., check: Check | None = ..., n: None = ..., max_tokens: int = ...,
    temperature: float = ..., top_k: int | None = ..., top_p: float | None = ..., seed: int | None = ...,
    stream: Callable[[Piece], None] | None = ...,
) -> Generation: ...  # fmt: skip
@overload
def generate(
    model: Any, prompt: Prompt = None, *, schema: Any = ..., regex: str | None = ..., grammar: Any = ...,
    choices: Sequence[str] | None = ..., type: Any = ..., tokenizer: Any = ..., style: Style = ...,
    registry: Mapping[str, Any] | None = ..., base_uri: str = ...,
    import_paths: Sequence[str | PathLike[str]] = ..., limits: Limits = ..., sampler: str = ...,
    particles: int | None = ..., check: Check | None = ..., n: int, max_tokens: int = ...,
    temperature: float = ..., top_k: int | None = ..., top_p: float | None = ..., seed: int | None = ...,
    stream: Callable[[Piece], None] | None = ...,
) -> list[Generation]: ...  # fmt: skip
def generate(
    model: Any,
    prompt: Prompt = None,
    *,
    schema: Any = None,
    regex: str | None = None,
    grammar: Any = None,
    choices: Sequence[str] | None = None,
    type: Any = None,
    tokenizer: Any = None,
    style: Style = Style(),
    registry: Mapping[str, Any] | None = None,
    base_uri: str = "",
    import_paths: Sequence[str | PathLike[str]] = (),
    limits: Limits = Limits(),
    sampler: str = "masked",
    particles: int | None = None,
    check: Check | None = None,
    n: int | None = None,
    max_tokens: int = 512,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    stream: Callable[[Piece], None] | None = None,
) -> Generation | list[Generation]:
    """Generate text that satisfies exactly one of schema, regex, grammar, choices or type.

    Parameters
    ----------
    model : object
        "demo", a folder, a hub id, a loaded transformers model (with `tokenizer`), a `LoadedModel`, or any
        `LanguageModel` (with a Vocabulary as `tokenizer`, and without a prompt: the model holds its own).
    prompt : str, list of messages, token ids, optional
        A text is passed to the model unchanged. Only the embedded model, which was trained on one prompt format, is
        also shown the constraint.
    schema : object, optional
        A JSON Schema, or a Python type.
    regex : str, optional
        A regular expression.
    grammar : object, optional
        Lark or GBNF text, the name of a built-in grammar (`constrain.grammars`), a Form, or a Grammar of nodes.
    choices : sequence of str, optional
        The allowed texts.
    type : object, optional
        A Python type.
    tokenizer : object, optional
        The tokenizer or Vocabulary of the model.
    style : Style
        How JSON is written.
    registry : mapping, optional
        Documents by URI, for references in the schema.
    base_uri : str
        The URI that references in the schema are relative to.
    import_paths : sequence of path
        Folders that `%import` in a Lark grammar reads from.
    limits : Limits
        Resource limits of compilation and matching.
    sampler : str
        Determines how close the distribution of the texts is to p given L, the model's distribution conditioned on the
        constraint (docs/how-to/sample-faithfully.md). "masked" is fast, but biased, as `log_weight` records. It is the
        only sampler that streams, that closes a text within max_tokens (the others draw only texts that end by
        themselves), and that supports temperature, top_k and top_p. "exact" samples from p given L;
        "without_replacement" does too and returns n different texts, or fewer if there are fewer; "smc" and "pimh" use
        populations of `particles`. "auto" selects a sampler (`sampling.sampler_choice`); `stats.reason` says why. For
        the others see `sampling`.
    particles : int, optional
        Number of particles of the samplers that use populations, 16 by default.
    check : callable or Checker, optional
        A further condition, for samplers other than "masked": a function of the complete text, or a `sampling.Checker`,
        which can also reject prefixes. It may be slow: it is called only for what the mask allows, and what it rejects
        is not tried again.
    n : int, optional
        Number of independent texts. None returns one Generation, an int (also 1) a list.
    max_tokens : int
        Maximum number of tokens per text, end token included; lowered to the number of positions the model has left.
        Texts are always complete: one that would not end in time is closed early (finish_reason "budget"), or, with
        other samplers, drawn again.
    temperature, top_k, top_p
        How a token is chosen among the allowed ones; temperature 0 selects the likeliest.
    seed : int, optional
        The same seed gives the same texts.
    stream : callable, optional
        Called with each `Piece` as it is generated, text after text.

    Returns
    -------
    Generation or list of Generation

    Raises
    ------
    ConstrainError
        If an argument is invalid or the model cannot be loaded. `compile` errors are also raised.
    LimitError
        If the shortest text does not fit in max_tokens, or too few texts end within it.
    ValueRefused
        If a validator of the type rejects the text; the exception has the text.
    """
    if isinstance(grammar, str) and import_paths:
        grammar = form_of(grammar, import_paths=import_paths)
    if choices is not None and not isinstance(choices, str):
        check_type("choices", choices, Iterable, "give a list of texts")
        choices = list(choices)
    ask = ConstraintRequest(schema, regex, grammar, choices, type)
    check_type("sampler", sampler, str, f"give one of {', '.join(SAMPLERS)} or 'auto'")
    if sampler not in SAMPLERS and sampler != "auto":
        known = ", ".join([*SAMPLERS, "auto"])
        raise UnsupportedError(f"there is no sampler {sampler!r}", hint=f"The samplers are {known}.")
    check_kinds(style, limits, n, max_tokens, seed, stream, prompt)
    proposal = checked_proposal(temperature, top_k, top_p)
    check_sampler(sampler, particles, proposal, stream, check)
    if n is not None and not 0 <= n <= MOST_DRAWS:
        raise ArgumentError(f"n is {n}: it is how many texts are wanted, at most {MOST_DRAWS:,}")
    if max_tokens < 1:
        raise ConstrainError(f"max_tokens is {max_tokens}: not even an end token fits", hint="Give 1 or more.")
    vocabulary, prompted = prepare_model(model, tokenizer, prompt, ask)
    start = perf_counter_ns()
    constraint = compile_request(vocabulary, ask, style, References(registry, base_uri), limits)
    compile_us = (perf_counter_ns() - start) / 1e3
    lm = prompted()
    room: int | None = getattr(lm, "room", None)
    if room is not None and room < max_tokens:
        max_tokens = room
    if max_tokens < 1:
        raise LimitError("the prompt fills all the positions that the model has", hint="Shorten the prompt.")
    wanted = 1 if n is None else n
    reason, options = "", dict[str, Any]()
    judge = None if check is None else checker_of(check)
    if sampler == "auto":
        choice = choose_sampler(
            lm, add_post_filter(constraint, sampler, judge),
            rng=np.random.default_rng(None if seed is None else [seed, 1]),
            max_tokens=max_tokens, wants=only_masked(proposal, stream),
        )  # fmt: skip
        sampler, reason, options = choice.sampler, choice.reason, choice.options
    elif SAMPLERS[sampler].takes_particles:
        options = {"particles": particles or PARTICLES}
    if sampler == "masked" and judge is None:
        sources = spawn_generators(seed)

        def attempt(count: int) -> tuple[list[Outcome], int]:
            runs = [
                generate_text(
                    lm, constraint, rng=next(sources), max_tokens=max_tokens, proposal=proposal, stream=stream
                )
                for _ in range(count)
            ]
            ended = [out for out in runs if out.finish_reason != "length"]
            if len(ended) < len(runs) and stream is not None:
                raise LimitError(
                    f"a text that was streamed did not end within max_tokens = {max_tokens}", hint="Raise max_tokens."
                )
            return ended, len(runs) - len(ended)

        outcomes, unfinished = ended_texts(attempt, wanted, max_tokens)
    else:
        outcomes, unfinished = draw_outcomes(
            lm, constraint, sampler, wanted, seed, max_tokens, {**options, "checker": judge}
        )
    weights = weigh_outcomes(outcomes, unfinished, proposal, sampler, wanted)
    for out in outcomes:
        stats = out.stats
        stats.counts = {**stats.counts, "unfinished": unfinished}
        stats.compile_us, stats.weights, stats.sampler, stats.reason = compile_us, weights, sampler, reason
    made = [as_generation(out, ask) for out in outcomes]
    return made[0] if n is None else made


def check_sampler(sampler: str, particles: int | None, proposal: Proposal, stream: object, check: object) -> None:
    """Raise ConstrainError or UnsupportedError if the sampler does not support the given options."""
    of_particles = [name for name, row in SAMPLERS.items() if row.takes_particles]
    if particles is not None and (sampler not in of_particles or not is_count(particles) or particles < 1):
        raise ConstrainError(
            f"particles is {particles!r} and the sampler {sampler!r}",
            hint=f"particles= is a whole number from 1 on, for the samplers {', '.join(of_particles)}.",
        )
    if check is not None and not (callable(check) or hasattr(check, "matcher")):
        raise ConstrainError(f"check is {check!r}", hint="check= is a function of a text, or a sampling.Checker.")
    if check is not None and (sampler == "masked" or only_masked(proposal, stream)):
        raise UnsupportedError(
            'the sampler "masked" writes each text once: what a check refuses it would not write anew',
            hint='Use sampler="exact", or "auto" without a temperature, top_k, top_p and stream=.',
        )
    if sampler in ("masked", "auto"):
        return
    if proposal != PLAIN:
        raise UnsupportedError(
            f"the sampler {sampler!r} draws from the model's own law: there is no temperature, top_k or top_p",
            hint='Leave them out, or use sampler="masked".',
        )
    if stream is not None:
        raise UnsupportedError(
            f"the sampler {sampler!r} knows a text only when it is finished: there is nothing to stream",
            hint='Leave stream= out, or use sampler="masked".',
        )


def only_masked(proposal: Proposal, stream: object) -> str:
    """Return the names of requested options that only the sampler "masked" supports, joined by commas; "" if there are
    none.
    """
    asked = [name for name, value in (("streaming", stream is not None),) if value]
    asked += [name for name in ("temperature", "top_k", "top_p") if getattr(proposal, name) != getattr(PLAIN, name)]
    return ", ".join(asked)


def checker_of(check: Check) -> Checker | Callable[[bytes], bool]:
    """Return a Checker unchanged; wrap a function of str as a function of bytes."""
    if isinstance(check, Checker):
        return check
    judge = check
    return lambda data: bool(judge(data.decode("utf-8", "replace")))


def weigh_outcomes(
    outcomes: list[Outcome], unfinished: int, proposal: Proposal, sampler: str, wanted: int
) -> dict[str, float]:
    """Compute the weight statistics of all texts of a call (`weight_stats`); unfinished texts count as weight 0.

    Statistics are not trusted if the budget changed a text (`closed` is the share of such texts) or if the proposal
    excludes tokens. They are always trusted if all draws have equal weight by construction.

    Texts are drawn until `wanted` of them have ended. For independent draws, with n of m ended, (n - 1) / (m - 1) is
    then an unbiased estimate of the probability of ending (Haldane 1945), while n / m is biased upwards. With a single
    text there is no unbiased estimate above 0: log_z then uses n / m, is too large on average, and is never trusted.
    """
    found = weight_stats(np.array([out.log_weight for out in outcomes] + [-np.inf] * unfinished, np.float64))
    if found:
        ended, made = len(outcomes), len(outcomes) + unfinished
        if SAMPLERS[sampler].unit == "draw" and unfinished and 1 < ended == wanted:
            factor = (ended - 1) / (made - 1) * made / ended
            found["log_z"] += log(factor)
            found["dead_ends"] = 1 - (1 - found["dead_ends"]) * factor
        found["closed"] = sum(out.finish_reason == "budget" for out in outcomes) / len(outcomes)
        cut = proposal.temperature == 0 or proposal.top_k is not None or (proposal.top_p or 1) < 1
        found["trusted"] = (
            0.0 if cut or found["closed"] else 1.0 if SAMPLERS[sampler].equal_weights else found["trusted"]
        )
    return found


def draw_outcomes(
    lm: LanguageModel,
    constraint: Constraint,
    sampler: str,
    n: int,
    seed: int | None,
    max_tokens: int,
    options: dict[str, Any],
) -> tuple[list[Outcome], int]:
    """Draw n texts with a sampler of `sampling` and convert them to Outcomes. Unfinished texts are drawn again (see
    `ended_texts`).
    """
    rng = np.random.default_rng(seed)

    def attempt(count: int) -> tuple[list[Outcome], int]:
        start = perf_counter_ns()
        draws = draw(lm, constraint, sampler=sampler, n=count, rng=rng, max_tokens=max_tokens, **options)
        total_us = (perf_counter_ns() - start) / 1e3
        made = []
        for one in draws:
            stats = Stats(tokens=len(one.tokens) + 1, total_us=total_us / len(draws), counts=draws.stats)
            stats.model_calls = round(draws.stats.get("model_calls", 0) / len(draws))
            data = constraint.vocabulary.transcript(one.tokens)
            made.append(Outcome(list(one.tokens), data, one.logprob, one.log_weight, "complete", stats))
        return made, draws.unfinished

    return ended_texts(attempt, n, max_tokens)


def ended_texts(
    attempt: Callable[[int], tuple[list[Outcome], int]], n: int, max_tokens: int
) -> tuple[list[Outcome], int]:
    """Return n finished texts and the number of unfinished ones. Raise LimitError after ATTEMPTS unfinished texts per
    text.

    attempt: draws the given number of texts; returns those that ended and the number that did not. If it returns
    neither, fewer than n texts are returned.
    """
    made, unfinished = attempt(n)
    while unfinished and len(made) < n:
        if unfinished >= ATTEMPTS * n:
            raise LimitError(
                f"{len(made)} of {len(made) + unfinished} texts ended in max_tokens = {max_tokens}; {n} were wanted",
                hint='Raise max_tokens, or use sampler="masked", which closes texts in time.',
            )
        more, missing = attempt(n - len(made))
        if not more and not missing:
            break
        made, unfinished = made + more, unfinished + missing
    return made, unfinished


def check_kinds(
    style: object, limits: object, n: object, max_tokens: object, seed: object, stream: object, prompt: object
) -> None:
    """Raise ConstrainError for arguments of the wrong type."""
    kinds = [
        ("style", style, isinstance(style, Style), 'a constrain.Style, such as Style(whitespace="compact")'),
        ("limits", limits, isinstance(limits, Limits), "a constrain.Limits"),
        ("n", n, n is None or is_count(n), "a whole number, or None for one Generation"),
        ("max_tokens", max_tokens, is_count(max_tokens), "a whole number"),
        ("seed", seed, seed is None or (is_count(seed) and int(str(seed)) >= 0), "a whole number from 0 on, or None"),
        ("stream", stream, stream is None or callable(stream), "called with each Piece as it is written"),
        ("prompt", prompt, not isinstance(prompt, (bytes, int, float)), "a text, chat messages, token ids or None"),
    ]
    for name, value, fits, wanted in kinds:
        if not fits:
            raise ConstrainError(f"{name} is {describe_value(value)}", hint=f"{name}= is {wanted}.")


def is_count(value: object) -> bool:
    """Return whether a value is a Python or numpy integer, bool excluded."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def prepare_model(
    model: Any, tokenizer: Any, prompt: Prompt, ask: ConstraintRequest
) -> tuple[Vocabulary, Callable[[], LanguageModel]]:
    """Return the Vocabulary of a model and a function that makes the LanguageModel after the prompt.

    The function is called later, because it runs the model.
    """
    if isinstance(model, LanguageModel):
        if not isinstance(tokenizer, Vocabulary):
            raise ConstrainError("a LanguageModel needs its Vocabulary", hint="Give it with tokenizer=.")
        if prompt is not None:
            raise ConstrainError("the prompt of a LanguageModel is its own affair", hint="Leave prompt= out.")
        return tokenizer, lambda: model
    if isinstance(model, (LoadedModel, str, PathLike)):
        loaded = model if isinstance(model, LoadedModel) else load_model(model)
        if isinstance(tokenizer, Vocabulary) and not isinstance(loaded.tokenizer, VocabularyTokenizer):
            check_tokenizer(tokenizer, loaded.tokenizer)
        if tokenizer is not None:
            loaded = as_loaded(loaded.model, tokenizer, name=loaded.name)
    elif hasattr(model, "generate") and hasattr(model, "config"):
        loaded = as_loaded(model, tokenizer)
    else:
        raise ConstrainError(
            f"a {model.__class__.__name__} is no model",
            hint='A model is "demo", a folder, a hub id, a loaded transformers model, or has a method next_logprobs.',
        )
    if loaded.compose is not None and (prompt is None or isinstance(prompt, str)):
        prompt = loaded.compose(prompt, **ask.shown())
    return loaded.vocabulary, lambda: loaded.on(prompt)


def compile_request(
    vocabulary: Vocabulary, ask: ConstraintRequest, style: Style, references: References, limits: Limits
) -> Constraint:
    """Compile the requested constraint."""

    return compile(
        vocabulary, style=style, registry=references, base_uri=references.base_uri, limits=limits, **ask.given
    )


def checked_proposal(temperature: float, top_k: int | None, top_p: float | None) -> Proposal:
    """Make the Proposal; raise ConstrainError for invalid values."""
    try:
        return Proposal(temperature, top_k, top_p)
    except (TypeError, ValueError) as error:
        raise ConstrainError(str(error)) from error


def spawn_generators(seed: int | None) -> Iterator[np.random.Generator]:
    """Yield independent random generators without end; the first is the one that n = 1 uses."""
    root = np.random.SeedSequence(seed)
    yield np.random.default_rng(root)
    while True:
        yield np.random.default_rng(root.spawn(1)[0])


def as_generation(out: Outcome, ask: ConstraintRequest) -> Generation:
    """Convert an Outcome to a Generation, parsing its value. Raise ValueRefused if the type rejects the value."""
    text = out.data.decode("utf-8", "replace")
    try:
        value = None if out.finish_reason == "length" else ask.value(text)
    except ConstrainError:
        raise
    except ValueError as error:  # pydantic.ValidationError is one
        refused = ValueRefused(
            f"the text has the form asked for, yet the type takes no such value: {error}",
            hint=f"Its `text` is {text[:60]!r}; put what the validator asks for into the schema, or validate yourself.",
        )
        refused.text = text
        raise refused from error
    return Generation(text, value, tuple(out.tokens), out.logprob, out.log_weight, out.finish_reason, out.stats)
