"""Real constraints for the demo model: dev schemas that a seeded rule picks, and grammars of the package."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import constrain
from constrain import demo
from constrain.base.errors import ConstrainError
from constrain.engine.constraint import Constraint
from constrain.generation.model_preparation import limit_tokens
from constrain.grammars import names, text as grammar_text

from ..corpus import Case
from ..counted_models import CountedModel

__all__ = ["RealTask", "pick_grammars", "pick_schemas"]

REQUEST = "Answer with an instance of the schema."
LONGEST_SCHEMA = 1200
"""Characters of a schema: longer ones leave the demo model no tokens for an answer."""
SHARE = 0.5
"""Maximum length of a shortest answer, as a share of max_tokens."""
FEWEST_BYTES = 8
"""Minimum number of bytes of a shortest answer; shorter ones test nothing."""
GRAMMAR_PROMPTS = {"arithmetic": "A sum of three numbers.", "iso8601": "When does the meeting begin?",
                   "jsonpath": "The path of the first title.", "cron": "Every Monday at noon.",
                   "email": "Who can help me?", "lisp": "Add one and two."}  # fmt: skip
"""The prompt for each grammar; grammars that are not listed are skipped."""


@dataclass(frozen=True)
class RealTask:
    """A constraint, and the model after the prompt of it."""

    name: str
    lm: CountedModel
    constraint: Constraint
    max_tokens: int


def pick_schemas(cases: Sequence[Case], model: Any, count: int, max_tokens: int, seed: int) -> Iterator[RealTask]:
    """Yield `count` tasks: of the cases in an order drawn with `seed`, the first that fit.

    A schema fits if it is an object of at most LONGEST_SCHEMA characters, compiles, leaves max_tokens positions after
    its prompt, and has a shortest instance of FEWEST_BYTES bytes to SHARE * max_tokens tokens.
    """
    order = list(cases)
    random.Random(seed).shuffle(order)
    made = 0
    for case in order:
        schema = json.loads(case.schema)
        if made == count:
            return
        has_instance = any(one.valid for one in case.tests)
        if len(case.schema) > LONGEST_SCHEMA or not isinstance(schema, dict) or not has_instance:
            continue
        try:
            constraint = constrain.compile(model.vocabulary, schema=schema)
        except ConstrainError:  # unsatisfiable, or beyond a limit
            continue
        task = make_task(case.id, model, demo.compose_prompt(REQUEST, schema=schema), constraint, max_tokens)
        if task is not None:
            made += 1
            yield task


def pick_grammars(model: Any, count: int, max_tokens: int, seed: int) -> Iterator[RealTask]:
    """Yield tasks of `count` grammars of GRAMMAR_PROMPTS, in an order drawn with `seed`, that fit as schemas do."""
    order = [name for name in names() if name in GRAMMAR_PROMPTS]
    random.Random(seed).shuffle(order)
    made = 0
    for name in order:
        if made == count:
            return
        constraint = constrain.compile(model.vocabulary, grammar=constrain.lark(grammar_text(name)))
        task = make_task(name, model, demo.compose_prompt(GRAMMAR_PROMPTS[name]), constraint, max_tokens, fewest=1)
        if task is not None:
            made += 1
            yield task


def make_task(
    name: str, model: Any, prompt: str, constraint: Constraint, max_tokens: int, fewest: int = FEWEST_BYTES
) -> RealTask | None:
    """Return the task, or None if it does not fit."""
    try:
        lm = model.on(prompt)
        shortest = constraint.matcher().shortest_completion()
        if limit_tokens(lm, max_tokens) < max_tokens or shortest is None or len(shortest) < fewest:
            return None
    except ConstrainError:
        return None
    if len(model.vocabulary.tokenize(shortest)) > SHARE * max_tokens:
        return None
    return RealTask(name, CountedModel(lm), constraint, max_tokens)
