"""`generate`: a model, a prompt and a constraint in; a text in exactly that form out.

model, tokenizer  ->  LoadedModel  ->  after the prompt  ->  LanguageModel  --+
schema | regex | grammar | choices | type  ->  compile  ->  Constraint  ------+->  decoding.loop.run  ->  Generation
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log
from os import PathLike
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Union, overload

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
from ..decoding.generation_loop import FinishReason, Outcome, Piece, Stats, run
from ..forms import grammar as form_of
from ..integrations.python_values import is_type, parse_json, to_value
from ..integrations.transformers_models import LoadedModel, Prompt, VocabularyTokenizer, as_loaded, load
from ..integrations.vocabulary_match import check_tokenizer
from ..sampling import SAMPLERS, Checker, LanguageModel, draw, guarded
from ..sampling.masked_sampling import PLAIN, Proposal
from ..sampling.sampler_arguments import MOST_DRAWS
from ..sampling.sampler_choice import choose
from ..sampling.weight_statistics import weight_stats
from ..vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from ..engine.constraint import Constraint

__all__ = ["Generation", "generate"]

Check = Union[Callable[[str], bool], Checker]
"""What a text must pass besides its form."""

OF_PARTICLES = ("smc", "pimh")
ATTEMPTS = 64
"""Most texts that may not end, for each that is wanted."""
FAITHFUL = ("exact", "markov")
"""Samplers from the right law: all their texts weigh the same, and are off by nothing."""
INDEPENDENT = ("masked", "awrs")
"""Samplers whose draws do not depend on each other: the others learn from earlier ones, or draw from a population."""
PARTICLES = 16
"""Enough for the median of our fixtures to be near p given L; more where a twist is missing (see the how-to)."""


@dataclass(frozen=True, slots=True)
class Generation:
    """One text under a constraint.

    text: what was written, special tokens in it by their names.
    value: what it means: the parsed JSON of a schema; an instance for a Pydantic model, dataclass, NamedTuple or Enum,
    a dict for a TypedDict; the text itself for a regex, grammar or choice.
    tokens: its tokens, without the end token. logprob: of the text under the model, end token included (nats).
    log_weight: log of model's probability over that with which it was drawn (see `sampling.masked_sampling`).
    finish_reason: "complete": the model ended it. "budget": it was closed, or kept short, so as to end in max_tokens.
    A text that did not end is never one of these: it is drawn anew, and counted in stats.counts["unfinished"].
    stats: what it cost.
    """

    text: str
    value: Any
    tokens: tuple[int, ...]
    logprob: float
    log_weight: float
    finish_reason: FinishReason
    stats: Stats = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Ask:
    """What the text has to be: the arguments of `compile`, of which exactly one is given."""

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
        """The argument by its name."""
        names = ("schema", "regex", "grammar", "choices", "type")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def value(self, text: str) -> Any:
        """What a text means."""
        tp = self.type if self.type is not None else self.schema if is_type(self.schema) else None
        if tp is not None:
            return to_value(tp, text)
        return parse_json(text) if self.schema is not None else text

    def shown(self) -> dict[str, Any]:
        """What a model that is shown the constraint in its prompt gets to see of it."""
        tp = self.type if self.type is not None else self.schema if is_type(self.schema) else None
        if tp is not None:
            from ..frontends.python_types import to_schema

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
    """Write text in exactly the form that one of schema=, regex=, grammar=, choices= or type= asks for.

    model: "demo", a folder, a hub id, a loaded transformers model (with tokenizer=), a `LoadedModel`, or any
        `LanguageModel` (with a Vocabulary as tokenizer=; the prompt is then the model's own affair).
    grammar: Lark or GBNF text, the name of a ready grammar (`constrain.grammars`), a Form, or a Grammar of nodes.
    registry, base_uri: documents by URI that references of the schema may name, and what they are relative to.
    import_paths: folders that `%import` in a Lark text reads from.
    prompt: a text, chat messages, token ids, or None. A text is given as it is; only the embedded model, which was
        trained on one form of prompt, is shown the constraint beside it.
    n: None for one Generation; a number for a list of that many independent ones, also if it is 1.
    max_tokens: most tokens of a text, its end token included. The text is complete in any case: what would not end in
        time is not written (finish_reason "budget"), or drawn anew by other samplers. LimitError if not even the
        shortest one fits, or if too few end; a model that has fewer positions left sets a tighter bound.
    sampler: how far the texts are from what the model would write if it were asked again until the form is right
        (docs/how-to/sample-faithfully.md). "masked": fast, and biased as its log_weight says; the only one that
        streams, that closes a text in time (others draw from texts that end in time by themselves), and that takes a
        temperature, top_k and top_p. "exact": from the right law. "without_replacement": that, n different
        texts, fewer if there are fewer. "smc", "pimh": from populations of `particles` (16 unless said otherwise).
        "auto": chosen by a rule (`sampling.sampler_choice`), `stats.reason` says why. Others: `sampling`.
    check: what a text must pass besides, for samplers other than "masked": a function of the complete text, or a
        `sampling.Checker`, which also knows prefixes. It may be slow: it stands behind the mask, and what it refuses is
        not tried again.
    temperature, top_k, top_p: how tokens are chosen among the allowed ones; temperature 0 takes the likeliest.
    seed: the same seed gives the same texts. stream: called with each `Piece` as it is written, text after text.
    Raises: what `compile` raises; ConstrainError for a model that cannot be loaded; LimitError as said; ValueRefused if
        a validator of the type takes no such value (it has the text).
    """
    if isinstance(grammar, str) and import_paths:
        grammar = form_of(grammar, import_paths=import_paths)
    if choices is not None and not isinstance(choices, str):
        check_type("choices", choices, Iterable, "give a list of texts")
        choices = list(choices)
    ask = Ask(schema, regex, grammar, choices, type)
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
    vocabulary, prompted = prepare(model, tokenizer, prompt, ask)
    start = perf_counter_ns()
    constraint = compiled(vocabulary, ask, style, References(registry, base_uri), limits)
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
        choice = choose(
            lm, guarded(constraint, sampler, judge), rng=np.random.default_rng(None if seed is None else [seed, 1]),
            max_tokens=max_tokens, wants=only_masked(proposal, stream),
        )  # fmt: skip
        sampler, reason, options = choice.sampler, choice.reason, choice.options
    elif sampler in OF_PARTICLES:
        options = {"particles": particles or PARTICLES}
    if sampler == "masked" and judge is None:
        sources = generators(seed)

        def attempt(count: int) -> tuple[list[Outcome], int]:
            runs = [
                run(lm, constraint, rng=next(sources), max_tokens=max_tokens, proposal=proposal, stream=stream)
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
        outcomes, unfinished = drawn(lm, constraint, sampler, wanted, seed, max_tokens, {**options, "checker": judge})
    weights = weighed(outcomes, unfinished, proposal, sampler, wanted)
    for out in outcomes:
        stats = out.stats
        stats.counts = {**stats.counts, "unfinished": unfinished}
        stats.compile_us, stats.weights, stats.sampler, stats.reason = compile_us, weights, sampler, reason
    made = [as_generation(out, ask) for out in outcomes]
    return made[0] if n is None else made


def check_sampler(sampler: str, particles: int | None, proposal: Proposal, stream: object, check: object) -> None:
    """Whether a sampler takes what was given."""
    if particles is not None and (sampler not in OF_PARTICLES or not is_count(particles) or particles < 1):
        raise ConstrainError(
            f"particles is {particles!r} and the sampler {sampler!r}",
            hint=f"particles= is a whole number from 1 on, for the samplers {', '.join(OF_PARTICLES)}.",
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
    """What is asked for that no sampler but "masked" has; "" for nothing."""
    asked = [name for name, value in (("streaming", stream is not None),) if value]
    asked += [name for name in ("temperature", "top_k", "top_p") if getattr(proposal, name) != getattr(PLAIN, name)]
    return ", ".join(asked)


def checker_of(check: Check) -> Checker | Callable[[bytes], bool]:
    """A Checker as it is; a function of texts as one of bytes."""
    if isinstance(check, Checker):
        return check
    judge = check
    return lambda data: bool(judge(data.decode("utf-8", "replace")))


def weighed(
    outcomes: list[Outcome], unfinished: int, proposal: Proposal, sampler: str, wanted: int
) -> dict[str, float]:
    """Statistics of the weights of all texts of a call (`weight_stats`), texts that did not end counting as weight 0.

    Not trusted where they cannot know: texts that the budget changed (`closed`: their part), and proposals that leave
    out tokens. Trusted where there is nothing to know: FAITHFUL.

    Texts are drawn until `wanted` of them ended. For independent draws (INDEPENDENT) the part of them that end is then
    estimated without bias by (n - 1) / (m - 1), n of m having ended (Haldane 1945); n / m would be too large. One text
    alone allows no unbiased estimate above 0: there log_z is that of n / m, too large on average, and never trusted.
    """
    found = weight_stats(np.array([out.log_weight for out in outcomes] + [-np.inf] * unfinished, np.float64))
    if found:
        ended, made = len(outcomes), len(outcomes) + unfinished
        if sampler in INDEPENDENT and unfinished and 1 < ended == wanted:
            factor = (ended - 1) / (made - 1) * made / ended
            found["log_z"] += log(factor)
            found["dead_ends"] = 1 - (1 - found["dead_ends"]) * factor
        found["closed"] = sum(out.finish_reason == "budget" for out in outcomes) / len(outcomes)
        cut = proposal.temperature == 0 or proposal.top_k is not None or (proposal.top_p or 1) < 1
        found["trusted"] = 0.0 if cut or found["closed"] else 1.0 if sampler in FAITHFUL else found["trusted"]
    return found


def drawn(
    lm: LanguageModel,
    constraint: Constraint,
    sampler: str,
    n: int,
    seed: int | None,
    max_tokens: int,
    options: dict[str, Any],
) -> tuple[list[Outcome], int]:
    """Texts by a sampler of `sampling`, as Outcomes. What did not end is drawn anew (see `ended_texts`)."""
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
            made.append(Outcome(list(one.tokens), data, one.logprob, one.logweight, "complete", stats))
        return made, draws.unfinished

    return ended_texts(attempt, n, max_tokens)


def ended_texts(
    attempt: Callable[[int], tuple[list[Outcome], int]], n: int, max_tokens: int
) -> tuple[list[Outcome], int]:
    """Return n texts that ended, and how many others did not. Raise LimitError after ATTEMPTS tries for each.

    attempt: returns so many texts, less those that did not end, and how many did not.
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
    """Arguments of the wrong kind, before anything is done."""
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
    """Whether a value is a whole number, of Python or numpy."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def prepare(model: Any, tokenizer: Any, prompt: Prompt, ask: Ask) -> tuple[Vocabulary, Callable[[], LanguageModel]]:
    """The Vocabulary of a model, and what makes the LanguageModel after the prompt (which runs the model, so later)."""
    if isinstance(model, LanguageModel):
        if not isinstance(tokenizer, Vocabulary):
            raise ConstrainError("a LanguageModel needs its Vocabulary", hint="Give it with tokenizer=.")
        if prompt is not None:
            raise ConstrainError("the prompt of a LanguageModel is its own affair", hint="Leave prompt= out.")
        return tokenizer, lambda: model
    if isinstance(model, (LoadedModel, str, PathLike)):
        loaded = model if isinstance(model, LoadedModel) else load(model)
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


def compiled(vocabulary: Vocabulary, ask: Ask, style: Style, references: References, limits: Limits) -> Constraint:
    """The Constraint of what is asked for."""
    from ..compilation.constraint_compiler import compile

    return compile(
        vocabulary, style=style, registry=references, base_uri=references.base_uri, limits=limits, **ask.given
    )


def checked_proposal(temperature: float, top_k: int | None, top_p: float | None) -> Proposal:
    """The Proposal, a wrong number being a ConstrainError."""
    try:
        return Proposal(temperature, top_k, top_p)
    except (TypeError, ValueError) as error:
        raise ConstrainError(str(error)) from error


def generators(seed: int | None) -> Iterator[np.random.Generator]:
    """Independent generators of random numbers without end, the first of which is the one that n = 1 gets."""
    root = np.random.SeedSequence(seed)
    yield np.random.default_rng(root)
    while True:
        yield np.random.default_rng(root.spawn(1)[0])


def as_generation(out: Outcome, ask: Ask) -> Generation:
    """An Outcome with its meaning."""
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
