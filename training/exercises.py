"""Exercises in following a prompt: copy, extract, choose a label, answer a question, read numbers, call a tool.

Each maker takes a `random.Random` and `Facts` and returns (instruction, form, answer); form has the arguments of
`compose_prompt`. The subject of an exercise is random, often with invented names, so that the answer is in the prompt
only.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import wordings as w
from drawn_values import (
    build_object_schema,
    choose_key_names,
    draw_company,
    draw_first_name,
    draw_full_name,
    draw_place,
    draw_thing,
    draw_value,
    infer_schema,
    invent_word,
    spell_value,
)  # fmt: skip
from families import to_camel_case
from fields import draw_nonsense_word
from question_exercises import make_color, make_label, make_number, make_two_subjects, make_yes_or_no
from tool_exercises import make_tool_call
from values import Facts

__all__ = ["EXERCISES", "draw_exercise"]

Json = Any
Exercise = tuple[str, dict[str, Any], Json]
"""Instruction, arguments of `compose_prompt`, answer: a JSON value, or a text if there is no schema."""

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


def build_record(r: random.Random, said: dict[str, Json]) -> tuple[Json, Json]:
    """Return (schema, answer) for some of the values, in any order."""
    chosen = r.sample(list(said), r.randint(1, min(4, len(said))))
    if r.random() < 0.5:
        chosen.sort(key=list(said).index)
    names = choose_key_names(r, chosen)
    schema = build_object_schema(r, {names[key]: infer_schema(r, said[key], key) for key in chosen}, "record")
    return schema, {names[key]: said[key] for key in chosen}


def write_sentences(r: random.Random, said: dict[str, Json]) -> str:
    """Return sentences with all attributes of one subject. said: its name, then its attributes."""
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


def draw_subject(r: random.Random, f: Facts, most: int = 4) -> dict[str, Json]:
    """Draw a subject: a name and up to `most` attributes."""
    keys = r.sample(list(w.ATTRIBUTES), r.randint(1, most))
    return {key: draw_value(r, f, key) for key in ("name", *keys)}


def add_filler(r: random.Random, text: str) -> str:
    """Return the text among sentences without information."""
    parts = [text, *r.sample(w.FILLER, r.choice((0, 0, 1, 2)))]
    r.shuffle(parts)
    return " ".join(parts)


def make_sentences(r: random.Random, f: Facts) -> Exercise:
    """Make an exercise of sentences about one subject."""
    said = draw_subject(r, f)
    schema, answer = build_record(r, said)
    return r.choice(w.ASKS).format(add_filler(r, write_sentences(r, said))), {"schema": schema}, answer


def make_deals(r: random.Random, f: Facts) -> Exercise:
    """Make an exercise of sentences in which the person is not the subject."""
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
    schema, answer = build_record(r, said)
    shown = text.format(**{key: spell_value(r, key, value) for key, value in said.items()})
    return r.choice(w.ASKS).format(add_filler(r, shown)), {"schema": schema}, answer


def make_lines(r: random.Random, f: Facts) -> Exercise:
    """Make an exercise of pairs of name and value, with known or random names, joined in one of many ways."""
    pairs: dict[str, Json] = {}
    for _ in range(r.randint(2, 6)):
        if r.random() < 0.55:
            key = r.choice(["name", *w.ATTRIBUTES])
            pairs[key] = draw_value(r, f, key)
        else:
            word = draw_nonsense_word(r) if r.random() < 0.3 else r.choice(f.pools.words).lower()
            word += "_" + r.choice(f.pools.words).lower() if r.random() < 0.3 else ""
            kinds = ("name", "city", "quantity", "product", "price", "status", "color")
            pairs[word] = draw_value(r, f, r.choice(kinds))
    middle, end = r.choice(JOINTS)
    title = r.random() < 0.4
    shown = {key: key if middle == "=" and not title else key.replace("_", " ") for key in pairs}
    text = end.join(f"{shown[key].capitalize() if title else shown[key]}{middle}{x}" for key, x in pairs.items())
    chosen = r.sample(list(pairs), r.randint(1, min(4, len(pairs))))
    spelling = to_camel_case if r.random() < 0.2 else str
    schema = build_object_schema(r, {spelling(key): infer_schema(r, pairs[key], key) for key in chosen}, "form")
    return r.choice(FORM_ASKS).format(text), {"schema": schema}, {spelling(key): pairs[key] for key in chosen}


def make_dense_lines(r: random.Random, f: Facts) -> Exercise:
    """Make an exercise of pairs, all of which belong to the answer, with a short schema: most tokens are copies."""
    drawn: dict[str, str] = {}
    for _ in range(r.randint(2, 5)):
        word = invent_word(r) if r.random() < 0.3 else r.choice(f.pools.words).lower()
        drawn[word] = r.choice((draw_full_name, draw_place, draw_thing, draw_company, draw_first_name))(r, f)
    joint = r.choice((", ", "; ", "\n"))
    text = joint.join(f"{word}{r.choice((': ', ' is ', ' = '))}{x}" for word, x in drawn.items())
    wanted = list(drawn)
    if r.random() < 0.6:
        r.shuffle(wanted)
    schema = {"type": "object", "properties": {word: {"type": "string"} for word in wanted}}
    return text, {"schema": schema}, {word: drawn[word] for word in wanted}


def make_description(r: random.Random, f: Facts) -> Exercise:
    """Make an exercise like "Describe a person called ...", whose answer repeats the attributes of the prompt."""
    said = draw_subject(r, f, 3)
    told = [f"{key.replace('_', ' ')} {spell_value(r, key, x)}" for key, x in said.items() if key != "name"]
    text = r.choice(DESCRIBE).format(said["name"]) + r.choice((" with {}.", ": {}.", ", {}.", " ({}).")).format(
        ", ".join(told)
    )
    schema, answer = build_record(r, said)
    return text, {"schema": schema}, answer


def make_copy(r: random.Random, f: Facts) -> Exercise:
    """Make an exercise like "Say x.", answered by a text or a JSON string."""
    roll = r.random()
    if roll < 0.3:
        text = ", ".join(
            r.choice((draw_full_name, draw_place, draw_thing, draw_company))(r, f) for _ in range(r.randint(2, 6))
        )
        return (
            r.choice(("Repeat: {}", "Copy: {}", "Say this: {}", "{}\nSay that again.", "Echo {}")).format(text),
            {},
            text,
        )
    text = (draw_full_name(r, f) if roll < 0.5
            else " ".join(draw_thing(r, f) for _ in range(r.randint(1, 3))) if roll < 0.6
            else " ".join(invent_word(r) for _ in range(r.randint(1, 3))) if roll < 0.8 else f.sentence())  # fmt: skip
    ask = r.choice(COPY_ASKS).format(text)
    roll = r.random()
    if roll < 0.35:
        return ask, {}, text
    if roll < 0.55:
        return ask, {"schema": {"type": "string"}}, text
    name = r.choice(("text", "message", "value", "answer", "word", "name", "title"))
    return ask, {"schema": build_object_schema(r, {name: {"type": "string"}}, "text")}, {name: text}


def make_pattern(r: random.Random, f: Facts) -> Exercise:
    """Make an exercise whose answer is a value of the prompt in the form of a regular expression."""
    key, regex = r.choice((
        ("date", r"\d{4}-\d{2}-\d{2}"), ("date", "[0-9]{4}-[0-9]{2}-[0-9]{2}"), ("time", r"\d{2}:\d{2}"),
        ("quantity", r"\d{1,3}"), ("quantity", "[0-9]+"), ("color", "[a-z]+"), ("email", r"[a-z0-9._]+@[a-z.]+"),
        ("name", "[A-Z][a-z]+ [A-Z][a-z]+"), ("phone", r"\+1-\d{3}-\d{3}-\d{4}"), ("hobby", "[a-z]{2,12}"),
    ))  # fmt: skip
    value = draw_value(r, f, key)
    subject_name = draw_full_name(r, f)
    phrase = r.choice(w.ATTRIBUTES[key].split("|")).format(v=value) if key != "name" else f"wrote to {value}"
    which = "When?" if key in ("date", "time") else "Which one?"
    ask = r.choice(("", which, f"What is the {key}?", f"Give the {key}."))
    return f"{subject_name} {phrase.rstrip(',')}. {ask}".strip(), {"regex": regex}, str(value)


EXERCISES: tuple[tuple[Callable[[random.Random, Facts], Exercise], int], ...] = (
    (make_sentences, 20),
    (make_deals, 14),
    (make_lines, 10),
    (make_dense_lines, 8),
    (make_description, 6),
    (make_two_subjects, 8),
    (make_color, 4),
    (make_number, 6),
    (make_label, 8),
    (make_yes_or_no, 6),
    (make_copy, 8),
    (make_tool_call, 10),
    (make_pattern, 3),
)


def draw_exercise(r: random.Random, f: Facts) -> Exercise:
    """Draw an exercise of a random kind; its answer is text."""
    makers, weights = zip(*EXERCISES, strict=True)
    text, form, answer = r.choices(makers, weights)[0](r, f)
    if r.random() < 0.08:
        text = f"{r.choice(w.PREAMBLES)}\n{text}"
    return text, form, json.dumps(answer, ensure_ascii=False) if "schema" in form else answer
