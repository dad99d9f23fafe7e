"""Greedy answers of a model to questions, with constrain's mask and without one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .questions import Question

__all__ = ["answer_freely", "answer_masked", "compose_question"]


def compose_question(question: Question) -> str:
    """Return the prompt of a question, in the form that the embedded model was trained on."""
    from constrain.demo import compose_prompt

    return compose_prompt(question.text, question.schema, choices=question.choices)


def answer_masked(loaded: Any, questions: Sequence[Question], most: int) -> list[str]:
    """Return an answer to each question that satisfies its constraint. loaded: a `LoadedModel`. most: tokens."""
    import constrain

    return [
        constrain.generate(
            loaded, loaded.prompt_ids(compose_question(question)), schema=question.schema, choices=question.choices,
            temperature=0, max_tokens=most,
        ).text
        for question in questions
    ]  # fmt: skip


def answer_freely(loaded: Any, questions: Sequence[Question], most: int) -> list[str]:
    """Return what the model writes to each question without a constraint, up to its end token or `most` tokens."""
    import constrain

    prompts = [loaded.prompt_ids(compose_question(question)) for question in questions]
    made = constrain.generate(loaded, prompts, temperature=0, max_tokens=most)
    return [one.text for one in made]
