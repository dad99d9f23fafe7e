"""Requests in words, answered by a tool call or a record with the values of the request.

A tool is shown alone or among others (`anyOf` with a constant name each); the request determines which one to call.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import values as v
from families import to_camel_case
from values import Facts

__all__ = ["make_call", "make_extraction"]

Json = Any
STRING, INTEGER, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
DATE, EMAIL = {"type": "string", "format": "date"}, {"type": "string", "format": "email"}


@dataclass(frozen=True)
class Tool:
    """A tool: its name, the schema of each argument, wordings of requests (arguments in braces), and a function that
    draws arguments.
    """

    name: str
    arguments: dict[str, Json]
    asks: tuple[str, ...]
    draw: Callable[[Facts], dict[str, Json]]


TOOLS = (
    Tool("get_weather", {"city": STRING, "unit": {"enum": ["celsius", "fahrenheit"]}},
         ("What is the weather in {city} in {unit}?", "How warm is it in {city}? Use {unit}.",
          "Weather in {city}, {unit}."),
         lambda f: {"city": f.city, "unit": f.rng.choice(("celsius", "fahrenheit"))}),
    Tool("send_email", {"to": EMAIL, "subject": STRING, "body": STRING},
         ('Write to {to} about "{subject}" and say: {body}', "Send an email to {to}, subject {subject}: {body}"),
         lambda f: {"to": f.email, "subject": f.event, "body": f.sentence()}),
    Tool("create_event", {"title": STRING, "date": DATE, "city": STRING},
         ("Put {title} in {city} on {date} in my calendar.", "{title} is on {date} in {city}, please note it."),
         lambda f: {"title": f.event, "date": f.day.isoformat(), "city": f.city}),
    Tool("book_table", {"guests": INTEGER, "restaurant": STRING, "date": DATE},
         ("Book a table for {guests} at {restaurant} on {date}.",
          "We are {guests}; get us a table at {restaurant} on {date}."),
         lambda f: {"guests": f.rng.randrange(1, 13),
                    "restaurant": f"{f.last}'s {f.rng.choice(('Bar', 'Grill', 'Kitchen'))}",
                    "date": f.day.isoformat()}),
    Tool("search_products", {"query": STRING, "max_price": NUMBER},
         ("Find a {query} for at most {max_price}.", "I want a {query}, not more than {max_price}."),
         lambda f: {"query": f.thing,
                    "max_price": f.rng.choice((f.rng.randrange(5, 900), f.rng.randrange(5, 90) + 0.5))}),
    Tool("set_alarm", {"time": {"type": "string", "pattern": r"^\d{2}:\d{2}$"}, "label": STRING},
         ("Wake me at {time} for the {label}.", "Set an alarm for {label} at {time}."),
         lambda f: {"time": f.time()[:5], "label": f.pick(v.TOPICS)}),
    Tool("translate", {"text": STRING, "language": {"enum": v.LANGUAGES[:6]}},
         ('Translate "{text}" to {language}.', 'How do you say "{text}" in {language}?'),
         lambda f: {"text": f.thing, "language": f.pick(v.LANGUAGES[:6])}),
    Tool("transfer_money", {"to": STRING, "amount": NUMBER, "currency": {"enum": v.CURRENCIES[:4]}},
         ("Send {amount} {currency} to {to}.", "Pay {to} {amount} {currency}.",
          "I owe {to} {amount} {currency}; transfer it."),
         lambda f: {"to": f.name, "amount": round(f.rng.uniform(1, 900), 2), "currency": f.pick(v.CURRENCIES[:4])}),
    Tool("add_to_cart", {"product": STRING, "quantity": {"type": "integer", "minimum": 1}},
         ("Add {quantity} times the {product} to my cart.", "I will take {quantity} of the {product}."),
         lambda f: {"product": f.thing, "quantity": f.rng.randrange(1, 20)}),
    Tool("play_music", {"genre": STRING, "minutes": INTEGER},
         ("Play {genre} for {minutes} minutes.", "I want to hear {minutes} minutes of {genre}."),
         lambda f: {"genre": f.rng.choice("jazz rock pop blues soul folk techno classical".split()),
                    "minutes": f.rng.randrange(1, 19) * 5}),
    Tool("remind", {"text": STRING, "date": DATE},
         ("Remind me on {date} to {text}.", "On {date} I have to {text}."),
         lambda f: {"text": f"{f.rng.choice(('call', 'visit', 'pay', 'thank', 'write to'))} {f.first}",
                    "date": f.day.isoformat()}),
    Tool("open_ticket", {"customer": STRING, "problem": STRING, "priority": {"enum": ["low", "medium", "high"]}},
         ("{customer} reports: {problem}. Priority {priority}.",
          "A {priority} priority ticket for {customer}: {problem}."),
         lambda f: {"customer": f.name, "problem": f.problem, "priority": f.rng.choice(("low", "medium", "high"))}),
)  # fmt: skip

TOLD = (
    ("{name}, {age}, is a {job} from {city}.", "name age job city"),
    ("{name} is {age} years old and lives in {city}.", "name age city"),
    ("My name is {name}, I am {age} and work as a {job} at {company}.", "name age job company"),
    ("{name} ({email}) works for {company}.", "name email company"),
    ("Write to {email} or call {phone}, and ask for {name}.", "email phone name"),
    ("{name} was born on {birth_date} in {city}.", "name birth_date city"),
    ("The {product} costs {price} {currency}.", "product price currency"),
    ("We ordered {quantity} of the {product} on {date} at {price} each.", "quantity product date price"),
    ("{title} in {city} on {date}, hosted by {name}.", "title city date name"),
    ("Send it to {name}, {street}, {city} {postal_code}.", "name street city postal_code"),
    ("{name} pays {price} {currency} on {date}.", "name price currency date"),
    ("{name} likes {hobby} and speaks {language}.", "name hobby language"),
)


def build_tool_schema(r: random.Random, tool: Tool, keys: tuple[str, str]) -> Json:
    inner = {"type": "object", "properties": tool.arguments, "required": list(tool.arguments)}
    const = {"const": tool.name} if r.random() < 0.7 else {"type": "string", "enum": [tool.name]}
    return {"type": "object", "properties": {keys[0]: const, keys[1]: inner}, "required": list(keys)}


def make_call(r: random.Random, facts: Facts) -> tuple[str, Json, Json]:
    """Return (request, schema, answer) of a tool call. The schema is of its arguments, of one tool, or of several."""
    tool = r.choice(TOOLS)
    drawn = tool.draw(facts)
    request = r.choice(tool.asks).format(**drawn)
    arguments = {key: drawn[key] for key in tool.arguments}
    keys = r.choice((("tool", "arguments"), ("name", "arguments"), ("function", "args"), ("name", "parameters")))
    roll = r.random()
    if roll < 0.35:
        return request, {"type": "object", "properties": tool.arguments, "required": list(tool.arguments)}, arguments
    answer = {keys[0]: tool.name, keys[1]: arguments}
    if roll < 0.6:
        return request, build_tool_schema(r, tool, keys), answer
    several = r.sample([t for t in TOOLS if t is not tool], r.randint(1, 2)) + [tool]
    r.shuffle(several)
    return request, {r.choice(("anyOf", "oneOf")): [build_tool_schema(r, t, keys) for t in several]}, answer


def make_extraction(r: random.Random, facts: Facts) -> tuple[str, Json, Json]:
    """Return (text, schema, answer): a sentence, answered by a record of its values."""
    text, names = r.choice(TOLD)
    said: dict[str, Json] = {
        "name": facts.name, "age": facts.age, "job": facts.pick(facts.pools.job).lower(), "city": facts.city,
        "company": facts.company, "email": facts.email, "phone": facts.phone, "birth_date": facts.born.isoformat(),
        "product": facts.thing, "price": round(r.uniform(1, 300), 2), "currency": facts.pick(v.CURRENCIES),
        "quantity": r.randrange(2, 90), "date": facts.day.isoformat(), "title": facts.event, "street": facts.street,
        "postal_code": f"{r.randrange(10_000, 99_999)}", "hobby": facts.pick(v.HOBBIES),
        "language": facts.pick(v.LANGUAGES),
    }  # fmt: skip
    kinds = {"age": INTEGER, "quantity": INTEGER, "price": NUMBER, "email": EMAIL, "date": DATE, "birth_date": DATE}
    wanted = names.split()
    if r.random() < 0.4:
        r.shuffle(wanted)
    wanted = wanted[: r.randint(1, len(wanted))]
    case = to_camel_case if r.random() < 0.3 else str
    ask = r.choice(("{}", "{}", "Extract the data: {}", "{} Write that as JSON.", "Read: {}"))
    properties = {case(name): kinds.get(name, STRING) for name in wanted}
    schema: Json = {"type": "object", "properties": properties, "required": list(properties)}
    if r.random() < 0.3:
        schema["additionalProperties"] = False
    return ask.format(text.format(**said)), schema, {case(name): said[name] for name in wanted}
