"""Arithmetic: an expression with a given value. Only complete expressions can be judged."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import constrain

from ...counted_models import CachedModel
from .tasks import Task, train_ngram

__all__ = ["build_arithmetic_tasks", "evaluate_expression"]

FORM = r"[1-9]\d?([+*-][1-9]\d?){1,3}"
NUMBERS = (24, 100, 7, 36, 50, 12)


def evaluate_expression(expression: str) -> int:
    """Evaluate an expression of FORM: products before sums."""
    terms = expression.replace("-", "+-").split("+")
    return sum((-1) ** term.startswith("-") * math.prod(map(int, term.lstrip("-").split("*"))) for term in terms)


def draw_expressions(count: int, seed: int) -> list[str]:
    """Draw random expressions to train a model on."""
    chance = random.Random(seed)
    out = []
    for _ in range(count):
        text = str(chance.randrange(1, 31))
        for _ in range(chance.choice([1, 1, 2, 3])):
            text += chance.choice("++*-") + str(chance.randrange(1, 31))
        out.append(text)
    return out


def build_validator(number: int) -> Callable[[bytes], bool]:
    """Return a validator: whether an expression has the given value."""
    return lambda text: evaluate_expression(text.decode()) == number


def build_twist(number: int) -> Callable[[bytes], float]:
    """Return a twist: a prefix loses a tenth of a nat for each unit by which its value differs from the number."""

    def twist(prefix: bytes) -> float:
        text = prefix.decode().rstrip("+-*")
        return -min(abs(evaluate_expression(text) - number), 60) / 10 if text else -2.0

    return twist


def build_arithmetic_tasks(count: int) -> list[Task]:
    """Build a task for each number, with a byte-level model trained on 3,000 expressions."""
    ngram, vocabulary = train_ngram(draw_expressions(3000, 0), order=3)
    form = constrain.compile(vocabulary=vocabulary, regex=FORM)
    return [
        Task("arithmetic", f"comes to {number}", CachedModel(ngram), form, 16, accepts=build_validator(number),
             twist=build_twist(number))
        for number in NUMBERS[:count]
    ]  # fmt: skip
