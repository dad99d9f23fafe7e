"""Exercises in calling one of several tools with random names and arguments."""

from __future__ import annotations

import random
from typing import Any

import wordings as w
from drawn_values import choose_key_names, draw_value, infer_schema
from values import Facts

__all__ = ["make_tool_call"]

Json = Any
Exercise = tuple[str, dict[str, Any], Json]

DETAILS = {
    "name": "for {v}|of {v}|by {v}|to {v}", "city": "in {v}|near {v}|to {v}", "date": "on {v}|for {v}|from {v}",
    "time": "at {v}", "email": "to {v}|at {v}|with {v}", "phone": "at {v}|under {v}",
    "product": "with the {v}|for a {v}|of the {v}", "color": "in {v}|that is {v}",
    "quantity": "{v} times|of {v} pieces|for {v}", "price": "for {v}|under {v}|at most {v}",
    "order_number": "number {v}|{v}|with number {v}", "company": "from {v}|of {v}|at {v}",
    "language": "in {v}|into {v}", "street": "at {v}",
    "username": "as {v}|of {v}", "url": "from {v}|at {v}", "age": "aged {v}|who is {v}",
}  # fmt: skip
REQUESTS = (
    "Please {v} the {n} {d}.", "{V} a {n} {d}.", "Can you {v} the {n} {d}?", "I want to {v} my {n}: {d}.",
    "{V} {n} {d}", "{V} the {n}, {d}.", "We must {v} this {n} {d}.",
)  # fmt: skip


def make_tool_call(r: random.Random, f: Facts) -> Exercise:
    """Make a request that names one of up to three tools, answered by its call."""
    count = r.choice((1, 2, 2, 3))
    verbs, nouns = r.sample(w.TOOL_VERBS, count), r.sample(w.TOOL_NOUNS, count)
    tools: list[tuple[str, str, str, list[str]]] = []
    for one, other in zip(verbs, nouns, strict=True):
        (verb, said), (noun, meant) = one.split(":"), other.split(":")
        words = (r.choice(said.split()), r.choice(meant.split()))
        tools.append((f"{verb}_{noun}", *words, r.sample(list(w.ATTRIBUTES), r.randint(1, 3))))
    name, verb, noun, keys = r.choice(tools)
    keys = ["name", *keys] if r.random() < 0.35 else keys
    said = {key: draw_value(r, f, key) for key in keys}
    details = [describe_detail(r, key, x) for key, x in said.items()]
    text = r.choice(REQUESTS).format(
        v=verb, V=verb.capitalize(), n=noun, d=r.choice((", ", " ", " and ")).join(details)
    )
    spelled = choose_key_names(r, [*{k: 0 for tool in tools for k in (keys if tool[0] == name else tool[3])}])
    tag = r.choice(("name", "name", "tool", "function"))
    inside = r.choice(("arguments", "arguments", "args", "parameters"))
    cases = []
    closed = {"additionalProperties": False} if r.random() < 0.7 else {}
    for tool in tools:
        wanted = keys if tool[0] == name else tool[3]
        properties = {spelled[key]: build_argument_schema(r, f, key, said) for key in wanted}
        inner = {**closed, "type": "object", "properties": properties, "required": list(properties)}
        if r.random() < 0.5:
            inner = {"type": "object", "properties": properties, "required": list(properties), **closed}
        members = {tag: {"const": tool[0]}, inside: inner}
        cases.append({"type": "object", "properties": members, "required": list(members), **closed})
    answer: Json = {tag: name, inside: {spelled[key]: x for key, x in said.items()}}
    if count == 1:
        return (text, {"schema": cases[0]}, answer) if r.random() < 0.6 else (text, {"schema": inner}, answer[inside])
    return text, {"schema": {r.choice(("anyOf", "anyOf", "oneOf")): cases}}, answer


def build_argument_schema(r: random.Random, f: Facts, key: str, said: dict[str, Json]) -> Json:
    """Return the schema of an argument, for its value in the request or for a random one."""
    return infer_schema(r, said[key] if key in said else draw_value(r, f, key), key)


def describe_detail(r: random.Random, key: str, value: Json) -> str:
    """Return the words of a request for one argument."""
    forms = DETAILS.get(key, "with {k} {v}|{k} {v}|where the {k} is {v}") + "|{k} {v}"
    return r.choice(forms.split("|")).format(k=key.replace("_", " "), v=value)
