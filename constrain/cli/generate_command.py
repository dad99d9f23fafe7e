"""`constrain generate`: stream a model's answer that satisfies a constraint."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict
from typing import Annotated, Any, Literal

import typer

from ..base.options import Style
from ..decoding.events import FinishEvent
from ..dialogue import Tool, tool_calls
from ..generation.inference_engine import Engine
from ..generation.pipeline import generate
from ..integrations.transformers_models import LoadedModel, load_model
from . import display
from .answer_output import AnswerPrinter, generation_json, stream_pieces
from .answer_statistics import print_ending, print_statistics
from .common_arguments import SchemaOptions, takes_style
from .constraint_options import (
    ChoiceOption,
    GivenConstraint,
    GrammarOption,
    PydanticOption,
    RegexOption,
    SchemaOption,
    ToolChoiceOption,
    ToolFormatOption,
    ToolsOption,
    TypedOptions,
    TypeOption,
    read_constraint,
)
from .generation_options import CHOICE, read_bias, read_checker, read_sampler, read_search
from .grammar_source import ImportOption
from .kernel_notice import load_kernels
from .model_options import PANEL, ModelOption, PromptOption
from .prompt_options import PromptFileOption, is_messages, read_prompts
from .source_options import JsonFlag, Seed, attribute_located_errors, check_stdin, silence_transformers

__all__ = ["generate_texts", "load_with_note"]


def choice_option(help: str, **how: Any) -> Any:
    """Return an option that says how tokens are chosen."""
    return typer.Option(help=help, rich_help_panel=CHOICE, **how)


@takes_style(Style())
def generate_texts(
    schema: SchemaOption = None,
    regex: RegexOption = None,
    grammar: GrammarOption = None,
    choice: ChoiceOption = None,
    type_text: TypeOption = None,
    pydantic: PydanticOption = None,
    tools: ToolsOption = None,
    tool_format: ToolFormatOption = "hermes",
    tool_choice: ToolChoiceOption = "auto",
    prompt: PromptOption = None,
    prompt_file: PromptFileOption = None,
    model: ModelOption = "demo",
    chat: Annotated[
        Literal["plain", "template"],
        typer.Option(
            rich_help_panel=PANEL,
            help="template: render prompts by the chat template of the model, which shows it --tools. "
            "plain: unchanged. Messages of --prompt-file are always rendered.",
        ),
    ] = "plain",
    show_constraint: Annotated[
        str | None,
        typer.Option(
            metavar="TEMPLATE",
            rich_help_panel=PANEL,
            help="Show the constraint to the model: a text with {prompt}, {constraint}.",
        ),
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="How many texts for each prompt.")] = 1,
    max_tokens: Annotated[
        int, typer.Option(min=1, help="Maximum number of tokens of a text, which is always complete.")
    ] = 512,
    stop: Annotated[
        list[str] | None,
        typer.Option(help="End the text before this string, where it is complete there; may be repeated."),
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(metavar="NAME[=FILE]", help="Check the text while it is written: python, or sqlite=SCRIPT."),
    ] = None,
    retries: Annotated[
        int, typer.Option(min=0, help="How often a text that --check or --pydantic refuses is drawn again.")
    ] = 3,
    seed: Seed = None,
    temperature: Annotated[float, choice_option("0 selects the likeliest token.", min=0)] = 1.0,
    top_k: Annotated[
        int | None, choice_option("Use only the K likeliest of the allowed tokens.", min=1, metavar="K")
    ] = None,
    top_p: Annotated[
        float | None,
        choice_option("Use only the likeliest tokens with a total probability of P.", max=1, metavar="P"),
    ] = None,
    min_p: Annotated[
        float | None,
        choice_option("Use only tokens of at least this share of the likeliest one's probability.", min=0, max=1),
    ] = None,
    repetition_penalty: Annotated[
        float, choice_option("Above 1: tokens of the prompt and of the text so far become less likely.")
    ] = 1.0,
    presence_penalty: Annotated[float, choice_option("Subtracted from the logits of tokens of the text so far.")] = 0.0,
    frequency_penalty: Annotated[
        float, choice_option("Subtracted from the logits of tokens for each time that the text so far has them.")
    ] = 0.0,
    logit_bias: Annotated[
        list[str] | None,
        choice_option("Add to the logit of a token: an id, or its text; may be repeated.", metavar="TOKEN=BIAS"),
    ] = None,
    sampler: Annotated[
        str,
        choice_option(
            "masked (streams); faithful to the model: exact, without_replacement, smc; or auto.", metavar="NAME"
        ),
    ] = "masked",
    particles: Annotated[int | None, choice_option("Number of particles, for smc and pimh.", min=1)] = None,
    search: Annotated[
        str | None,
        choice_option(
            "Search for the likeliest texts instead: beam:WIDTH, best-first:CALLS or stochastic:CALLS.",
            metavar="NAME[:N]",
        ),
    ] = None,
    draft: Annotated[
        str | None,
        choice_option(
            "What guesses tokens ahead: constraint, prompt, suffix, recycling, none, or a model.", metavar="NAME"
        ),
    ] = None,
    folders: ImportOption = None,
    options: SchemaOptions = SchemaOptions(),
    with_stats: Annotated[
        bool, typer.Option("--stats", help="Print every figure, explained: cost, probability, faithfulness.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Generate text that satisfies a constraint.

    The text goes to stdout; why it ended (its finish_reason), its tokens and its time go to stderr. On a terminal it is
    streamed, with forced text dimmed. Several texts (-n, --prompt-file) are printed as they end; Ctrl-C keeps those
    that have ended, with exit code 130.
    """
    typed = TypedOptions(type_text, pydantic, tools, tool_format, tool_choice)
    check_stdin(schema=schema, grammar=grammar, tools=tools, prompt=prompt, prompt_file=prompt_file)
    given = read_constraint(schema, regex, grammar, choice, folders, options, typed)
    prompts = read_prompts(prompt, prompt_file)
    arguments: dict[str, Any] = {
        "n": n, "max_tokens": max_tokens, "stop": stop or None, "check": read_checker(check), "retries": retries,
        "seed": seed, "temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p,
        "repetition_penalty": repetition_penalty, "presence_penalty": presence_penalty,
        "frequency_penalty": frequency_penalty, "logit_bias": dict(map(read_bias, logit_bias or ())),
        "search": read_search(search), "draft": draft, "chat": chat, "show_constraint": show_constraint,
    }  # fmt: skip
    load_kernels()
    loaded = load_with_note(model)
    if given.tools:
        prompts = show_tools(loaded, prompts, given.tools, chat)
    arguments |= {**given.arguments, "style": given.options.style, "registry": given.options.registry}
    sampling = {"sampler": read_sampler(sampler), "particles": particles}
    printer = AnswerPrinter(len(prompts) if prompt_file is not None else 1, n, "json" if as_json else "text")
    code = write_answers(loaded, prompts, arguments, sampling, given.name, printer)
    if as_json:
        display.as_json(answers_json(printer, given, tool_format, code))
    elif with_stats and printer.kept:
        print_statistics(printer.generations)
    raise typer.Exit(code)


