"""`constrain sample`: random valid instances, with no model."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from ..style import Style
from .kernels import ready
from .opinion import second_opinion
from .options import Any_, JsonFlag, KeyOrder, SchemaArgument, Seed, Spacing, about, read_schema, style_of

__all__ = ["sample"]

TRIES = 8
"""Instances drawn for one, where jsonschema judges otherwise; the last is printed in any case: it is valid."""


def sample(
    schema: SchemaArgument,
    n: Annotated[int, typer.Option("-n", min=0, help="How many.")] = 5,
    seed: Seed = None,
    size: Annotated[int, typer.Option(min=1, help="Bytes after which an instance is closed.")] = 600,
    key_order: KeyOrder = None,
    whitespace: Spacing = None,
    anything: Any_ = False,
    as_json: JsonFlag = False,
) -> None:
    """Random valid instances of a schema, one a line: test data, without any model.

    It always ends, also for recursive schemas. Keys come in the order of the schema, optional ones sometimes. What the
    jsonschema package, if installed, would judge otherwise (binary floats, Python's patterns) is drawn again.
    """
    from ..compile import compile
    from ..sampling.random_walk import random_text
    from ..tokens.vocabulary import Vocabulary

    style = style_of(key_order, whitespace, anything, base=Style())
    source = read_schema(schema)
    ready()
    with about(source.name):
        constraint = compile(Vocabulary.bytes(), schema=source.text, style=style)

    def drawn(rng: np.random.Generator) -> str:
        for _ in range(TRIES):
            text = random_text(constraint, rng, size=size)
            if second_opinion(source.text, text).verdict != "invalid":
                break
        return text.decode()

    made = (drawn(np.random.default_rng(sequence)) for sequence in np.random.SeedSequence(seed).spawn(n))
    if as_json:  # The texts themselves, so that numbers keep all their digits.
        print(f'{{"instances": [{", ".join(made)}]}}')
        return
    for text in made:
        print(text)
