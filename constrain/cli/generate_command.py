"""`constrain generate`: stream a model's answer that satisfies a constraint."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..base.errors import SourceError
from ..base.options import Style
from ..checking import PythonChecker, SqliteChecker, TextChecker
from ..search import BeamSearch, BestFirst, StochasticBeams
from . import display
from .answer_statistics import print_ending, print_statistics
from .common_arguments import SchemaOptions, takes_style
from .constraint_options import ChoiceOption, GrammarOption, RegexOption, SchemaOption, read_constraint
from .grammar_source import ImportOption
from .kernel_notice import load_kernels
from .model_options import ModelOption, PromptOption, read_prompt
from .source_options import JsonFlag, Seed, attribute_errors, read_bytes, silence_transformers

if TYPE_CHECKING:
    from ..decoding.generation_loop import Piece
    from ..generation.generation_result import Generation
    from ..generation.search_arguments import Search
    from ..integrations.transformers_models import LoadedModel

__all__ = ["generate_texts", "load_with_note", "stream_pieces"]

ORIGINS = {"drawn": "", "forced": "dim", "closing": "yellow"}
"""Style of a token while it is streamed: drawn by itself, found in a draft of forced text, or written to complete the
text."""


@takes_style(Style())
def generate_texts(
    schema: SchemaOption = None,
    regex: RegexOption = None,
    grammar: GrammarOption = None,
    choice: ChoiceOption = None,
    prompt: PromptOption = None,
    model: ModelOption = "demo",
    n: Annotated[int, typer.Option("-n", min=1, help="How many texts.")] = 1,
    seed: Seed = None,
    max_tokens: Annotated[
        int, typer.Option(min=1, help="Maximum number of tokens of a text, which is always complete.")
    ] = 512,
    temperature: Annotated[float, typer.Option(min=0, help="0 selects the likeliest token.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(min=1, help="Use only the K likeliest of the allowed tokens.")] = None,
    top_p: Annotated[
        float | None,
        typer.Option(max=1, help="Use only the likeliest of the allowed tokens with a total probability of P."),
    ] = None,
    min_p: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Use only tokens of at least this share of the likeliest one's probability."),
    ] = None,
    stop: Annotated[
        list[str] | None,
        typer.Option(help="End the text before this string, where it is complete there; may be repeated."),
    ] = None,
    repetition_penalty: Annotated[
        float, typer.Option(help="Above 1: tokens of the prompt and of the text so far become less likely.")
    ] = 1.0,
    presence_penalty: Annotated[
        float, typer.Option(help="Subtracted from the logits of tokens of the text so far.")
    ] = 0.0,
    frequency_penalty: Annotated[
        float, typer.Option(help="Subtracted from the logits of tokens for each time that the text so far has them.")
    ] = 0.0,
    logit_bias: Annotated[
        list[str] | None,
        typer.Option(metavar="TOKEN=BIAS", help="Add to the logit of a token: an id, or its text; may be repeated."),
    ] = None,
    chat: Annotated[
        str, typer.Option(help="template: render the prompt by the chat template of the model. plain: unchanged.")
    ] = "plain",
    show_constraint: Annotated[
        str | None,
        typer.Option(metavar="TEMPLATE", help="Show the constraint to the model: a text with {prompt}, {constraint}."),
    ] = None,
    sampler: Annotated[
        str, typer.Option(help="masked (streams); faithful to the model: exact, without_replacement, smc; or auto.")
    ] = "masked",
    particles: Annotated[int | None, typer.Option(min=1, help="Number of particles, for smc and pimh.")] = None,
    search: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[:N]",
            help="Search for the likeliest texts instead: beam:WIDTH, best-first:CALLS or stochastic:CALLS.",
        ),
    ] = None,
    draft: Annotated[
        str | None,
        typer.Option(help="What guesses tokens ahead: constraint, prompt, suffix, recycling, none, or a model."),
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(metavar="NAME[=FILE]", help="Check the text while it is written: python, or sqlite=SCRIPT."),
    ] = None,
    retries: Annotated[int, typer.Option(min=0, help="How often a text that --check refuses is drawn again.")] = 3,
    folders: ImportOption = None,
    options: SchemaOptions = SchemaOptions(),
    with_stats: Annotated[
        bool, typer.Option("--stats", help="Print what the texts cost, and how faithful they are.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Generate text that satisfies --schema, --regex, --grammar or --choice.

    The text is printed to stdout, how it ended to stderr. On a terminal it is streamed, with forced text dimmed.
    """
    given = read_constraint(schema, regex, grammar, choice, folders, options)
    biases = dict(map(read_bias, logit_bias or ()))
    searched, checker = read_search(search), read_checker(check)
    prompt = read_prompt(prompt)
    load_kernels()
    live = sys.stdout.isatty() and not as_json and n == 1 and sampler == "masked" and not search and not check
    from ..generation.pipeline import generate as write

    prompted = load_with_note(model)
    with attribute_errors(given.name), nullcontext() if live else display.show_progress("writing …"):
        generations = write(
            prompted, prompt, **given.arguments, style=given.options.style, registry=given.options.registry, n=n,
            seed=seed, max_tokens=max_tokens, temperature=temperature, top_k=top_k, top_p=top_p, sampler=sampler,
            particles=particles, stream=stream_pieces() if live else None, min_p=min_p, stop=stop or None,
            repetition_penalty=repetition_penalty, presence_penalty=presence_penalty,
            frequency_penalty=frequency_penalty, logit_bias=biases, chat=chat, show_constraint=show_constraint,
            search=searched, draft=draft, check=checker, retries=retries,
        )  # fmt: skip
    if as_json:
        display.as_json({"texts": [generation_json(one) for one in generations]})
        return
    if live:
        print()
    for one in generations:
        if not live:
            print(one.text)
        print_ending(one)
    if with_stats:
        print_statistics(generations)


