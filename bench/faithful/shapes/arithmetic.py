"""Arithmetic: an expression that comes to a given number. Only a complete one can be judged."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import constrain

from ..fixtures import Counted
from .tasks import Task, train_ngram

__all__ = ["build_arithmetic_tasks", "evaluate_expression"]

FORM = r"[1-9]\d?([+*-][1-9]\d?){1,3}"
NUMBERS = (24, 100, 7, 36, 50, 12)


def evaluate_expression(expression: str) -> int:
    """Of a text of FORM: products before sums."""
    terms = expression.replace("-", "+-").split("+")
    return sum((-1) ** term.startswith("-") * math.prod(map(int, term.lstrip("-").split("*"))) for term in terms)


def draw_expressions(count: int, seed: int) -> list[str]:
    """Expressions as they come."""
    chance = random.Random(seed)
    out = []
    for _ in range(count):
        text = str(chance.randrange(1, 31))
        for _ in range(chance.choice([1, 1, 2, 3])):
            text += chance.choice("++*-") + str(chance.randrange(1, 31))
        out.append(text)
    return out


def build_judge(number: int) -> Callable[[bytes], bool]:
    return lambda text: evaluate_expression(text.decode()) == number


def build_guess(number: int) -> Callable[[bytes], float]:
    """Build a twist: a prefix loses a tenth of a nat for each unit by which it misses the number."""

    def guess(beginning: bytes) -> float:
        text = beginning.decode().rstrip("+-*")
        return -min(abs(evaluate_expression(text) - number), 60) / 10 if text else -2.0

    return guess


def build_arithmetic_tasks(count: int) -> list[Task]:
    """One task for each number: a model over bytes that has read 3,000 expressions."""
    ngram, vocabulary = train_ngram(draw_expressions(3000, 0), order=3)
    form = constrain.compile(vocabulary=vocabulary, regex=FORM)
    return [
        Task("arithmetic", f"comes to {number}", Counted(ngram), form, 16, accepts=build_judge(number),
             guess=build_guess(number))
        for number in NUMBERS[:count]
    ]  # fmt: skip
