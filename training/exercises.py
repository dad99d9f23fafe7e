"""Exercises in doing what the prompt says: copy, extract, pick a label, answer a question, read numbers, call a tool.

Each maker takes a `random.Random` and `Facts` and returns (instruction, form, answer); form holds the arguments of
`compose_prompt`. What an exercise is about is drawn anew each time, invented names among it, so that the only way to
be right is to find the value in the prompt.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import wordings as w
from drawn_values import (
    draw_value,
    firm,
    first_name,
    key_names,
    kind_of,
    made_up,
    place,
    proper_name,
    schema_of,
    spell_value,
    thing,
)  # fmt: skip
from families import camel
from fields import nonsense
from question_exercises import labels, numbers, one_color, two_subjects, yes_or_no
from tool_exercises import tool_calls
from values import Facts

__all__ = ["EXERCISES", "draw_exercise"]

Json = Any
Exercise = tuple[str, dict[str, Any], Json]
"""Instruction, arguments of `compose_prompt`, answer: a JSON value, or the text itself where there is no schema."""

PERSONS = ("one", "person", "customer", "man", "woman", "caller")
DEALT = "name product color price quantity date city company email phone order_number".split()
JOINTS = (
    (": ", "\n"), (": ", ", "), (" = ", "\n"), ("=", " "), (": ", "; "), (" is ", ", "), (" - ", "\n"), (" | ", "\n"),
    (" ", ", "),
)  # fmt: skip
FORM_ASKS = (
    "{}", "{}", "Fill in:\n{}", "{}\nWrite that as JSON.", "Form:\n{}", "Data: {}", "Convert: {}", "Take this over: {}",
)  # fmt: skip
DESCRIBE = (
    "Describe {}", "Describe a person called {}", "Describe a person named {}", "Make a record for {}", "Add {}",
    "Create an entry for {}", "Write a profile of {}",
)  # fmt: skip
COPY_ASKS = (
    "Say {}", "Repeat: {}", 'Write "{}".', "Copy this: {}", 'Answer "{}".', "Say: {}", "The word is {}",
    'Return "{}" and nothing else.', "Echo {}",
)  # fmt: skip


def as_record(r: random.Random, said: dict[str, Json]) -> tuple[Json, Json]:
    """(schema, answer) for some of what is said, in any order."""
    chosen = r.sample(list(said), r.randint(1, min(4, len(said))))
    if r.random() < 0.5:
        chosen.sort(key=list(said).index)
    names = key_names(r, chosen)
    schema = schema_of(r, {names[key]: kind_of(r, said[key], key) for key in chosen}, "record")
    return schema, {names[key]: said[key] for key in chosen}


def say(r: random.Random, said: dict[str, Json]) -> str:
    """Sentences that say everything of one subject; said: its name, then attributes."""
    name, parts = said["name"], []
    for key in [key for key in said if key != "name"]:
        parts.append(r.choice(w.ATTRIBUTES[key].split("|")).format(v=spell_value(r, key, said[key])))
    roll = r.random()
    if roll < 0.4 or len(parts) == 1:
        head = ", ".join(parts[:-1])
        text = f"{name} {head}{' and ' if head else ''}{parts[-1]}."
    elif roll < 0.7:
        again = r.choice(("He", "She", "They", str(name).split()[0]))
        text = f"{name} {parts[0]}. " + " ".join(f"{again} {part}." for part in parts[1:])
    elif roll < 0.85:
        rest = [f"The one who {part} is me." for part in parts[1:]]
        text = " ".join([f"My name is {name}.", f"Know that {name} {parts[0]}.", *rest])
    else:
        head = f"The {r.choice(PERSONS)} who {parts[0]} is {name}"
        text = head + "".join(f", who {part}" for part in parts[1:]) + "."
    return text.replace(",.", ".").replace(",,", ",").replace(", and", " and")


def subject(r: random.Random, f: Facts, most: int = 4) -> dict[str, Json]:
    keys = r.sample(list(w.ATTRIBUTES), r.randint(1, most))
    return {key: draw_value(r, f, key) for key in ("name", *keys)}


def around(r: random.Random, text: str) -> str:
    """The text among sentences that say nothing."""
    parts = [text, *r.sample(w.FILLER, r.choice((0, 0, 1, 2)))]
    r.shuffle(parts)
    return " ".join(parts)


def sentences(r: random.Random, f: Facts) -> Exercise:
    said = subject(r, f)
    schema, answer = as_record(r, said)
    return r.choice(w.ASKS).format(around(r, say(r, said))), {"schema": schema}, answer


def deals(r: random.Random, f: Facts) -> Exercise:
    """Sentences in which the person is not the subject."""
    keys = {key: draw_value(r, f, key) for key in DEALT}
    some = r.sample((
        "{company} sends {quantity} {color} {product}s to {city}.",
        "On {date} the {product} goes to {name} for {price}.",
        "The {color} {product} is {price}.", "Call {phone} and ask for {name}.", "{date}: {name}, {city}, {product}.",
        "Bill {company} for {quantity} times {price}.", "Number {order_number} is from {city}.",
        "For {order_number}, mail {email}.", "The shop in {city} has {quantity} of the {product}.",
        "{name} from {company} pays {price} on {date}.", "Bring the {product} to {name}, {city}.",
        "Ask {name} ({phone}) whether {color} is fine.", "{order_number}, {date}, {quantity} pieces, {price} each.",
        "In {city}, {company} has a new office.", "We gave {name} a {color} {product}.", "{email} belongs to {name}.",
    ), r.randint(1, 2))  # fmt: skip
    text = " ".join(some)
    said = {key: value for key, value in keys.items() if "{" + key + "}" in text}
    schema, answer = as_record(r, said)
    shown = text.format(**{key: spell_value(r, key, value) for key, value in said.items()})
    return r.choice(w.ASKS).format(around(r, shown)), {"schema": schema}, answer


def lines(r: random.Random, f: Facts) -> Exercise:
    """Name and value pairs, known names or words, joined in one of many ways."""
    pairs: dict[str, Json] = {}
    for _ in range(r.randint(2, 6)):
        if r.random() < 0.55:
            key = r.choice(["name", *w.ATTRIBUTES])
            pairs[key] = draw_value(r, f, key)
        else:
            word = nonsense(r) if r.random() < 0.3 else r.choice(f.pools.words).lower()
            word += "_" + r.choice(f.pools.words).lower() if r.random() < 0.3 else ""
            kinds = ("name", "city", "quantity", "product", "price", "status", "color")
            pairs[word] = draw_value(r, f, r.choice(kinds))
    middle, end = r.choice(JOINTS)
    title = r.random() < 0.4
    shown = {key: key if middle == "=" and not title else key.replace("_", " ") for key in pairs}
    text = end.join(f"{shown[key].capitalize() if title else shown[key]}{middle}{x}" for key, x in pairs.items())
    chosen = r.sample(list(pairs), r.randint(1, min(4, len(pairs))))
    spelling = camel if r.random() < 0.2 else str
    schema = schema_of(r, {spelling(key): kind_of(r, pairs[key], key) for key in chosen}, "form")
    return r.choice(FORM_ASKS).format(text), {"schema": schema}, {spelling(key): pairs[key] for key in chosen}


def dense_lines(r: random.Random, f: Facts) -> Exercise:
    """Pairs of words and values, all of which are wanted, under a short schema: nearly every token is a copy."""
    drawn: dict[str, str] = {}
    for _ in range(r.randint(2, 5)):
        word = made_up(r) if r.random() < 0.3 else r.choice(f.pools.words).lower()
        drawn[word] = r.choice((proper_name, place, thing, firm, first_name))(r, f)
    joint = r.choice((", ", "; ", "\n"))
    text = joint.join(f"{word}{r.choice((': ', ' is ', ' = '))}{x}" for word, x in drawn.items())
    wanted = list(drawn)
    if r.random() < 0.6:
        r.shuffle(wanted)
    schema = {"type": "object", "properties": {word: {"type": "string"} for word in wanted}}
    return text, {"schema": schema}, {word: drawn[word] for word in wanted}


def described(r: random.Random, f: Facts) -> Exercise:
    """`Describe a person called ...`: what is said is copied; nothing else is asked for."""
    said = subject(r, f, 3)
    told = [f"{key.replace('_', ' ')} {spell_value(r, key, x)}" for key, x in said.items() if key != "name"]
    text = r.choice(DESCRIBE).format(said["name"]) + r.choice((" with {}.", ": {}.", ", {}.", " ({}).")).format(
        ", ".join(told)
    )
    schema, answer = as_record(r, said)
    return text, {"schema": schema}, answer


def copies(r: random.Random, f: Facts) -> Exercise:
    """`Say x.`, as a text or as a JSON string."""
    roll = r.random()
    if roll < 0.3:
        text = ", ".join(r.choice((proper_name, place, thing, firm))(r, f) for _ in range(r.randint(2, 6)))
        return (
            r.choice(("Repeat: {}", "Copy: {}", "Say this: {}", "{}\nSay that again.", "Echo {}")).format(text),
            {},
            text,
        )
    text = (proper_name(r, f) if roll < 0.5 else " ".join(thing(r, f) for _ in range(r.randint(1, 3))) if roll < 0.6
            else " ".join(made_up(r) for _ in range(r.randint(1, 3))) if roll < 0.8 else f.sentence())  # fmt: skip
    ask = r.choice(COPY_ASKS).format(text)
    roll = r.random()
    if roll < 0.35:
        return ask, {}, text
    if roll < 0.55:
        return ask, {"schema": {"type": "string"}}, text
    name = r.choice(("text", "message", "value", "answer", "word", "name", "title"))
    return ask, {"schema": schema_of(r, {name: {"type": "string"}}, "text")}, {name: text}


def patterns(r: random.Random, f: Facts) -> Exercise:
    """A value that the prompt says, in the form of a regular expression."""
    key, regex = r.choice((
        ("date", r"\d{4}-\d{2}-\d{2}"), ("date", "[0-9]{4}-[0-9]{2}-[0-9]{2}"), ("time", r"\d{2}:\d{2}"),
        ("quantity", r"\d{1,3}"), ("quantity", "[0-9]+"), ("color", "[a-z]+"), ("email", r"[a-z0-9._]+@[a-z.]+"),
        ("name", "[A-Z][a-z]+ [A-Z][a-z]+"), ("phone", r"\+1-\d{3}-\d{3}-\d{4}"), ("hobby", "[a-z]{2,12}"),
    ))  # fmt: skip
    value = draw_value(r, f, key)
    subject_name = proper_name(r, f)
    phrase = r.choice(w.ATTRIBUTES[key].split("|")).format(v=value) if key != "name" else f"wrote to {value}"
    which = "When?" if key in ("date", "time") else "Which one?"
    ask = r.choice(("", which, f"What is the {key}?", f"Give the {key}."))
    return f"{subject_name} {phrase.rstrip(',')}. {ask}".strip(), {"regex": regex}, str(value)


EXERCISES: tuple[tuple[Callable[[random.Random, Facts], Exercise], int], ...] = (
    (sentences, 20), (deals, 14), (lines, 10), (dense_lines, 8), (described, 6), (two_subjects, 8), (one_color, 4),
    (numbers, 6), (labels, 8), (yes_or_no, 6), (copies, 8), (tool_calls, 10), (patterns, 3),
)  # fmt: skip


def draw_exercise(r: random.Random, f: Facts) -> Exercise:
    makers, weights = zip(*EXERCISES, strict=True)
    text, form, answer = r.choices(makers, weights)[0](r, f)
    if r.random() < 0.08:
        text = f"{r.choice(w.PREAMBLES)}\n{text}"
    return text, form, json.dumps(answer, ensure_ascii=False) if "schema" in form else answer
