"""Typed building blocks: a `Node` is a JSON Schema together with a way to draw sensible values of it.

`FIELDS` maps names of properties to makers of nodes; `invented` makes properties that nobody has named before, so that
the only way to spell a key is to copy it from the schema.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import values as v
from values import Facts

__all__ = ["FIELDS", "Node", "invented", "pattern", "scalar"]

Json = Any


@dataclass(frozen=True)
class Node:
    schema: dict[str, Json]
    draw: Callable[[Facts], Json]


Maker = Callable[[random.Random], Node]


def text(draw: Callable[[Facts], str], **extra: Json) -> Maker:
    """A string; sometimes its schema also bounds the length, generously enough for what is drawn."""

    def make(r: random.Random) -> Node:
        schema = {"type": "string", **extra}
        if not extra and r.random() < 0.12:
            schema |= r.choice(({"minLength": 1}, {"maxLength": 100}, {"minLength": 1, "maxLength": 80}))
        return Node(schema, draw)

    return make


def fmt(name: str, draw: Callable[[Facts], str]) -> Maker:
    """A string whose format is mostly, not always, declared."""
    return lambda r: Node({"type": "string", "format": name} if r.random() < 0.8 else {"type": "string"}, draw)


def whole(low: int, high: int, *, floor: int | None = None, ceiling: int | None = None) -> Maker:
    """An integer drawn from low..high; its schema has no bounds, the given ones, or narrow ones made up here."""

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


def real(low: float, high: float, places: int = 2) -> Maker:
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


def one_of(options: str | list[Json], *, open_share: float = 0.3) -> Maker:
    """An enum of some of the options; with probability `open_share` a plain string instead."""
    items = options.split() if isinstance(options, str) else options

    def make(r: random.Random) -> Node:
        some = r.sample(items, r.randint(2, min(len(items), 5)))
        if r.random() < open_share:
            return Node({"type": "string"}, lambda f: f.rng.choice(items))
        schema = {"enum": some} if r.random() < 0.3 else {"type": "string", "enum": some}
        return Node(schema, lambda f: f.rng.choice(some))

    return make


def flag(r: random.Random) -> Node:
    share = r.choice((0.3, 0.5, 0.7))
    return Node({"type": "boolean"}, lambda f: f.rng.random() < share)


def several(item: Maker, low: int = 1, high: int = 4) -> Maker:
    """An array of items, sometimes with bounds on their number, which the drawn value keeps."""

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
        return Node(schema, lambda f: distinct(node, f, f.rng.randint(lo, hi), lo))

    return make


def distinct(node: Node, f: Facts, count: int, least: int) -> list[Json]:
    """Draws without repetition where there are that many values, because lists of people's things do not repeat."""
    found: list[Json] = []
    for _ in range(4 * count):
        value = node.draw(Facts(f.rng, f.pools) if found else f)
        if len(found) < count and value not in found:
            found.append(value)
    while len(found) < least:
        found.append(node.draw(Facts(f.rng, f.pools)))
    return found


def pair(r: random.Random) -> Node:
    """A tuple of two or three."""
    parts = [scalar(r) for _ in range(r.randint(2, 3))]
    schema = {"type": "array", "prefixItems": [part.schema for part in parts], "minItems": len(parts)}
    if r.random() < 0.7:
        schema["items"] = False
    return Node(schema, lambda f: [part.draw(f) for part in parts])


def free(item: Maker) -> Maker:
    """An object with free keys."""

    def make(r: random.Random) -> Node:
        node = item(r)
        schema: dict[str, Json] = {"type": "object", "additionalProperties": node.schema}
        if r.random() < 0.2:
            schema["propertyNames"] = {"pattern": r.choice(("^[a-z]+$", "^[a-z_]+$"))}
        if r.random() < 0.2:
            schema["maxProperties"] = 4
        return Node(schema, lambda f: {f.pick(f.pools.words).lower(): node.draw(f) for _ in range(f.rng.randint(1, 3))})

    return make


def pattern(r: random.Random) -> tuple[str, Callable[[Facts], str]]:
    """A random regular expression without anchors, and how to draw a text of it."""
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


def code(r: random.Random) -> Node:
    source, draw = pattern(r)
    return Node({"type": "string", "pattern": f"^{source}$"}, draw)


def constant(r: random.Random) -> Node:
    value: Json = r.choice((r.choice(v.TAGS), r.choice(v.THINGS), r.randint(0, 9), True, "v1", "1.0", None))
    return Node({"const": value}, lambda f: value)


