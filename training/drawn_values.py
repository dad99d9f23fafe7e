"""Random values for exercises: names, places, things, numbers, many of them invented, and their schemas and words."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import values as v
import wordings as w
from families import to_camel_case, vary_schema
from values import Facts, WorldPools

__all__ = [
    "build_object_schema",
    "choose_key_names",
    "draw_color",
    "draw_company",
    "draw_first_name",
    "draw_full_name",
    "draw_place",
    "draw_thing",
    "draw_value",
    "infer_schema",
    "invent_word",
    "spell_number",
    "spell_value",
]

Json = Any

HEADS = "b br c ch d dr f fr g gr h j k kl l m n p pr qu r s sch st t th tr v w y z".split()
MIDDLES = "a e i o u ai ea ou ie y".split()
TAILS = ("", "n", "r", "s", "l", "nd", "sk", "rt", "lle", "m", "ck", "wicz", "sen", "berg")
FIRMS = "Group Inc Ltd Press Foods Systems Bank Partners Studio Motors Logistics Garden Tools Media".split()
WHOLE = ("age", "quantity")
WORLD = WorldPools(2026)
ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def spell_number(number: int) -> str:
    if number >= 100:
        hundreds, rest = divmod(number, 100)
        return f"{ONES[hundreds]} hundred" + (f" and {spell_number(rest)}" if rest else "")
    if number < 20:
        return ONES[number]
    return TENS[number // 10 - 2] + (f"-{ONES[number % 10]}" if number % 10 else "")


def invent_word(r: random.Random) -> str:
    """Invent a word, often of more than one token."""
    parts = [r.choice(HEADS) + r.choice(MIDDLES) for _ in range(r.randint(1, 3))]
    return "".join(parts) + r.choice(TAILS)


def draw_first_name(r: random.Random, f: Facts) -> str:
    roll = r.random()
    return invent_word(r).capitalize() if roll < 0.2 else r.choice(WORLD.first if roll < 0.6 else f.pools.first)


def draw_full_name(r: random.Random, f: Facts) -> str:
    roll = r.random()
    last = invent_word(r).capitalize() if roll < 0.2 else r.choice(WORLD.last if roll < 0.6 else f.pools.last)
    return f"{draw_first_name(r, f)} {last}"


def draw_thing(r: random.Random, f: Facts) -> str:
    roll = r.random()
    word = r.choice(v.THINGS) if roll < 0.4 else r.choice(f.pools.words) if roll < 0.75 else invent_word(r)
    return f"{r.choice(v.ADJECTIVES)} {word}" if r.random() < 0.3 else word


def draw_color(r: random.Random) -> str:
    return invent_word(r) if r.random() < 0.25 else r.choice(w.COLOR_WORDS)


def draw_place(r: random.Random, f: Facts) -> str:
    roll = r.random()
    if roll < 0.2:
        return " ".join(invent_word(r).capitalize() for _ in range(r.choice((1, 1, 2))))
    return r.choice(WORLD.city) if roll < 0.6 else Facts(r, f.pools).city


def draw_company(r: random.Random, f: Facts) -> str:
    if r.random() < 0.5:
        kind = r.choice(FIRMS)
        head = invent_word(r).capitalize() if r.random() < 0.4 else r.choice(WORLD.last)
        return f"{head} {kind}"
    return r.choice(f.pools.company)


def draw_reference(r: random.Random) -> str:
    letters, joint = r.choice("ABCDEFGHKMPRSTX") * r.randint(0, 2), r.choice(("", "-"))
    return letters + joint + str(r.randrange(10, 99_999))


def draw_value(r: random.Random, f: Facts, key: str) -> Json:
    """Draw a value of one of `ATTRIBUTES`, or a name."""
    g = Facts(r, f.pools)
    draws: dict[str, Callable[[], Json]] = {
        "name": lambda: draw_full_name(r, f), "age": lambda: r.randrange(1, 100), "city": lambda: draw_place(r, f),
        "company": lambda: draw_company(r, f), "job": lambda: r.choice(f.pools.job).lower(), "phone": lambda: g.phone,
        "email": lambda: f"{invent_word(r)}@{g.domain}" if r.random() < 0.4 else g.email,
        "date": lambda: str(g.day), "birth_date": lambda: str(g.born), "product": lambda: draw_thing(r, f),
        "color": lambda: draw_color(r), "quantity": lambda: r.randrange(1, 100),
        "price": lambda: r.choice((r.randrange(1, 900), round(r.uniform(1, 400), 2))),
        "order_number": lambda: draw_reference(r), "url": lambda: g.url, "street": lambda: g.street,
        "hobby": lambda: r.choice(v.HOBBIES), "language": lambda: r.choice(v.LANGUAGES),
        "username": lambda: g.username if r.random() < 0.6 else invent_word(r),
        "status": lambda: r.choice(w.PRIORITIES), "animal": lambda: r.choice(v.ANIMALS), "time": lambda: g.time()[:5],
    }  # fmt: skip
    return draws[key]()


def spell_value(r: random.Random, key: str, value: Json) -> str:
    """Return the words for a value in a sentence; small numbers are sometimes spelled out."""
    if isinstance(value, int) and key in WHOLE and r.random() < 0.12:
        return spell_number(value)
    return str(value)


def build_object_schema(r: random.Random, properties: dict[str, Json], title: str) -> Json:
    """Return the schema of a closed or open object with these properties, in one of many spellings."""
    schema: Json = {"type": "object", "properties": properties}
    if r.random() < 0.25:
        return schema
    schema["required"] = list(properties)
    if r.random() < 0.5:
        schema["additionalProperties"] = False
    return vary_schema(r, schema, title) if r.random() < 0.3 else schema


def infer_schema(r: random.Random, value: Json, key: str = "") -> Json:
    """Return a schema that allows a value."""
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int) and r.random() < 0.85:
        return {"type": "integer"} | ({"minimum": 0} if r.random() < 0.1 else {})
    if isinstance(value, int | float):
        return {"type": "number"}
    form = {"email": "email", "date": "date", "birth_date": "date", "url": "uri"}.get(key)
    return {"type": "string"} | ({"format": form} if form and r.random() < 0.3 else {})


def choose_key_names(r: random.Random, keys: list[str]) -> dict[str, str]:
    """Return a different name for each attribute, all in the same case style."""
    spelling = to_camel_case if r.random() < 0.2 else str
    names: dict[str, str] = {}
    for key in keys:
        options = w.KEYS[key].split()
        name = options[0] if r.random() < 0.55 else r.choice(options)
        names[key] = spelling(key if name in names.values() else name)
    return names
