"""High-level text generation: `generate` takes a model, a prompt and a constraint, and returns text that satisfies it.

model, tokenizer  ->  LoadedModel  ->  after the prompt  ->  LanguageModel  --+
schema | regex | grammar | choices | type  ->  compile  ->  Constraint  ------+->  generation loop or sampler  ->
Generation

The steps are `generation_arguments` (checks), `model_preparation` (model, prompt, constraint), `finished_texts` (the
run) and `generation_result`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from time import perf_counter_ns
from typing import Any, overload

from ..base.json_documents import References
from ..base.options import Limits, Style
from ..decoding.generation_loop import Piece
from ..integrations.transformers_models import Prompt
from .finished_texts import draw_outcomes, generate_masked, select_sampler
from .generation_arguments import (
    Check,
    build_proposal,
    build_request,
    check_arguments,
    check_sampler_name,
    check_types,
    list_masked_options,
)
from .generation_result import Generation, as_generation, weigh_outcomes
from .model_preparation import as_bytes_checker, compile_request, limit_tokens, prepare_model
from .searched_texts import Search, check_search, search_outcomes

__all__ = ["Generation", "generate"]


@overload
def generate(
    model: Any, prompt: Prompt = None, *, schema: Any = ..., regex: str | None = ..., grammar: Any = ...,
    choices: Sequence[str] | None = ..., type: Any = ..., tokenizer: Any = ..., style: Style = ...,
    registry: Mapping[str, Any] | None = ..., base_uri: str = ...,
    import_paths: Sequence[str | PathLike[str]] = ..., limits: Limits = ..., sampler: str = ...,
    particles: int | None = ..., check: Check | None = ..., n: None = ..., max_tokens: int = ...,
    temperature: float = ..., top_k: int | None = ..., top_p: float | None = ..., seed: int | None = ...,
    stream: Callable[[Piece], None] | None = ..., search: Search | None = ...,
) -> Generation: ...  # fmt: skip
@overload
def generate(
    model: Any, prompt: Prompt = None, *, schema: Any = ..., regex: str | None = ..., grammar: Any = ...,
    choices: Sequence[str] | None = ..., type: Any = ..., tokenizer: Any = ..., style: Style = ...,
    registry: Mapping[str, Any] | None = ..., base_uri: str = ...,
    import_paths: Sequence[str | PathLike[str]] = ..., limits: Limits = ..., sampler: str = ...,
    particles: int | None = ..., check: Check | None = ..., n: int, max_tokens: int = ...,
    temperature: float = ..., top_k: int | None = ..., top_p: float | None = ..., seed: int | None = ...,
    stream: Callable[[Piece], None] | None = ..., search: Search | None = ...,
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
    search: Search | None = None,
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
    search : BeamSearch, BestFirst or StochasticBeams, optional
        Search for likely texts instead of sampling (docs/how-to/search-with-beams.md); n is then the most texts that
        are returned, best first. `stats.counts` has the ``score`` of each, and whether they are ``optimal``.

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
    request = build_request(schema, regex, grammar, choices, type, import_paths)
    check_sampler_name(sampler)
    check_types(style, limits, n, max_tokens, seed, stream, prompt)
    proposal = build_proposal(temperature, top_k, top_p)
    check_search(search, sampler, particles, proposal, stream)
    check_arguments(
        sampler=sampler, n=n, max_tokens=max_tokens, particles=particles, proposal=proposal, stream=stream,
        check=check if search is None else None,
    )  # fmt: skip
    vocabulary, load_prompted = prepare_model(model, tokenizer, prompt, request)
    start = perf_counter_ns()
    constraint = compile_request(vocabulary, request, style, References(registry, base_uri), limits)
    compile_us = (perf_counter_ns() - start) / 1e3
    lm = load_prompted()
    max_tokens = limit_tokens(lm, max_tokens)
    count = 1 if n is None else n
    checker = None if check is None else as_bytes_checker(check)
    if search is not None:
        outcomes = search_outcomes(lm, constraint, search, count, seed=seed, max_tokens=max_tokens, checker=checker)
        for outcome in outcomes:
            outcome.stats.compile_us = compile_us
        found = [as_generation(outcome, request) for outcome in outcomes]
        return found[0] if n is None else found
    choice = select_sampler(
        lm, constraint, sampler, particles=particles, checker=checker, seed=seed, max_tokens=max_tokens,
        masked_options=list_masked_options(proposal, stream),
    )  # fmt: skip
    if choice.sampler == "masked" and checker is None:
        outcomes, unfinished = generate_masked(
            lm, constraint, count, seed=seed, max_tokens=max_tokens, proposal=proposal, stream=stream
        )
    else:
        outcomes, unfinished = draw_outcomes(
            lm, constraint, choice.sampler, count, seed, max_tokens, {**choice.options, "checker": checker}
        )
    weights = weigh_outcomes(outcomes, unfinished, proposal, choice.sampler, count)
    for outcome in outcomes:
        stats = outcome.stats
        stats.counts = {**stats.counts, "unfinished": unfinished}
        stats.compile_us, stats.weights = compile_us, weights
        stats.sampler, stats.reason = choice.sampler, choice.reason
    generations = [as_generation(outcome, request) for outcome in outcomes]
    return generations[0] if n is None else generations
