"""Typed building blocks: a `Node` is a JSON Schema with a function that draws plausible values of it.

`FIELDS` maps names of properties to makers of nodes; `invent_property` makes properties with invented names, which a
model can only copy from the schema.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import values as v
from values import Facts

__all__ = ["FIELDS", "Node", "invent_property", "draw_pattern", "make_scalar"]

Json = Any


@dataclass(frozen=True)
class Node:
    schema: dict[str, Json]
    draw: Callable[[Facts], Json]


Maker = Callable[[random.Random], Node]


def make_text(draw: Callable[[Facts], str], **extra: Json) -> Maker:
    """Return the maker of a string, sometimes with bounds of its length that all drawn values satisfy."""

    def make(r: random.Random) -> Node:
        schema = {"type": "string", **extra}
        if not extra and r.random() < 0.12:
            schema |= r.choice(({"minLength": 1}, {"maxLength": 100}, {"minLength": 1, "maxLength": 80}))
        return Node(schema, draw)

    return make


def make_format(name: str, draw: Callable[[Facts], str]) -> Maker:
    """Return the maker of a string whose format is declared with probability 0.8."""
    return lambda r: Node({"type": "string", "format": name} if r.random() < 0.8 else {"type": "string"}, draw)


def make_integer(low: int, high: int, *, floor: int | None = None, ceiling: int | None = None) -> Maker:
    """Return the maker of an integer from low to high; its schema has no bounds, the given ones, or random ones."""

    def make(r: random.Random) -> Node:
        lo, hi, roll = low, high, r.random()
        schema: dict[str, Json] = {"type": "integer"}
        if roll < 0.35:
            schema["minimum"] = low if floor is None else floor
            if r.random() < 0.6:
                schema["maximum"] = high if ceiling is None else ceiling
            elif r.random() < 0.2:
                schema["exclusiveMaximum"] = high + 1
        elif roll < 0.5:
            lo = r.randint(low, high)
            hi = r.randint(lo, high)
            schema |= {"minimum": lo, "maximum": hi}
        step = r.choice((5, 10)) if hi - lo > 20 and r.random() < 0.08 else 1
        if step > 1:
            schema["multipleOf"] = step
        return Node(schema, lambda f: -(-lo // step) * step + step * f.rng.randint(0, (hi - lo) // step - (step > 1)))

    return make


def make_number(low: float, high: float, places: int = 2) -> Maker:
    def make(r: random.Random) -> Node:
        schema: dict[str, Json] = {"type": "number"}
        if r.random() < 0.4:
            schema["minimum"] = int(low) if low == int(low) else low
            if r.random() < 0.6:
                schema["maximum"] = int(high) if high == int(high) else high
        elif r.random() < 0.1:
            schema["exclusiveMinimum"] = int(low) - 1
        if r.random() < 0.06:
            schema["multipleOf"] = 10**-places if places > 1 else 0.1
        return Node(schema, lambda f: round(f.rng.uniform(low, high), places))

    return make


def make_enum(options: str | list[Json], *, open_share: float = 0.3) -> Maker:
    """Return the maker of an enum of some options, or, with probability `open_share`, of a plain string."""
    items = options.split() if isinstance(options, str) else options

    def make(r: random.Random) -> Node:
        some = r.sample(items, r.randint(2, min(len(items), 5)))
        if r.random() < open_share:
            return Node({"type": "string"}, lambda f: f.rng.choice(items))
        schema = {"enum": some} if r.random() < 0.3 else {"type": "string", "enum": some}
        return Node(schema, lambda f: f.rng.choice(some))

    return make


def make_boolean(r: random.Random) -> Node:
    share = r.choice((0.3, 0.5, 0.7))
    return Node({"type": "boolean"}, lambda f: f.rng.random() < share)


def make_array(item: Maker, low: int = 1, high: int = 4) -> Maker:
    """Return the maker of an array, sometimes with bounds of its length, which drawn values satisfy."""

    def make(r: random.Random) -> Node:
        node, lo, hi = item(r), low, high
        schema: dict[str, Json] = {"type": "array", "items": node.schema}
        roll = r.random()
        if roll < 0.2:
            lo = r.randint(1, 3)
            schema["minItems"] = lo
            hi = max(lo + 1, high)
        if roll < 0.1 or 0.2 < roll < 0.3:
            hi = lo + r.randint(0, 2)
            schema["maxItems"] = hi
        if r.random() < 0.06 and "enum" not in node.schema and "const" not in node.schema:
            schema["uniqueItems"] = True
        return Node(schema, lambda f: draw_distinct(node, f, f.rng.randint(lo, hi), lo))

    return make


def draw_distinct(node: Node, f: Facts, count: int, least: int) -> list[Json]:
    """Draw values without repetition if there are enough different ones."""
    found: list[Json] = []
    for _ in range(4 * count):
        value = node.draw(Facts(f.rng, f.pools) if found else f)
        if len(found) < count and value not in found:
            found.append(value)
    while len(found) < least:
        found.append(node.draw(Facts(f.rng, f.pools)))
    return found


def make_tuple(r: random.Random) -> Node:
    """Make a tuple of two or three values."""
    parts = [make_scalar(r) for _ in range(r.randint(2, 3))]
    schema = {"type": "array", "prefixItems": [part.schema for part in parts], "minItems": len(parts)}
    if r.random() < 0.7:
        schema["items"] = False
    return Node(schema, lambda f: [part.draw(f) for part in parts])


def make_mapping(item: Maker) -> Maker:
    """Return the maker of an object with arbitrary keys."""

    def make(r: random.Random) -> Node:
        node = item(r)
        schema: dict[str, Json] = {"type": "object", "additionalProperties": node.schema}
        if r.random() < 0.2:
            schema["propertyNames"] = {"pattern": r.choice(("^[a-z]+$", "^[a-z_]+$"))}
        if r.random() < 0.2:
            schema["maxProperties"] = 4
        return Node(schema, lambda f: {f.pick(f.pools.words).lower(): node.draw(f) for _ in range(f.rng.randint(1, 3))})

    return make


def draw_pattern(r: random.Random) -> tuple[str, Callable[[Facts], str]]:
    """Return a random regular expression without anchors, and a function that draws a text of it."""
    pieces: list[tuple[str, Callable[[random.Random], str]]] = []
    for index in range(r.randint(1, 3)):
        if index:
            mark = r.choice("--_/.:")
            pieces.append(("\\." if mark == "." else mark, lambda q, m=mark: m))
        kind, low = r.randrange(7), r.randint(1, 5)
        high = low + (r.randint(1, 3) if r.random() < 0.25 else 0)
        count = f"{{{low}}}" if low == high else f"{{{low},{high}}}"
        count = "" if count == "{1}" else count
        for name, letters in (
            (("[A-Z]", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"), ("[0-9]", "0123456789"), (r"\d", "0123456789"))
            + (("[a-z]", "abcdefghijklmnopqrstuvwxyz"), ("[0-9a-f]", "0123456789abcdef"), (r"\d", "0123456789"))
        )[kind : kind + 1]:
            pieces.append(
                (name + count, lambda q, s=letters, a=low, b=high: "".join(q.choice(s) for _ in range(q.randint(a, b))))
            )
        if kind == 6:
            words = r.sample(v.TAGS, r.randint(2, 3))
            if r.random() < 0.5:
                words = [word[:3].upper() for word in words]
            pieces.append((f"({'|'.join(words)})", lambda q, w=words: q.choice(w)))
    return "".join(p for p, _ in pieces), lambda f: "".join(draw(f.rng) for _, draw in pieces)


def make_code(r: random.Random) -> Node:
    source, draw = draw_pattern(r)
    return Node({"type": "string", "pattern": f"^{source}$"}, draw)


def make_constant(r: random.Random) -> Node:
    value: Json = r.choice((r.choice(v.TAGS), r.choice(v.THINGS), r.randint(0, 9), True, "v1", "1.0", None))
    return Node({"const": value}, lambda f: value)


F = Facts
HOSTNAME = make_format(
    "hostname", lambda f: f.rng.choice((f.domain, "localhost", "api.example.com", f"{f.word}.example.org"))
)
FIELDS: dict[str, Maker] = {
    "id": lambda r: r.choice((make_integer(1, 9999), make_format("uuid", F.uuid), make_code))(r),
    **dict.fromkeys(("uuid", "request_id", "session_id"), make_format("uuid", F.uuid)),
    **dict.fromkeys(("name", "full_name", "customer", "author", "contact", "owner"), make_text(lambda f: f.name)),
    **dict.fromkeys(("first_name", "given_name"), make_text(lambda f: f.first)),
    **dict.fromkeys(("last_name", "surname", "family_name"), make_text(lambda f: f.last)),
    **dict.fromkeys(("assignee", "speaker", "doctor", "teacher"), make_text(lambda f: f"{f.first} {f.last}")),
    "age": lambda r: Node(r.choice(({"type": "integer"}, {"type": "integer", "minimum": 0},
                          {"type": "integer", "minimum": 0, "maximum": 120})), lambda f: f.age),
    **dict.fromkeys(("email", "contact_email", "reply_to"), make_format("email", lambda f: f.email)),
    **dict.fromkeys(("username", "login", "handle"), make_text(lambda f: f.username)),
    **dict.fromkeys(("phone", "phone_number", "mobile"), make_text(lambda f: f.phone)),
    "host": lambda r: r.choice((make_text(lambda f: f.name), HOSTNAME))(r),
    **dict.fromkeys(("hostname", "server", "domain"), HOSTNAME),
    "attributes": make_mapping(make_text(lambda f: f.word)),
    **dict.fromkeys(("metadata", "extra"), make_mapping(lambda r: make_scalar(r))),  # noqa: PLW0108
    **dict.fromkeys(("wait", "interval", "runtime"), make_format("duration", F.span)),
    "ipv6": make_format("ipv6", lambda f: ":".join(f"{f.rng.randrange(1 << 16):x}" for _ in range(8))),
    "book_title": make_text(lambda f: f"The {f.thing}".title()),
    **dict.fromkeys(("url", "website", "homepage", "link"), make_format("uri", lambda f: f.url)),
    **dict.fromkeys(("company", "employer", "vendor", "brand", "supplier"), make_text(lambda f: f.company)),
    **dict.fromkeys(("job", "job_title", "occupation", "role"), make_text(lambda f: f.pick(f.pools.job))),
    **dict.fromkeys(("street", "street_address", "address_line"), make_text(lambda f: f.street)),
    **dict.fromkeys(("city", "town", "birthplace", "destination", "origin"), make_text(lambda f: f.city)),
    "state": make_text(lambda f: f.pick(f.pools.state)),
    "country": make_text(lambda f: f.pick(f.pools.country)),
    "country_code": lambda r: Node({"type": "string", "pattern": "^[A-Z]{2}$"},
                                   lambda f: f.rng.choice("US GB DE FR ES IT NL PL SE JP".split())),
    **dict.fromkeys(("zip", "postal_code", "postcode"),
                    lambda r: Node({"type": "string"} | ({"pattern": r"^\d{5}$"} if r.random() < 0.5 else {}),
                                   lambda f: f"{f.rng.randrange(10_000, 99_999)}")),
    **dict.fromkeys(("birth_date", "born", "date_of_birth"), make_format("date", lambda f: f.born.isoformat())),
    **dict.fromkeys(("date", "start_date", "issued", "day", "ordered_on"),
                    make_format("date", lambda f: f.day.isoformat())),
    **dict.fromkeys(("end_date", "due", "due_date", "deadline"), make_format("date", lambda f: f.later().isoformat())),
    **dict.fromkeys(("time", "opens_at", "start_time"), make_format("time", lambda f: f.time() + "Z")),
    **dict.fromkeys(("created_at", "updated_at", "timestamp", "start", "when"), make_format("date-time", F.moment)),
    **dict.fromkeys(("ip", "ip_address"), make_format("ipv4", F.ipv4)),
    **dict.fromkeys(("title", "subject", "headline"), make_text(lambda f: f.event)),
    **dict.fromkeys(("product", "item", "product_name", "article"), make_text(lambda f: f.thing)),
    **dict.fromkeys(("description", "summary", "text", "message", "comment", "note", "bio", "notes"),
                    make_text(F.sentence)),
    **dict.fromkeys(("dish", "recipe", "meal"), make_text(lambda f: f.dish)),
    **dict.fromkeys(("ingredient", "food"), make_text(F.food)),
    "ingredients": make_array(make_text(F.food), 2, 5),
    **dict.fromkeys(("steps", "instructions"), make_array(make_text(F.step), 2, 4)),
    **dict.fromkeys(("problem", "issue", "question"), make_text(lambda f: f.problem.capitalize() + ".")),
    **dict.fromkeys(("category", "department", "tag", "kind", "topic"), make_enum(v.TAGS)),
    **dict.fromkeys(("tags", "labels", "keywords", "topics"), make_array(make_enum(v.TAGS, open_share=0.8), 1, 4)),
    "color": make_enum(v.COLORS),
    "hobbies": make_array(make_enum(v.HOBBIES, open_share=0.8), 1, 3),
    "languages": make_array(make_enum(v.LANGUAGES, open_share=0.8), 1, 3),
    "language": make_enum(v.LANGUAGES),
    "animal": make_enum(v.ANIMALS),
    "status": make_enum("open closed pending active done failed cancelled draft shipped paid"),
    **dict.fromkeys(("priority", "severity", "level"), make_enum("low medium high urgent critical")),
    "size": make_enum("S M L XL small medium large"),
    "gender": make_enum("female male other"),
    "currency": make_enum(v.CURRENCIES),
    **dict.fromkeys(("unit", "units"), make_enum(v.UNITS)),
    **dict.fromkeys(("price", "amount", "cost", "unit_price", "fee"), make_number(1, 500)),
    **dict.fromkeys(("total", "subtotal", "budget", "salary"), make_number(100, 9000)),
    "tax": make_number(0, 100),
    **dict.fromkeys(("rating", "score", "stars"), lambda r: r.choice((make_integer(1, 5), make_number(0, 5, 1)))(r)),
    **dict.fromkeys(("weight", "height", "width", "length", "distance"), make_number(0, 200, 1)),
    **dict.fromkeys(("value", "reading", "measurement"), make_number(0, 1000, 1)),
    "temperature": make_number(-20, 40, 1),
    "humidity": make_integer(10, 95, floor=0, ceiling=100),
    **dict.fromkeys(("latitude", "lat"), lambda r: Node({"type": "number", "minimum": -90, "maximum": 90},
                                                        lambda f: round(f.rng.uniform(-60, 70), 4))),
    **dict.fromkeys(("longitude", "lon"), lambda r: Node({"type": "number", "minimum": -180, "maximum": 180},
                                                         lambda f: round(f.rng.uniform(-170, 170), 4))),
    **dict.fromkeys(("confidence", "probability", "discount"), make_number(0, 1)),
    **dict.fromkeys(("quantity", "count", "stock", "seats", "guests", "servings", "pages"), make_integer(1, 50)),
    **dict.fromkeys(("minutes", "duration", "duration_minutes"), make_integer(5, 180)),
    **dict.fromkeys(("timeout", "retries", "limit", "workers", "port"), make_integer(1, 9000)),
    "year": make_integer(1950, 2025),
    **dict.fromkeys(("sku", "code", "reference", "serial", "order_number", "version"), make_code),
    **dict.fromkeys(("active", "enabled", "in_stock", "available", "is_member", "verified", "online", "debug",
                     "paid", "public", "subscribed", "refundable", "urgent"), make_boolean),
}  # fmt: skip


def make_scalar(r: random.Random) -> Node:
    """Make a value without a special meaning."""
    word = make_text(lambda f: f.words(f.rng.choice((1, 1, 2))))
    words = lambda q: make_enum(q.sample(v.TAGS + v.THINGS + v.COLORS, 5), open_share=0)(q)  # noqa: E731
    makers: tuple[Maker, ...] = (
        word,
        word,
        make_integer(0, 100),
        make_integer(0, 1000),
        make_number(0, 100),
        make_boolean,
        words,
        words,
        make_code,
    )
    if r.random() < 0.02:
        return make_tuple(r)
    return r.choice((*makers, make_constant, make_format("date", lambda f: f.day.isoformat()), make_text(F.sentence)))(
        r
    )


def draw_nonsense_word(r: random.Random) -> str:
    """Draw a word that is not a single token."""
    syllables = [r.choice("bcdfghjklmnprstvwz") + r.choice("aeiou") for _ in range(r.randint(1, 3))]
    return "".join(syllables) + r.choice("nrstx")


def invent_property(r: random.Random, facts: Facts) -> tuple[str, Node]:
    """Return a property named by one to three random words, the last of which may be a known name that
    sets its type.
    """
    words = [
        draw_nonsense_word(r) if r.random() < 0.15 else facts.pick(facts.pools.words)
        for _ in range(r.choice((1, 2, 2, 3)))
    ]
    if r.random() < 0.3:
        known = r.choice(list(FIELDS))
        return "_".join((*words[:1], known)), FIELDS[known](r)
    node = make_scalar(r)
    if r.random() < 0.15:
        node = make_array(lambda _: node)(r)
    return "_".join(words), node