def write_answers(
    model: LoadedModel, prompts: Any, arguments: dict[str, Any], sampling: dict[str, Any], name: str,
    printer: AnswerPrinter,
) -> int:  # fmt: skip
    """Generate the texts and print them as they end. Return the exit code: 130 if Ctrl-C ended it."""
    is_masked = sampling == {"sampler": "masked", "particles": None} and arguments["search"] is None
    is_live = is_masked and printer.total == 1 and arguments["check"] is None and printer.output == "text"
    try:
        with attribute_located_errors(name):
            if is_live and sys.stdout.isatty():
                write_live(model, prompts, arguments, printer)
            elif is_masked and printer.total > 1:
                with printer:
                    asyncio.run(write_several(model, prompts, arguments, printer))
            else:
                with printer:
                    write_together(model, prompts, {**arguments, **sampling}, printer)
    except KeyboardInterrupt:
        printer.print_interruption()
        return display.INTERRUPTED
    printer.print_end()
    return display.FINE


def write_live(model: LoadedModel, prompts: Any, arguments: dict[str, Any], printer: AnswerPrinter) -> None:
    """Write one text token by token."""
    try:
        [made] = flatten_results(generate(model, prompts, stream=stream_pieces(), **arguments))
    finally:
        print()
    printer.kept.append((0, 0, made))
    print_ending(made)


async def write_several(model: LoadedModel, prompts: Any, arguments: dict[str, Any], printer: AnswerPrinter) -> None:
    """Write the texts as one batch, and print each when it has ended. Raise the first error of a text at the end."""
    errors = []
    with Engine(model) as engine:
        async for event in engine.stream(prompts, **arguments):  # type: ignore[misc]
            if isinstance(event, FinishEvent):
                if event.error is None:
                    printer.take_event(event)
                else:
                    errors.append(event.error)
    if errors:
        raise errors[0]


def write_together(model: LoadedModel, prompts: Any, arguments: dict[str, Any], printer: AnswerPrinter) -> None:
    """Write the texts by one call: samplers that weigh all texts of a call, and searches, have them at the end."""
    results = generate(model, prompts, **arguments)
    printer.take_all(results if printer.prompts > 1 or isinstance(results[0], list) else [results])


def flatten_results(results: Any) -> list[Any]:
    """Return the texts of all prompts as one list."""
    return [one for part in results for one in (part if isinstance(part, list) else [part])]


def show_tools(model: LoadedModel, prompts: Any, tools: tuple[Tool, ...], chat: str) -> Any:
    """Return the prompts with the definitions of tools, as the chat template of the model shows them.

    A prompt that is plain text stays as it is: its author decides what it says of tools.
    """
    if isinstance(prompts, list) and not is_messages(prompts):
        return [show_tools(model, one, tools, chat) for one in prompts]
    is_rendered = is_messages(prompts) or (chat == "template" and isinstance(prompts, str))
    if not is_rendered or not getattr(model.tokenizer, "chat_template", None):
        return prompts
    messages = [{"role": "user", "content": prompts}] if isinstance(prompts, str) else prompts
    rendered = model.tokenizer.apply_chat_template(
        messages, tools=[tool.openai() for tool in tools], add_generation_prompt=True, return_dict=True
    )
    return [int(token) for token in rendered["input_ids"]]


def answers_json(printer: AnswerPrinter, given: GivenConstraint, tool_format: str, code: int) -> dict[str, Any]:
    """Return the document of --json."""
    texts = []
    for prompt, _, one in sorted(printer.kept, key=lambda item: item[:2]):
        calls = [asdict(call) for call in tool_calls(one.text, tool_format)] if given.tools else None
        texts.append({
            **({"prompt": prompt} if printer.prompts > 1 else {}), **generation_json(one),
            **({} if calls is None else {"tool_calls": calls}),
        })  # fmt: skip
    return {"texts": texts, **({"interrupted": True} if code else {})}


def load_with_note(model: str) -> LoadedModel:
    """Return the model, with a note while it is loaded."""
    with display.show_progress(f"loading the model {model} …"):
        silence_transformers()
        return load_model(model)
