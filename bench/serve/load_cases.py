"""The requests of the clients: schemas whose shortest answer fits the budget, and hostile inputs.

Constrained and unconstrained requests have the same prompt. An unconstrained one generates exactly as many tokens as an
answer under the constraint: a logit bias prevents the end token. As a bias costs a few percent of the time of a token,
constrained requests have one as well, of negligible size.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..corpus import Case
from ..decoding.budgets import count_least
from ..decoding.plain import make_prompt
from ..hostile.rows import ROWS
from ..mask_errors.judge import Judge

__all__ = ["PATH", "LoadCase", "choose_load_cases", "list_hostile_bodies", "make_free_body"]

PATH = "/v1/completions"
END = "2"
"""The end token of the embedded model."""


@dataclass
class LoadCase:
    """A schema of the load. lengths: numbers of tokens of its answers so far. judge: of its answers."""

    case: Case
    judge: Judge
    lengths: list[int] = field(default_factory=list)

    def make_body(self, max_tokens: int, seed: int) -> bytes:
        """Return a request under the schema."""
        schema = {"structured_outputs": {"json": json.loads(self.case.schema)}}
        return write_body(self.case, max_tokens, seed, {**schema, "logit_bias": {END: 1e-6}})


def write_body(case: Case, max_tokens: int, seed: int, more: dict[str, Any]) -> bytes:
    """Return a streaming request for one text."""
    body = {
        "model": "demo", "prompt": make_prompt(case), "max_tokens": max_tokens, "seed": seed, "temperature": 1.0,
        "stream": True, "stream_options": {"include_usage": True}, **more,
    }  # fmt: skip
    return json.dumps(body).encode()


def make_free_body(one: LoadCase, tokens: int, seed: int) -> bytes:
    """Return a request for exactly `tokens` tokens, without a constraint."""
    return write_body(one.case, tokens, seed, {"logit_bias": {END: -100}})


def choose_load_cases(cases: Sequence[Case], count: int, max_tokens: int) -> list[LoadCase]:
    """Return the first `count` cases that compile, that jsonschema can judge, and whose shortest answer fits."""
    import constrain

    vocabulary = constrain.Vocabulary.from_pretrained(constrain.demo.model_folder())
    found: list[LoadCase] = []
    for case in cases:
        if len(found) == count:
            break
        try:
            least = count_least(constrain.compile(vocabulary, schema=case.schema))
            judge = Judge(case.schema)
        except Exception:  # refused by constrain, or unreadable for jsonschema
            continue
        if least is not None and least <= max_tokens and agrees_with_labels(judge, case):
            found.append(LoadCase(case, judge))
    return found


def agrees_with_labels(judge: Judge, case: Case) -> bool:
    """Return whether the judge agrees with the labels of the instances of a case."""
    return all(judge(test.text).valid == test.valid for test in case.tests)


def list_hostile_bodies(max_tokens: int) -> list[tuple[str, bytes]]:
    """Return the name and request of each input of `bench hostile` that is a schema, pattern or grammar."""
    fields = {"schema": "json", "regex": "regex", "gbnf": "grammar", "lark": "grammar"}
    bodies = []
    for row in ROWS:
        if row.kind in fields:
            value = row.text if row.kind == "schema" else json.dumps(row.text)
            head = f'{{"model": "demo", "prompt": "x", "max_tokens": {max_tokens}, "structured_outputs": '
            bodies.append((row.name, f'{head}{{"{fields[row.kind]}": {value}}}}}'.encode("utf-8", "surrogatepass")))
    return bodies
