"""Accuracy on the two tasks of JSONSchemaBench that need no data set. The answer is JSON with a reason and an answer.

last letters       concatenate the last letters of four words (Wei et al. 2022, "Chain-of-Thought Prompting")
shuffled objects   who holds what after swaps (BIG-bench, tracking_shuffled_objects)
"""

from __future__ import annotations

import json
import random
from typing import Any, NamedTuple

from .answers import Refused, answer_prompt

__all__ = ["Question", "make_last_letters", "make_shuffled_objects", "measure_tasks"]

NAMES = ("Ada", "Ben", "Cleo", "Dora", "Emil", "Finn", "Greta", "Hugo", "Ines", "Jonas", "Kim", "Lena", "Milo", "Nora")
OBJECTS = ("red", "blue", "green")


class Question(NamedTuple):
    """A question, the schema of its answer as JSON text, and the right answer."""

    text: str
    schema: str
    right: str


def answer_schema(answer: dict[str, Any]) -> str:
    """Return the schema: a short reason, then the answer."""
    properties = {"reason": {"type": "string", "maxLength": 120}, "answer": answer}
    return json.dumps(
        {"type": "object", "properties": properties, "required": ["reason", "answer"], "additionalProperties": False}
    )


def make_last_letters(rng: random.Random) -> Question:
    """Return a question of last letters."""
    names = rng.sample(NAMES, 4)
    text = f'Take the last letters of the words in "{" ".join(names)}" and concatenate them.'
    return Question(
        text, answer_schema({"type": "string", "pattern": "^[a-z]{4}$"}), "".join(name[-1] for name in names)
    )


def make_shuffled_objects(rng: random.Random) -> Question:
    """Return a question of shuffled objects."""
    people = rng.sample(NAMES, 3)
    held = dict(zip(people, rng.sample(OBJECTS, 3)))
    text = "; ".join(f"{one} has the {colour} ball" for one, colour in held.items()) + ". "
    for _ in range(3):
        first, second = rng.sample(people, 2)
        held[first], held[second] = held[second], held[first]
        text += f"{first} and {second} swap. "
    asked = rng.choice(people)
    return Question(text + f"Which ball does {asked} have?", answer_schema({"enum": list(OBJECTS)}), held[asked])


TASKS = {"last letters": make_last_letters, "shuffled objects": make_shuffled_objects}


def measure_tasks(loaded: Any, engine: str, *, count: int, sampler: str, most: int, seed: int) -> dict[str, Any]:
    """Return the accuracy of an engine on each task; an answer that is not JSON of the schema is wrong."""
    row: dict[str, Any] = {"engine": engine, "questions": count}
    for name, make in TASKS.items():
        rng = random.Random(f"{seed} {name}")
        questions = [make(rng) for _ in range(count)]
        right = 0
        for question in questions:
            prompt = f"{question.text}\nAnswer in JSON with the keys reason and answer.\n"
            try:
                answer = answer_prompt(loaded, engine, prompt, question.schema, sampler=sampler, most=most, seed=seed)
                value = json.loads(answer.text)
            except (Refused, ValueError):
                continue
            right += isinstance(value, dict) and value.get("answer") == question.right
        row[name] = right / count
    return row