F = Facts
HOSTNAME = fmt("hostname", lambda f: f.rng.choice((f.domain, "localhost", "api.example.com", f"{f.word}.example.org")))
FIELDS: dict[str, Maker] = {
    "id": lambda r: r.choice((whole(1, 9999), fmt("uuid", F.uuid), code))(r),
    **dict.fromkeys(("uuid", "request_id", "session_id"), fmt("uuid", F.uuid)),
    **dict.fromkeys(("name", "full_name", "customer", "author", "contact", "owner"), text(lambda f: f.name)),
    **dict.fromkeys(("first_name", "given_name"), text(lambda f: f.first)),
    **dict.fromkeys(("last_name", "surname", "family_name"), text(lambda f: f.last)),
    **dict.fromkeys(("assignee", "speaker", "doctor", "teacher"), text(lambda f: f"{f.first} {f.last}")),
    "age": lambda r: Node(r.choice(({"type": "integer"}, {"type": "integer", "minimum": 0},
                          {"type": "integer", "minimum": 0, "maximum": 120})), lambda f: f.age),
    **dict.fromkeys(("email", "contact_email", "reply_to"), fmt("email", lambda f: f.email)),
    **dict.fromkeys(("username", "login", "handle"), text(lambda f: f.username)),
    **dict.fromkeys(("phone", "phone_number", "mobile"), text(lambda f: f.phone)),
    "host": lambda r: r.choice((text(lambda f: f.name), HOSTNAME))(r),
    **dict.fromkeys(("hostname", "server", "domain"), HOSTNAME),
    "attributes": free(text(lambda f: f.word)),
    **dict.fromkeys(("metadata", "extra"), free(lambda r: scalar(r))),  # noqa: PLW0108
    **dict.fromkeys(("wait", "interval", "runtime"), fmt("duration", F.span)),
    "ipv6": fmt("ipv6", lambda f: ":".join(f"{f.rng.randrange(1 << 16):x}" for _ in range(8))),
    "book_title": text(lambda f: f"The {f.thing}".title()),
    **dict.fromkeys(("url", "website", "homepage", "link"), fmt("uri", lambda f: f.url)),
    **dict.fromkeys(("company", "employer", "vendor", "brand", "supplier"), text(lambda f: f.company)),
    **dict.fromkeys(("job", "job_title", "occupation", "role"), text(lambda f: f.pick(f.pools.job))),
    **dict.fromkeys(("street", "street_address", "address_line"), text(lambda f: f.street)),
    **dict.fromkeys(("city", "town", "birthplace", "destination", "origin"), text(lambda f: f.city)),
    "state": text(lambda f: f.pick(f.pools.state)),
    "country": text(lambda f: f.pick(f.pools.country)),
    "country_code": lambda r: Node({"type": "string", "pattern": "^[A-Z]{2}$"},
                                   lambda f: f.rng.choice("US GB DE FR ES IT NL PL SE JP".split())),
    **dict.fromkeys(("zip", "postal_code", "postcode"),
                    lambda r: Node({"type": "string"} | ({"pattern": r"^\d{5}$"} if r.random() < 0.5 else {}),
                                   lambda f: f"{f.rng.randrange(10_000, 99_999)}")),
    **dict.fromkeys(("birth_date", "born", "date_of_birth"), fmt("date", lambda f: f.born.isoformat())),
    **dict.fromkeys(("date", "start_date", "issued", "day", "ordered_on"), fmt("date", lambda f: f.day.isoformat())),
    **dict.fromkeys(("end_date", "due", "due_date", "deadline"), fmt("date", lambda f: f.later().isoformat())),
    **dict.fromkeys(("time", "opens_at", "start_time"), fmt("time", lambda f: f.time() + "Z")),
    **dict.fromkeys(("created_at", "updated_at", "timestamp", "start", "when"), fmt("date-time", F.moment)),
    **dict.fromkeys(("ip", "ip_address"), fmt("ipv4", F.ipv4)),
    **dict.fromkeys(("title", "subject", "headline"), text(lambda f: f.event)),
    **dict.fromkeys(("product", "item", "product_name", "article"), text(lambda f: f.thing)),
    **dict.fromkeys(("description", "summary", "text", "message", "comment", "note", "bio", "notes"), text(F.sentence)),
    **dict.fromkeys(("dish", "recipe", "meal"), text(lambda f: f.dish)),
    **dict.fromkeys(("ingredient", "food"), text(F.food)),
    "ingredients": several(text(F.food), 2, 5),
    **dict.fromkeys(("steps", "instructions"), several(text(F.step), 2, 4)),
    **dict.fromkeys(("problem", "issue", "question"), text(lambda f: f.problem.capitalize() + ".")),
    **dict.fromkeys(("category", "department", "tag", "kind", "topic"), one_of(v.TAGS)),
    **dict.fromkeys(("tags", "labels", "keywords", "topics"), several(one_of(v.TAGS, open_share=0.8), 1, 4)),
    "color": one_of(v.COLORS),
    "hobbies": several(one_of(v.HOBBIES, open_share=0.8), 1, 3),
    "languages": several(one_of(v.LANGUAGES, open_share=0.8), 1, 3),
    "language": one_of(v.LANGUAGES),
    "animal": one_of(v.ANIMALS),
    "status": one_of("open closed pending active done failed cancelled draft shipped paid"),
    **dict.fromkeys(("priority", "severity", "level"), one_of("low medium high urgent critical")),
    "size": one_of("S M L XL small medium large"),
    "gender": one_of("female male other"),
    "currency": one_of(v.CURRENCIES),
    **dict.fromkeys(("unit", "units"), one_of(v.UNITS)),
    **dict.fromkeys(("price", "amount", "cost", "unit_price", "fee"), real(1, 500)),
    **dict.fromkeys(("total", "subtotal", "budget", "salary"), real(100, 9000)),
    "tax": real(0, 100),
    **dict.fromkeys(("rating", "score", "stars"), lambda r: r.choice((whole(1, 5), real(0, 5, 1)))(r)),
    **dict.fromkeys(("weight", "height", "width", "length", "distance"), real(0, 200, 1)),
    **dict.fromkeys(("value", "reading", "measurement"), real(0, 1000, 1)),
    "temperature": real(-20, 40, 1),
    "humidity": whole(10, 95, floor=0, ceiling=100),
    **dict.fromkeys(("latitude", "lat"), lambda r: Node({"type": "number", "minimum": -90, "maximum": 90},
                                                        lambda f: round(f.rng.uniform(-60, 70), 4))),
    **dict.fromkeys(("longitude", "lon"), lambda r: Node({"type": "number", "minimum": -180, "maximum": 180},
                                                         lambda f: round(f.rng.uniform(-170, 170), 4))),
    **dict.fromkeys(("confidence", "probability", "discount"), real(0, 1)),
    **dict.fromkeys(("quantity", "count", "stock", "seats", "guests", "servings", "pages"), whole(1, 50)),
    **dict.fromkeys(("minutes", "duration", "duration_minutes"), whole(5, 180)),
    **dict.fromkeys(("timeout", "retries", "limit", "workers", "port"), whole(1, 9000)),
    "year": whole(1950, 2025),
    "sku": code, "code": code, "reference": code, "serial": code, "order_number": code, "version": code,
    **dict.fromkeys(("active", "enabled", "in_stock", "available", "is_member", "verified", "online", "debug",
                     "paid", "public", "subscribed", "refundable", "urgent"), flag),
}  # fmt: skip


