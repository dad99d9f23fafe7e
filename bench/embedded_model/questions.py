"""Synthetic questions whose answers are in their prompts, drawn from a seed.

Each task is a function from a `random.Random` to a `Question`. Names, things and sentences are held out: the training
data contains none of them (`words.py`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .words import CITIES, COLORS, COMPANIES, FIRST_NAMES, HELD_OUT_NUMBERS, LAST_NAMES, THINGS, spell_number

__all__ = ["TASKS", "Question", "draw_questions"]

STRING, INTEGER, NUMBER, BOOLEAN = ({"type": name} for name in ("string", "integer", "number", "boolean"))


class Question(NamedTuple):
    """A prompt, the constraint of its answer, and the right answer.

    Exactly one of schema and choices is given. right: a JSON value, or one of the choices. chance: the share of right
    values that guessing among the alternatives gives; 0 where the value is free.
    """

    task: str
    text: str
    schema: dict[str, Any] | None
    choices: tuple[str, ...] | None
    right: Any
    chance: float = 0.0


class Subject:
    """Facts about a person and an order, drawn once."""

    def __init__(self, rng: random.Random) -> None:
        first, last = rng.choice(FIRST_NAMES), rng.choice(LAST_NAMES)
        self.facts: dict[str, Any] = {
            "name": f"{first} {last}", "first_name": first, "age": rng.randrange(18, 95), "city": rng.choice(CITIES),
            "company": rng.choice(COMPANIES), "email": f"{first.lower()}.{last.lower()}@example.net",
            "phone": f"+1-{rng.randrange(200, 999)}-{rng.randrange(200, 999)}-{rng.randrange(10_000):04}",
            "date": f"20{rng.randrange(20, 30)}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}",
            "product": rng.choice(THINGS), "color": rng.choice(COLORS), "quantity": rng.randrange(2, 99),
            "price": round(rng.uniform(1, 400), 2),
            "order_number": f"{rng.choice('ABCDEFGH')}{rng.randrange(1000, 9999)}",
        }  # fmt: skip


KINDS: Mapping[str, dict[str, Any]] = {"age": INTEGER, "quantity": INTEGER, "price": NUMBER}
SENTENCES = (
    "Meet {name}: {age} years of age, now settled in {city}.",
    "At {company}, the person to talk to is {name} ({email}).",
    "{name} wants {quantity} pieces of the {color} {product}.",
    "Order {order_number} was placed by {name} on {date}.",
    "You reach {name} at {phone} or under {email}.",
    "One {product} in {color} is sold for {price}.",
    "{city} is where {company} will open on {date}.",
    "The {product} that {name} chose is {color} and costs {price}.",
)
FILLERS = (
    "It rained all morning.", "Nobody had expected that.", "The office closes early this week.",
    "Please keep this for the files.", "Further details will follow.", "That is all for now.",
)  # fmt: skip


def make_object(task: str, text: str, right: dict[str, Any]) -> Question:
    """Return a question for all fields of an object."""
    properties = {name: KINDS.get(name, STRING) for name in right}
    return Question(task, text, close_object(properties), None, right)


def close_object(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with exactly these properties."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def choose_fields(rng: random.Random, subject: Subject, text: str) -> dict[str, Any]:
    """Return some of the fields that a template mentions, in the order of the facts."""
    named = [name for name in subject.facts if "{" + name + "}" in text]
    chosen = rng.sample(named, rng.randint(1, len(named)))
    return {name: subject.facts[name] for name in named if name in chosen}


def ask_sentence(rng: random.Random) -> Question:
    """Ask for fields of one sentence."""
    subject, text = Subject(rng), rng.choice(SENTENCES)
    return make_object("sentence", text.format(**subject.facts), choose_fields(rng, subject, text))


def ask_paragraph(rng: random.Random) -> Question:
    """Ask for fields of one sentence of a paragraph."""
    subject, texts = Subject(rng), rng.sample(SENTENCES, 2)
    said = [" ".join(texts).format(**subject.facts), *rng.sample(FILLERS, 2)]
    rng.shuffle(said)
    return make_object("paragraph", " ".join(said), choose_fields(rng, subject, " ".join(texts)))


def ask_lines(rng: random.Random) -> Question:
    """Ask for some of the fields of lines `Name: value`."""
    subject = Subject(rng)
    names = rng.sample(list(subject.facts), 5)
    text = "; ".join(f"{name.replace('_', ' ')} {subject.facts[name]}" for name in names)
    wanted = sorted(rng.sample(names, 3), key=names.index)
    return make_object("lines", f"From the form: {text}.", {name: subject.facts[name] for name in wanted})


def ask_color(rng: random.Random) -> Question:
    """Ask for the colour of a thing, as a string or a choice, in a text with another thing of another colour."""
    (one, other), (color, wrong) = rng.sample(THINGS, 2), rng.sample(COLORS, 2)
    said = [f"The {one} over there is {color}.", f"The {other} over there is {wrong}."]
    rng.shuffle(said)
    text = f"{' '.join(said)} Which colour does the {one} have?"
    if rng.random() < 0.5:
        return make_object("colour", text, {"color": color})
    options = [color, wrong, *rng.sample([name for name in COLORS if name not in (color, wrong)], 2)]
    rng.shuffle(options)
    return Question("colour", text, None, tuple(options), color, 1 / len(options))


def ask_number(rng: random.Random) -> Question:
    """Ask for the digits of a number in words."""
    number = rng.choice((rng.randrange(2, 20), rng.choice(HELD_OUT_NUMBERS)))
    thing, name = rng.choice(THINGS), rng.choice(FIRST_NAMES)
    text = rng.choice((f"{name} counted {spell_number(number)} of them.", f"We own {spell_number(number)} {thing}s."))
    if rng.random() < 0.5:
        return Question("number", f"{text} How many?", dict(INTEGER), None, number)
    return make_object("number", text, {"quantity": number})


LABELS = (
    ("{name} was delighted: a wonderful {product}.", "positive"),
    ("{name} sends the {product} back, broken and useless.", "negative"),
    ("What a lovely {color} {product}, perfect!", "positive"),
    ("The {product} is awful, says {name}, a waste of money.", "negative"),
)
TOPICS = (
    ("{name} forgot the password for the account.", "login"),
    ("{name} was charged twice on the invoice of {date}.", "billing"),
    ("The parcel with the {product} has not arrived in {city}.", "delivery"),
    ("{name} cannot sign in since {date}.", "login"),
    ("The payment of {price} by {name} was refused.", "billing"),
    ("The courier left the {product} at the wrong door in {city}.", "delivery"),
)


def ask_label(rng: random.Random) -> Question:
    """Ask for the label of a text: a mood, a department, or a priority that is named."""
    subject = Subject(rng)
    roll = rng.randrange(3)
    if roll == 0:
        (text, right), options = rng.choice(LABELS), ["positive", "negative"]
    elif roll == 1:
        (text, right), options = rng.choice(TOPICS), ["billing", "delivery", "login"]
    else:
        options = ["low", "normal", "urgent", "critical"]
        right = rng.choice(options)
        text = f"{{name}} asks about the {{product}}; this one is {right}."
    rng.shuffle(options)
    said = text.format(**subject.facts)
    if rng.random() < 0.5:
        return Question("label", f"{said} Which label fits?", None, tuple(options), right, 1 / len(options))
    schema = close_object({"label": {"type": "string", "enum": options}})
    return Question("label", said, schema, None, {"label": right}, 1 / len(options))


def ask_yes_no(rng: random.Random) -> Question:
    """Ask a question about the prompt that is answered by yes or no."""
    name, (one, other) = rng.choice(FIRST_NAMES), rng.sample(THINGS, 2)
    (color, wrong), (city, elsewhere) = rng.sample(COLORS, 2), rng.sample(CITIES, 2)
    is_true = rng.random() < 0.5
    text = rng.choice(
        (
            f"{name} bought one {one}. Did {name} buy one {one if is_true else other}?",
            f"The {one} is {color}. Is it {color if is_true else wrong}?",
            f"{name} moved to {city}. Does {name} live in {city if is_true else elsewhere}?",
        )
    )
    if rng.random() < 0.5:
        return Question("yes or no", text, None, ("yes", "no"), "yes" if is_true else "no", 0.5)
    return Question("yes or no", text, dict(BOOLEAN), None, is_true, 0.5)


Tools = Sequence[tuple[str, str, tuple[str, ...]]]
TOOLS: Tools = (
    ("find_contact", "Look up the contact details of {name} in {city}.", ("name", "city")),
    ("order_item", "Get me {quantity} pieces of the {product} in {color}.", ("quantity", "product", "color")),
    ("cancel_order", "Please stop order {order_number}, says {name}.", ("order_number", "name")),
    ("schedule_call", "{name} should be phoned on {date}; the number is {phone}.", ("name", "date", "phone")),
    ("show_price", "How much is a {color} {product}?", ("color", "product")),
)


def ask_tool(rng: random.Random) -> Question:
    """Ask for a call of one of two tools; the name and each argument count as values."""
    subject = Subject(rng)
    chosen = rng.sample(TOOLS, 2)
    cases = []
    for name, _, arguments in chosen:
        properties = {argument: KINDS.get(argument, STRING) for argument in arguments}
        members = {"name": {"const": name}, "arguments": close_object(properties)}
        cases.append(close_object(members))
    name, text, arguments = rng.choice(chosen)
    right = {"name": name, "arguments": {argument: subject.facts[argument] for argument in arguments}}
    return Question("tool call", text.format(**subject.facts), {"anyOf": cases}, None, right)


TASKS: dict[str, Callable[[random.Random], Question]] = {
    "sentence": ask_sentence, "paragraph": ask_paragraph, "lines": ask_lines, "colour": ask_color,
    "number": ask_number, "label": ask_label, "yes or no": ask_yes_no, "tool call": ask_tool,
}  # fmt: skip


def draw_questions(count: int, seed: int) -> list[Question]:
    """Return `count` questions of each task; the same for the same seed."""
    found: list[Question] = []
    for name, ask in TASKS.items():
        rng = random.Random(f"{seed} {name}")
        found += [ask(rng) for _ in range(count)]
    return found
