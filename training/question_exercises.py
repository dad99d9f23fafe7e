"""Exercises that ask a question: of two subjects, a colour, a number in words, a label, yes or no."""

from __future__ import annotations

import random
from typing import Any

import values as v
import wordings as w
from drawn_values import (
    build_object_schema,
    draw_color,
    draw_first_name,
    draw_place,
    draw_thing,
    draw_value,
    infer_schema,
    invent_word,
    spell_number,
)
from values import Facts

__all__ = ["make_label", "make_number", "make_color", "make_two_subjects", "make_yes_or_no"]

Json = Any
Exercise = tuple[str, dict[str, Any], Json]

COMPARED = "age city color job product quantity price hobby language phone animal status".split()
OF_THINGS = {
    "color": ["is {v}", "comes in {v}", "looks {v}"], "price": ["costs {v}", "is sold for {v}"],
    "quantity": ["is there {v} times"], "status": ["is {v}", "is marked {v}"],
    "city": ["is made in {v}", "stands in {v}"],
}  # fmt: skip
ASK_ONE = (
    "What is the {n} of {s}?", "{n} of {s}?", "Which {n} belongs to {s}?", "Tell me the {n} of {s}.", "And {s}?",
    "Which {n} for {s}?", "What {n} is {s}?",
)  # fmt: skip
COLORED = (
    "My {t} is {c}.", "I have a {c} {t}.", "The {t} was painted {c}.", "{n} bought a {c} {t}.", "This {t} is {c}.",
    "Our {t} came in {c}.", "There is a {c} {t} in the room.", "Name the colour: {c}.", "A {c} {t}.",
)  # fmt: skip
ASK_COLOR = (
    "What colour is the {t}?", "What color is it?", "Which colour?", "Name the colour.", "Color?",
    "What is its colour?", "Which color does the {t} have?", "",
)  # fmt: skip
ASK_LABEL = (
    "", "", "Label?", "Choose a label.", "Which one is it?", "What is it about?", "Classify this.", "Which fits?",
    "Category?",
)  # fmt: skip


def make_two_subjects(r: random.Random, f: Facts) -> Exercise:
    """Make a question about one of two or three subjects with the same attribute."""
    key = r.choice(COMPARED)
    people = r.random() < 0.6
    names: list[str] = []
    while len(names) < r.choice((2, 2, 3)):
        name = draw_first_name(r, f) if people else draw_thing(r, f)
        names += [name] * (name not in names)
    if not people:
        key = r.choice(("color", "price", "quantity", "status", "city"))
    forms = w.ATTRIBUTES[key].split("|") if people else OF_THINGS[key]
    held = {name: draw_value(r, f, key) for name in names}
    the = "" if people else "the "
    phrase = r.choice(forms)
    told = [f"{the}{name} {phrase.format(v=x)}" for name, x in held.items()]
    r.shuffle(told)
    if r.random() < 0.6:
        text = ". ".join(one[0].upper() + one[1:] for one in told) + "."
    else:
        text = " and ".join(told) + "."
        text = text if people else text.capitalize()
    asked = r.choice(names)
    noun = r.choice(w.KEYS[key].split()).replace("_", " ") if r.random() < 0.3 else key.replace("_", " ")
    noun = "colour" if key == "color" and r.random() < 0.5 else noun
    text = f"{text} {r.choice(ASK_ONE).format(n=noun, s=the + asked)}"
    return vary_answer_form(r, text, key, held[asked], list(held.values()))


def vary_answer_form(r: random.Random, text: str, key: str, value: Json, others: list[Json]) -> Exercise:
    """Return the exercise with its answer as an object, a bare value, or a choice."""
    roll = r.random()
    if roll < 0.35:
        name = r.choice(("answer", "value", "result", key, key, *w.KEYS[key].split()))
        return text, {"schema": build_object_schema(r, {name: infer_schema(r, value)}, "answer")}, {name: value}
    if roll < 0.5:
        return text, {"schema": infer_schema(r, value)}, value
    options = list(dict.fromkeys(map(str, others)))
    for _ in range(r.randint(0, 2)):
        options += [x for x in [str(draw_extra_option(r, key, value))] if x not in options]
    if len(options) < 2:
        return text, {"schema": infer_schema(r, value)}, value
    r.shuffle(options)
    if roll < 0.8:
        return text, {"choices": options}, str(value)
    if isinstance(value, str):
        return (
            text,
            {"schema": build_object_schema(r, {key: {"type": "string", "enum": options}}, "answer")},
            {key: value},
        )
    return text, {"schema": {"enum": options}}, str(value)


