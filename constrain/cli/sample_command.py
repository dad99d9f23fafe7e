"""`constrain sample`: random valid instances of a schema, or random sentences of a grammar, without a model."""

from __future__ import annotations

import json
import sys
from itertools import islice
from random import Random
from typing import Annotated

import numpy as np
import typer

from ..authoring.grammar_tools.random_sentences import SIZE as RULES, draw_sentences
from ..authoring.samples.distinct_instances import distinct_texts
from ..base.errors import check_count
from ..base.options import Style
from ..compilation.constraint_compiler import compile
from ..grammars import BLOCK
from ..vocabulary.vocabulary import Vocabulary
from . import display
from .common_arguments import SchemaOptions, takes_style
from .cross_check import validate_independently
from .grammar_source import ImportOption, LexerOption, StartOption, grammar_of, is_grammar
from .kernel_notice import load_kernels
from .source_options import JsonFlag, SchemaArgument, Seed, attribute_errors, read_schema

__all__ = ["print_samples"]

SIZE = 600
"""Default number of bytes after which an instance of a schema is completed."""


@takes_style(Style())
def print_samples(
    schema: SchemaArgument,
    n: Annotated[int, typer.Option("-n", min=0, help="Number of samples.")] = 5,
    seed: Seed = None,
    size: Annotated[
        int | None,
        typer.Option(
            min=1, help="Bytes after which an instance is completed (600); for a grammar: rules and lexemes (60)."
        ),
    ] = None,
    start: StartOption = None,
    lexer: LexerOption = None,
    folders: ImportOption = None,
    options: SchemaOptions = SchemaOptions(),
    as_json: JsonFlag = False,
) -> None:
    """Print different random valid instances of a schema, one per line, without any model.

    Sampling always terminates, also for recursive schemas. Keys come in the order of the schema, optional ones
    sometimes. Instances that the jsonschema package, if installed, rejects (binary floats, Python's patterns) are drawn
    again.

    For a grammar (.lark, .gbnf): different random sentences; if any has several lines, all are printed as blocks under
    `--- accept`, as `constrain test --examples` reads them.
    """
    if seed is not None:
        check_count("--seed", seed)
    if is_grammar(schema):
        sample_grammar(schema, n, Random(seed), size, start, lexer, folders, as_json)
        return

    source = read_schema(schema)
    options = options.relative_to(source)
    load_kernels()
    with attribute_errors(source.name):
        constraint = compile(Vocabulary.bytes(), schema=source.text, style=options.style, registry=options.registry)

    def agreed(text: bytes) -> bool:
        return validate_independently(source.text, text, options).verdict != "invalid"

    drawn = distinct_texts(constraint, n, rng=np.random.default_rng(seed), size=size or SIZE, agree=agreed)
    made = (text.decode() for text in drawn)
    count = 0
    if as_json:  # Print the texts themselves, so that numbers keep all their digits.
        texts = list(made)
        count = len(texts)
        print(f'{{"instances": [{", ".join(texts)}]}}')
    else:
        for text in made:
            print(text)
            count += 1
    print_missing(count, n, "instance")


def print_missing(count: int, n: int, kind: str) -> None:
    """Report on stderr if there are fewer samples than requested."""
    if count < n:
        print(f"{count} instead of {n}: no further {kind} was found.", file=sys.stderr)


def sample_grammar(
    given: str,
    n: int,
    rng: Random,
    size: int | None,
    start: str | None,
    lexer: str | None,
    folders: list[str] | None,
    as_json: bool,
) -> None:
    """Print sentences of a grammar."""

    written = grammar_of(given, start, lexer, folders)
    load_kernels()
    with attribute_errors(written.name):
        sentences = [text.decode() for text in islice(draw_sentences(written, rng, size or RULES), n)]
    if as_json:
        display.as_json({"sentences": sentences})
    elif any("\n" in text or "\r" in text for text in sentences):
        for text in sentences:
            plain = "\r" not in text and not BLOCK.search(text)
            print("--- accept" if plain else f"--- accept as JSON\n{json.dumps(text)}")
            if plain:
                print(text)
    else:
        for text in sentences:
            print(text)
    print_missing(len(sentences), n, "sentence")