def scalar(r: random.Random) -> Node:
    """A value of no special meaning."""
    word = text(lambda f: f.words(f.rng.choice((1, 1, 2))))
    words = lambda q: one_of(q.sample(v.TAGS + v.THINGS + v.COLORS, 5), open_share=0)(q)  # noqa: E731
    makers: tuple[Maker, ...] = (word, word, whole(0, 100), whole(0, 1000), real(0, 100), flag, words, words, code)
    if r.random() < 0.02:
        return pair(r)
    return r.choice((*makers, constant, fmt("date", lambda f: f.day.isoformat()), text(F.sentence)))(r)


def nonsense(r: random.Random) -> str:
    """A word that no tokenizer has as a whole."""
    syllables = [r.choice("bcdfghjklmnprstvwz") + r.choice("aeiou") for _ in range(r.randint(1, 3))]
    return "".join(syllables) + r.choice("nrstx")


def invented(r: random.Random, facts: Facts) -> tuple[str, Node]:
    """A property whose name is one to three random words, sometimes ending in a known name that says what it holds."""
    words = [nonsense(r) if r.random() < 0.15 else facts.pick(facts.pools.words) for _ in range(r.choice((1, 2, 2, 3)))]
    if r.random() < 0.3:
        known = r.choice(list(FIELDS))
        return "_".join((*words[:1], known)), FIELDS[known](r)
    node = scalar(r)
    if r.random() < 0.15:
        node = several(lambda _: node)(r)
    return "_".join(words), node
