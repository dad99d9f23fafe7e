"""`constrain demo`: show the main use: a schema, a model's answer token by token, and what it cost."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import mean, median
from time import perf_counter_ns
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.syntax import Syntax

from ..compilation.constraint_compiler import compile, to_grammar
from ..generation.pipeline import generate as write
from . import display
from .answer_output import generation_json, stream_pieces
from .answer_statistics import print_ending
from .cross_check import CrossCheck, validate_independently
from .generate_command import load_with_note
from .kernel_notice import load_kernels
from .source_options import JsonFlag, SchemaSource, attribute_errors, read_schema

if TYPE_CHECKING:
    from ..vocabulary.vocabulary import Vocabulary

__all__ = ["run_demo"]

REPLAYS = 5
"""Number of replays of the demo's text: the masks of a first text include the cost of the vocabulary's tables."""
PROMPT = "Describe a person."
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "email": {"type": "string", "format": "email"},
        "hobbies": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
    },
    "required": ["name", "age", "email"],
    "additionalProperties": False,
}
"""The schema that is shown if the folder `schemas/` of the repository is not available."""


def run_demo(
    schema: Annotated[str | None, typer.Option(help="Another schema: a file, or the JSON text.")] = None,
    prompt: Annotated[str | None, typer.Option(help="Another prompt.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same text.")] = 1,
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum number of tokens.")] = 512,
    as_json: JsonFlag = False,
) -> None:
    """Demonstrate generation: a schema, an answer of the embedded model token by token, and its validation."""
    source = person_schema() if schema is None else read_schema(schema)
    with attribute_errors(source.name):
        to_grammar(schema=source.text)
    request = prompt or (PROMPT if schema is None else "Fill in the form.")
    live = sys.stdout.isatty() and not as_json
    if not as_json:
        print_heading(f"the schema ({source.name})")
        show_json(source.text)
    load_kernels()
    model = load_with_note("demo")
    if not as_json:
        print_heading(f'the answer of the embedded model to "{request}", token by token')
    generated = write(
        model,
        request,
        schema=source.text,
        n=1,
        seed=seed,
        max_tokens=max_tokens,
        stream=stream_pieces() if live else None,
    )[0]
    theirs = validate_independently(source.text, generated.text.encode())
    if as_json:
        report = {"schema": json.loads(source.text), "prompt": request}
        display.as_json(report | generation_json(generated) | {"jsonschema": theirs.verdict})
    else:
        if not live:
            print(generated.text, end="")
        print()
        print_heading("the value")
        show_value(generated.value)
        print_heading("the verdict")
        print_check(theirs)
        print_ending(generated)
        compiling, spent = replay_masks(model.vocabulary, source.text, generated.tokens)
        display.print_note((
            f"replayed {REPLAYS} times, each with a new constraint: compiled in {median(compiling):,.0f} µs, "
            f"median {median(spent):.1f} µs a mask, mean {mean(spent):.1f}", "dim",
        ))  # fmt: skip
    raise typer.Exit(display.NO if theirs.verdict == "invalid" else display.FINE)


def person_schema() -> SchemaSource:
    """Return the schema of a person: that of the repository, or the built-in copy."""
    file = Path(__file__).parent.parent.parent / "schemas" / "person.json"
    if file.is_file():
        return SchemaSource("schemas/person.json", file.read_text("utf-8"))
    return SchemaSource("person.json", json.dumps(PERSON, indent=2))


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


def show_value(value: Any) -> None:
    """Print the parsed value: one member per line, as Python represents it."""
    if isinstance(value, dict):
        display.print_facts([(str(key), repr(item)) for key, item in value.items()])
    else:
        display.print_answer(repr(value))


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


def print_check(theirs: CrossCheck) -> None:
    """Print the verdict of the independent validator."""
    style = {"valid": "green", "invalid": "red", "none": "yellow"}[theirs.verdict]
    verdict = {"valid": "valid", "invalid": f"invalid: {theirs.message}", "none": theirs.message}[theirs.verdict]
    display.print_answer("the jsonschema package: ", (verdict, style))