def read_search(option: str | None) -> Search | None:
    """Return the search of an option NAME[:N]. Raise BadParameter if there is none of that name."""
    if option is None:
        return None
    name, _, number = option.partition(":")
    searches: dict[str, Callable[..., Search]] = {
        "beam": BeamSearch,
        "best-first": BestFirst,
        "stochastic": StochasticBeams,
    }
    is_number = number.isascii() and number.isdigit() and len(number) < 10
    if name not in searches or (":" in option and not is_number):
        raise typer.BadParameter(f"--search is {option!r}: give beam:8, best-first:1000 or stochastic:1000.")
    return searches[name](*([int(number)] if number else []))


def read_checker(option: str | None) -> TextChecker | None:
    """Return the checker of an option NAME[=FILE]. Raise BadParameter if there is none of that name."""
    if option is None:
        return None
    name, _, file = option.partition("=")
    if option == "python":
        return PythonChecker()
    if name != "sqlite" or not file:
        raise typer.BadParameter(f"--check is {option!r}: give python, or sqlite=FILE with CREATE statements.")
    with attribute_errors(file):
        try:
            return SqliteChecker(read_bytes(file).decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise SourceError(f"byte {error.start} is not valid UTF-8", hint="Give a script of SQL.") from None


def read_bias(option: str) -> tuple[int | str, float]:
    """Return the token and bias of an option TOKEN=BIAS; a token of digits is an id. Raise BadParameter otherwise."""
    token, _, bias = option.rpartition("=")
    try:
        number = float(bias)
    except ValueError:
        number = float("nan")
    if not token or number != number:
        raise typer.BadParameter(f"--logit-bias is {option!r}: give TOKEN=BIAS, such as 17=-5 or yes=2.")
    return int(token) if token.isascii() and token.isdigit() and len(token) < 10 else token, number


def load_with_note(model: str) -> LoadedModel:
    """Return the model, with a note while it is loaded."""
    from ..integrations.transformers_models import load_model

    with display.show_progress(f"loading the model {model} …"):
        silence_transformers()
        return load_model(model)


def stream_pieces() -> Callable[[Piece], None]:
    """Return a function that prints pieces as they arrive."""
    out = display.answer_console()

    def stream(piece: Piece) -> None:
        out.print(
            display.replace_controls(piece.text), style=ORIGINS[piece.origin], end="", markup=False, soft_wrap=True
        )
        sys.stdout.flush()

    return stream


def generation_json(generation: Generation[Any]) -> dict[str, Any]:
    """Return a Generation as JSON data."""
    return {
        "text": generation.text, "value": generation.value, "finish_reason": generation.finish_reason,
        "stop": generation.stop, "tokens": list(generation.tokens), "logprob": generation.logprob,
        "log_weight": generation.log_weight,
        "stats": asdict(generation.stats),
    }  # fmt: skip
