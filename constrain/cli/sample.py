"""`constrain sample`: random valid instances, with no model."""

from __future__ import annotations

import sys
from typing import Annotated

import numpy as np
import typer

from ..style import Style
from .asked import Asked, takes_style
from .kernels import ready
from .opinion import second_opinion
from .options import JsonFlag, SchemaArgument, Seed, about, read_schema

__all__ = ["sample"]


@takes_style(Style())
def sample(
    schema: SchemaArgument,
    n: Annotated[int, typer.Option("-n", min=0, help="How many.")] = 5,
    seed: Seed = None,
    size: Annotated[int, typer.Option(min=1, help="Bytes after which an instance is closed.")] = 600,
    asked: Asked = Asked(),
    as_json: JsonFlag = False,
) -> None:
    """Different random valid instances of a schema, one a line: test data, without any model.

    It always ends, also for recursive schemas. Keys come in the order of the schema, optional ones sometimes. What the
    jsonschema package, if installed, would judge otherwise (binary floats, Python's patterns) is drawn again.
    """
    from ..compile import compile
    from ..sampling.distinct import distinct_texts
    from ..tokens.vocabulary import Vocabulary

    source = read_schema(schema)
    ready()
    with about(source.name):
        constraint = compile(Vocabulary.bytes(), schema=source.text, style=asked.style, registry=asked.registry)

    def agreed(text: bytes) -> bool:
        return second_opinion(source.text, text, asked).verdict != "invalid"

    drawn = distinct_texts(constraint, n, rng=np.random.default_rng(seed), size=size, agree=agreed)
    made = (text.decode() for text in drawn)
    count = 0
    if as_json:  # The texts themselves, so that numbers keep all their digits.
        texts = list(made)
        count = len(texts)
        print(f'{{"instances": [{", ".join(texts)}]}}')
    else:
        for text in made:
            print(text)
            count += 1
    if count < n:
        print(f"{count} instead of {n}: no other instance was found.", file=sys.stderr)