def draw_extra_option(r: random.Random, key: str, value: Json) -> Json:
    """Draw another value of the same kind."""
    if isinstance(value, int | float):
        return r.randrange(1, 100)
    pool = {"color": w.COLOR_WORDS, "hobby": v.HOBBIES, "language": v.LANGUAGES, "animal": v.ANIMALS,
            "status": w.PRIORITIES, "product": v.THINGS, "city": v.CITIES}.get(key)  # fmt: skip
    return r.choice(pool) if pool else invent_word(r)


def make_color(r: random.Random, f: Facts) -> Exercise:
    """Make a question about a colour: "My bicycle is red. What colour is it?"."""
    one, shade = draw_thing(r, f), draw_color(r)
    said = r.choice(COLORED).format(t=one, c=shade, n=draw_first_name(r, f))
    ask = r.choice(ASK_COLOR).format(t=one)
    return vary_answer_form(r, f"{said} {ask}".strip(), "color", shade, [shade])


def make_number(r: random.Random, f: Facts) -> Exercise:
    """Make a question about a number, mostly in words."""
    number = r.choice((r.randrange(0, 20), r.randrange(20, 100), r.randrange(20, 100), r.randrange(100, 1000)))
    shown = spell_number(number) if r.random() < 0.85 else str(number)
    text = r.choice((
        "There are {x} {t}s.", "{n} has {x} {t}s.", "I see {x} {t}s.", "{n} bought {x} {t}s in {c}.", "{x}",
        "We need {x}.",
        "It took {x} minutes.", "{n} is {x} years old.", "The {t} costs {x}.", "Write {x} as a number.", "Number: {x}",
        "They sold {x} {t}s and went home.", "{n} ate {x}.", "Add {x} {t}s.", "{x} people came.", "The answer is {x}.",
    )).format(x=shown, t=draw_thing(r, f), n=draw_first_name(r, f), c=draw_place(r, f))  # fmt: skip
    text = text[0].upper() + text[1:] if r.random() < 0.7 else text
    ask = r.choice(("", "", "How many?", "How many is that?", "As digits.", "Which number?", "In digits?"))
    text = f"{text} {ask}".strip()
    roll = r.random()
    if roll < 0.4:
        return text, {"schema": {"type": "integer"}}, number
    if roll < 0.9:
        name = r.choice(("quantity", "count", "number", "amount", "value", "answer", "total"))
        return text, {"schema": build_object_schema(r, {name: {"type": "integer"}}, "count")}, {name: number}
    return text, {"regex": r.choice((r"\d+", r"[0-9]+", r"\d{1,3}"))}, str(number)


