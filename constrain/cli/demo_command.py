"""`constrain demo`: show the main use: what a model writes without and with a schema, and what the schema costs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.syntax import Syntax

from ..compilation.constraint_compiler import compile, to_grammar
from ..generation.pipeline import generate as write
from ..validation.instance_validation import validate
from . import display
from .answer_output import generation_json, stream_pieces
from .answer_statistics import print_ending
from .cross_check import CrossCheck, validate_independently
from .generate_command import load_with_note
from .kernel_notice import load_kernels
from .source_options import JsonFlag, SchemaSource, attribute_errors, read_schema

if TYPE_CHECKING:
    from ..generation.generation_result import Generation
    from ..integrations.transformers_models import LoadedModel
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["run_demo"]

REPLAYS = 5
"""Number of replays of the demo's text: the masks of a first text include the cost of the vocabulary's tables."""
FREE_TOKENS = 40
"""Maximum number of tokens of the text without a schema."""
PROMPT = "Describe a person."
PERSON = """{
  "type": "object",
  "properties": {
    "name": {"type": "string", "minLength": 1},
    "age": {"type": "integer", "minimum": 0, "maximum": 120},
    "email": {"type": "string", "format": "email"},
    "hobbies": {
      "type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3
    }
  },
  "required": ["name", "age", "email"],
  "additionalProperties": false
}"""
"""The schema that is shown if the folder `schemas/` of the repository is not available."""


def run_demo(
    schema: Annotated[str | None, typer.Option(help="Another schema: a file, or the JSON text.")] = None,
    prompt: Annotated[str | None, typer.Option(help="Another prompt.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same text.")] = 1,
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum number of tokens.")] = 512,
    as_json: JsonFlag = False,
) -> None:
    """Demonstrate generation: what the embedded model answers without a schema, and with it."""
    source = person_schema() if schema is None else read_schema(schema)
    with attribute_errors(source.name):
        to_grammar(schema=source.text)
    request = prompt or (PROMPT if schema is None else "Fill in the form.")
    is_live = sys.stdout.isatty() and not as_json
    load_kernels()
    model = load_with_note("demo")
    if not as_json:
        print_heading(f'1  Asked "{request}", a small model may write what it likes:')
    free = write(model, request, regex=r"[\s\S]*", seed=seed, max_tokens=FREE_TOKENS).text
    if not as_json:
        display.print_answer(free or "(nothing)")
        print_verdict(source.text, free)
        print_heading(f"2  A program needs this form, a JSON Schema ({source.name}):")
        show_json(source.text)
        print_heading("3  Now the model may write, token by token, only what the form allows:")
    stream = stream_pieces() if is_live else None
    generated = write(model, request, schema=source.text, seed=seed, max_tokens=max_tokens, stream=stream)
    theirs = validate_independently(source.text, generated.text.encode())
    if as_json:
        report = {"schema": json.loads(source.text), "prompt": request, "unconstrained": free}
        display.as_json(report | generation_json(generated) | {"jsonschema": theirs.verdict})
    else:
        print("" if is_live else generated.text)
        print_verdict(source.text, generated.text, theirs)
        display.print_answer()
        display.print_note((describe_cost(model, source.text, generated), "dim"))
        print_ending(generated)
        display.print_note(("next: constrain generate --help · constrain play · constrain --help", "dim"))
    raise typer.Exit(display.NO if theirs.verdict == "invalid" else display.FINE)


def person_schema() -> SchemaSource:
    """Return the schema of a person: that of the repository, or the built-in copy."""
    file = Path(__file__).parent.parent.parent / "schemas" / "person.json"
    if file.is_file():
        return SchemaSource("schemas/person.json", file.read_text("utf-8"))
    return SchemaSource("person.json", PERSON)


def print_heading(text: str) -> None:
    """Print a heading."""
    display.print_answer()
    display.print_answer((text, "bold cyan"))


def show_json(text: str) -> None:
    """Print JSON text unchanged, coloured on a terminal."""
    if sys.stdout.isatty():
        coloured = Syntax(text.rstrip(), "json", theme="ansi_dark", background_color="default", word_wrap=True)
        display.answer_console().print(coloured)
    else:
        print(text.rstrip())


def print_verdict(schema: str, text: str, theirs: CrossCheck | None = None) -> None:
    """Print whether a text is valid, and what jsonschema says, if it has a verdict."""
    violations = validate(schema, text=text)
    if violations:
        display.print_answer(
            ("not valid: ", "red"), f"{violations[0].pointer}: {violations[0].message}".removeprefix(": ")
        )
    else:
        display.print_answer(("valid", "green"))
    if theirs is not None and theirs.verdict != "none":
        style = {"valid": "green", "invalid": "red"}[theirs.verdict]
        display.print_answer(
            "the jsonschema package: ", (theirs.verdict, style), theirs.message and f": {theirs.message}"
        )


def describe_cost(model: LoadedModel, schema: str, generated: Generation[Any]) -> str:
    """Return what the schema cost, beside the model."""
    compiling, spent = replay_masks(model.vocabulary, schema, generated.tokens)
    stats = generated.stats
    return (
        f"The schema took {median(compiling):,.0f} µs once and {median(spent):.1f} µs a token, "
        f"the model {stats.model_us_total / 1e3 / max(1, stats.tokens):.0f} ms a token."
    )


def replay_masks(vocabulary: Vocabulary, schema: str, tokens: tuple[int, ...]) -> tuple[list[float], list[float]]:
    """Return the times in µs of each compilation, and of each mask along these tokens.

    Each replay uses a new Constraint; the vocabulary's tables exist already.
    """
    compiling, spent = [], []
    for _ in range(REPLAYS):
        start = perf_counter_ns()
        matcher, mask = compile(vocabulary, schema=schema).matcher(), None
        compiling.append((perf_counter_ns() - start) / 1e3)
        for token in (*tokens, None):
            start = perf_counter_ns()
            mask = matcher.mask(mask)
            spent.append((perf_counter_ns() - start) / 1e3)
            if token is not None:
                matcher.advance(token)
    return compiling, spent