def make_label(r: random.Random, f: Facts) -> Exercise:
    """Make a question about a label: a mood or a topic, by its words, or a label that is named."""
    roll = r.random()
    if roll < 0.35:
        options, right = ["positive", "negative"], r.choice(("positive", "negative"))
        if r.random() < 0.25:
            options.append("neutral")
        x, y = r.sample(w.MOODS[right].split(), 2)
        text = r.choice((
            "The {t} is {x}.", "{n} says the {t} is {x} and {y}.", "A {x} {t}, really {y}.", "I am {x} with this {t}.",
            "What a {x} {t}!", "{x}, just {x}.", "It was {x}. {n} found it {y}.", "{n} felt {x} about the {t}.",
            "Such a {x} day, and a {y} {t}.", "The {c} {t} turned out {x}.", "This is {x}: the {t} is {y}.",
        )).format(x=x, y=y, t=draw_thing(r, f), n=draw_first_name(r, f), c=draw_color(r))  # fmt: skip
    elif roll < 0.7:
        options = r.sample(list(w.SECTIONS), r.randint(2, 4))
        right = r.choice(options)
        x, y = r.sample(w.SECTIONS[right].split(), 2)
        text = r.choice((
            "{n} has a question about the {x}.", "The {x} and the {y}.", "My {x} is gone, and the {y} too.",
            "{n} writes: {x} {y}.", "Please look at the {x}; the {y} is strange.", "A {x} in {c}, with a {y}.",
            "I wonder about my {x}.", "{n} talked about the {y} and a {x}.", "Where is the {x}? The {y} is here.",
            "No {x} since {d}.", "Problem with {x} and {y} from {n}.",
        )).format(x=x, y=y, n=draw_first_name(r, f), c=draw_place(r, f), d=f.day.isoformat())  # fmt: skip
    else:
        pool = r.choice((w.PRIORITIES, w.COLOR_WORDS, v.TAGS, v.ANIMALS, v.LANGUAGES, f.pools.words))
        options = [x.lower() if r.random() < 0.9 else x for x in dict.fromkeys(r.sample(pool, r.randint(2, 5)))]
        right = r.choice(options)
        text = r.choice((
            "{n} says it is {x}.", "This one is {x}.", "It has to do with {x}.", "{x}, said {n}.", "The {t} is {x}.",
            "Mark it as {x}.", "{n} put {x} on the list.", "Let us say {x}.", "{n} in {c} votes for {x}.",
            "Choose {x}.", "The label is {x}, as for the {t}.", "I think {x} fits the {t}.", "Pick {x}, please.",
        )).format(x=right, n=draw_first_name(r, f), t=draw_thing(r, f), c=draw_place(r, f))  # fmt: skip
    r.shuffle(options)
    ask = r.choice(ASK_LABEL)
    text = (f"{ask} {text}" if r.random() < 0.25 else f"{text} {ask}").strip()
    if r.random() < 0.5:
        return text, {"choices": options}, right
    name = r.choice("label category kind topic mood sentiment class type answer priority".split())
    kind = {"enum": options} if r.random() < 0.3 else {"type": "string", "enum": options}
    if r.random() < 0.15:
        return text, {"schema": kind}, right
    return text, {"schema": build_object_schema(r, {name: kind}, "label")}, {name: right}


def make_yes_or_no(r: random.Random, f: Facts) -> Exercise:
    """Make a statement and a question about it, answered by yes or no."""
    true = r.random() < 0.5
    n, m = draw_first_name(r, f), draw_first_name(r, f)
    a, b, x, y, p, q = (
        draw_thing(r, f),
        draw_thing(r, f),
        draw_color(r),
        draw_color(r),
        draw_place(r, f),
        draw_place(r, f),
    )
    s, z = str(r.randrange(2, 99)), str(r.randrange(2, 99))
    if a == b or x == y or p == q or s == z or n == m:
        return make_yes_or_no(r, f)
    text = r.choice((
        f"{n} has a {a}. Does {n} have a {a if true else b}?", f"The {a} is {x}. Is the {a} {x if true else y}?",
        f"{n} lives in {p}. Is {n} from {p if true else q}?", f"{n} likes {x}. Does {n} like {x if true else y}?",
        f"{n} went to {p}. Did {n} go to {p if true else q}?", f"{n} is {s} years old. Is {n} {s if true else z}?",
        f"There are {s} {a}s. Are there {s if true else z} of them?", f"My name is {n}. Am I {n if true else m}?",
        f"I see a {x} {a}. Is it {x if true else y}?", f"{n} sold the {a}. Was it a {a if true else b}?",
        f"{n} met {m} in {p}. Did they meet in {p if true else q}?", f"It is {x}, not {y}. Is it {x if true else y}?",
        f"The {a} costs {s}. Does it cost {s if true else z}?",
        f"A {a} and a {b}. Is there a {a if true else invent_word(r)}?",
    ))  # fmt: skip
    roll = r.random()
    if roll < 0.5:
        options = ["yes", "no"] if r.random() < 0.8 else ["no", "yes"]
        return text, {"choices": options}, "yes" if true else "no"
    if roll < 0.8:
        return text, {"schema": {"type": "boolean"}}, true
    name = r.choice(("answer", "is_true", "correct", "result"))
    return text, {"schema": build_object_schema(r, {name: {"type": "boolean"}}, "answer")}, {name: true}
