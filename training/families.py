"""Families of schemas: properties of a subject, nested, in arrays, tagged, recursive, in several spellings.

`draw_family(rng, facts)` returns a title and a Node; `vary_schema(rng, schema, title)` changes the spelling of the
schema and not its meaning: as Pydantic writes it, with descriptions, with inner objects moved to `$defs`.
"""

from __future__ import annotations

import copy
import random
from typing import Any

from fields import FIELDS, Node, invent_property, make_array, make_mapping, make_scalar
from values import Facts

__all__ = ["SUBJECTS", "vary_schema", "draw_family"]

Json = Any

SUBJECTS: dict[str, str] = {
    "person": "name first_name last_name age email phone city job company birth_date hobbies languages gender bio "
              "active",
    "user": "id username email name is_member created_at role website verified language active tags",
    "address": "street city state postal_code country country_code latitude longitude",
    "product": "id sku name product price currency in_stock stock tags category description color rating weight brand",
    "event": "title date start end_date city host seats description price tags public url minutes",
    "order": "id order_number customer ordered_on status total currency email paid notes quantity product",
    "invoice": "reference customer issued due_date total subtotal tax currency paid email",
    "recipe": "dish title servings minutes ingredients steps tags rating description",
    "ticket": "id subject problem priority status assignee created_at tags email description category",
    "measurement": "timestamp value unit temperature humidity confidence latitude longitude serial note",
    "settings": "host hostname server timeout retries limit workers port enabled debug level language version url "
                "interval attributes",
    "review": "author rating title text date product verified",
    "book": "title author year pages language price available summary",
    "trip": "origin destination start_date end_date guests budget currency notes refundable",
    "contact": "first_name last_name email phone company job_title website note",
    "animal": "name animal age weight owner color description",
    "payment": "id amount currency status timestamp customer reference",
    "article": "headline author date summary tags url language public",
    "task": "title description assignee due_date priority status minutes tags",
    "message": "id author timestamp text topic urgent reply_to",
    "company": "company website email phone city country year description",
    "log entry": "timestamp level message ip request_id duration code",
    "appointment": "doctor name date time duration_minutes phone note",
    "course": "title teacher start_date seats price level topics online",
    "record": "id name value date status note attributes",
    "point": "name lat lon value", "meal": "dish ingredients price rating date",
}  # fmt: skip

# The meaning of a property depends on its subject.
MEANINGS = {
    ("product", "name"): "product", ("company", "name"): "company", ("animal", "name"): "first_name",
    ("point", "name"): "city", ("recipe", "title"): "dish", ("book", "title"): "book_title",
    ("ticket", "subject"): "problem", ("task", "title"): "problem", ("review", "title"): "book_title",
    ("settings", "host"): "hostname", ("course", "title"): "topic",
}  # fmt: skip

CHILDREN = (
    "address items contact details location owner options metadata dimensions author settings entries lines"
).split()
PLURALS = "items entries lines records rows people products orders events results".split()


def to_camel_case(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


CASES = {
    "snake": lambda s: s,
    "camel": to_camel_case,
    "kebab": lambda s: s.replace("_", "-"),
    "title": lambda s: to_camel_case("_" + s),
}


def draw_case(r: random.Random) -> str:
    return r.choices(list(CASES), (65, 25, 5, 5))[0]


def build_object(r: random.Random, props: dict[str, Node]) -> Node:
    """Return an object with these properties. Required ones are always drawn, others with probability 0.88."""
    optional_share = r.choice((0.0, 0.0, 0.0, 0.2, 0.5, 1.0))
    required = [name for name in props if r.random() >= optional_share]
    schema: dict[str, Json] = {"type": "object", "properties": {name: node.schema for name, node in props.items()}}
    if required:
        schema["required"] = required
    if r.random() < 0.4:
        schema["additionalProperties"] = False
    must = set(required)

    def draw(f: Facts) -> Json:
        some = [name for name in props if name in must or f.rng.random() < 0.88] or list(props)
        return {name: props[name].draw(f) for name in some}

    return Node(schema, draw)


def draw_new_facts(node: Node) -> Node:
    """Return a node that draws new facts each time, so that the rows of a table are about different subjects."""
    return Node(node.schema, lambda f: node.draw(Facts(f.rng, f.pools)))


def make_nullable(r: random.Random, node: Node) -> Node:
    kind = node.schema.get("type")
    if isinstance(kind, str) and "enum" not in node.schema and r.random() < 0.4:
        schema = {**node.schema, "type": [kind, "null"]}
    else:
        schema = {"anyOf": [node.schema, {"type": "null"}]}
    return Node(schema, lambda f: node.draw(f) if f.rng.random() < 0.7 else None)


def make_record(r: random.Random, facts: Facts, subject: str, most: int, depth: int, case: str) -> Node:
    """Return an object about a subject: some of its properties, some invented ones, some nested ones."""
    known = SUBJECTS[subject].split()
    made_up = r.random()
    names = r.sample(known, min(len(known), r.randint(1 if made_up < 0.5 else 2, most)))
    if r.random() < 0.7:
        names.sort(key=known.index)
    props: dict[str, Node] = {}
    for name in names:
        if made_up < 0.3 or (made_up < 0.5 and r.random() < 0.5):
            key, node = invent_property(r, facts)
        else:
            key, node = name, FIELDS[MEANINGS.get((subject, name), name)](r)
        props[CASES[case](key)] = make_nullable(r, node) if r.random() < 0.05 else node
    for _ in range(r.choice((0, 0, 1, 2)) if depth > 0 else 0):
        inner = make_record(r, facts, r.choice(list(SUBJECTS)), 3, depth - 1, case)
        key = r.choice(CHILDREN) if r.random() < 0.6 else facts.pick(facts.pools.words)
        props[CASES[case](key)] = (
            make_array(lambda _, n=inner: draw_new_facts(n), 1, 3)(r) if r.random() < 0.4 else inner
        )
    return build_object(r, props)


def make_table(r: random.Random, facts: Facts) -> Node:
    row = draw_new_facts(make_record(r, facts, r.choice(list(SUBJECTS)), r.choice((3, 5)), 0, draw_case(r)))
    rows = make_array(lambda _: row, 2, 4)(r)
    if r.random() < 0.4:
        return rows
    name = r.choice(PLURALS)
    return build_object(r, {name: rows} | ({"count": make_scalar(r)} if r.random() < 0.1 else {}))


def make_tree(r: random.Random, facts: Facts) -> Node:
    """Return a recursive object: a value, and children of the same form."""
    name = r.choice(("name", "value", "title", "label", "id"))
    kids = r.choice(("children", "nodes", "parts", "replies"))
    own = FIELDS[name](r) if name in FIELDS else make_scalar(r)
    where = r.choice(("#", "#/$defs/node", "#/$defs/Tree"))
    body = {
        "type": "object",
        "properties": {name: own.schema, kids: {"type": "array", "items": {"$ref": where}}},
        "required": r.choice(([name], [name, kids])),
    }

    def draw(f: Facts, depth: int = 0) -> Json:
        count = f.rng.choice((0, 1, 2, 2)) if depth < 2 else 0
        f = Facts(f.rng, f.pools)
        full = kids in body["required"] or count or f.rng.random() < 0.3
        return {name: own.draw(f)} | ({kids: [draw(f, depth + 1) for _ in range(count)]} if full else {})

    label = where.split("/")[-1]
    return Node(body if where == "#" else {"$defs": {label: body}, "$ref": where}, draw)


def make_tagged_union(r: random.Random, facts: Facts) -> Node:
    """Return a union of objects that a constant distinguishes, such as tool calls."""
    tool = r.random() < 0.6
    tag = r.choice(("tool", "name", "function", "action")) if tool else r.choice(("type", "kind", "shape"))
    cases: list[Node] = []
    subjects = r.sample(list(SUBJECTS), r.randint(1, 3))
    for subject in subjects:
        verb = r.choice(("create", "find", "get", "send", "update", "delete", "search", "book"))
        label = f"{verb}_{subject.replace(' ', '_')}" if tool else subject
        key = Node({"const": label} if r.random() < 0.7 else {"enum": [label]}, lambda f, x=label: x)
        inner = make_record(r, facts, subject, 3, 0, "snake")
        if tool:
            props = {tag: key, r.choice(("arguments", "args", "parameters")): inner}
            node = build_object(r, props)
            node.schema["required"] = list(props)
            cases.append(Node(node.schema, lambda f, p=props: {k: n.draw(f) for k, n in p.items()}))
        else:
            names = [tag, *(k for k in inner.schema["properties"] if k != tag)]
            schema = {**inner.schema, "properties": {tag: key.schema} | {
                k: s for k, s in inner.schema["properties"].items() if k != tag}, "required": names}  # fmt: skip
            cases.append(Node(schema, lambda f, n=inner, x=label, w=names: {tag: x} | draw_all(n, f, w[1:])))
    if len(cases) == 1:
        return cases[0]
    return Node({r.choice(("anyOf", "oneOf")): [c.schema for c in cases]}, lambda f: f.rng.choice(cases).draw(f))


def draw_all(node: Node, f: Facts, names: list[str]) -> dict[str, Json]:
    """Draw from an object until all of these properties have a value."""
    found: dict[str, Json] = {}
    while any(name not in found for name in names):
        found = node.draw(f) | found
    return {name: found[name] for name in names}


def draw_family(r: random.Random, facts: Facts) -> tuple[str, Node]:
    """Return a random schema: (title, node)."""
    roll, subject = r.random(), r.choice(list(SUBJECTS))
    if roll < 0.62:
        return subject, make_record(r, facts, subject, r.choice((3, 5, 8, 12)), r.choice((0, 0, 1, 1, 2)), draw_case(r))
    if roll < 0.74:
        return "list", make_table(r, facts)
    if roll < 0.84:
        return "tool call", make_tagged_union(r, facts)
    if roll < 0.88:
        return "tree", make_tree(r, facts)
    if roll < 0.91:
        return "mapping", make_mapping(make_scalar)(r)
    if roll < 0.96:
        key = r.choice(list(FIELDS))
        return key.replace("_", " "), FIELDS[key](r)
    return "value", make_scalar(r)


def write_heading(key: str) -> str:
    return key.replace("_", " ").replace("-", " ").title()


def vary_schema(r: random.Random, schema: dict[str, Json], title: str) -> dict[str, Json]:
    """Return an equivalent schema in another spelling."""
    schema, roll = copy.deepcopy(schema), r.random()
    defs = schema.pop("$defs", {})
    pydantic = roll < 0.2
    if (pydantic or roll < 0.27) and "$ref" not in schema:
        schema = move_to_definitions(schema, defs, top=True)
    if pydantic:
        schema = format_as_pydantic(schema, write_heading(title).replace(" ", ""))
        defs = {name: format_as_pydantic(inner, name) for name, inner in defs.items()}
        return ({"$defs": defs} if defs else {}) | schema
    if roll > 0.9:
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"} | schema
    if roll > 0.8:
        add_descriptions(r, schema)
    if r.random() < 0.1:
        schema = {"title": write_heading(title), **schema}
    if not defs:
        return schema
    return {"$defs": defs, **schema} if r.random() < 0.5 else {**schema, "$defs": defs}


def move_to_definitions(schema: Json, defs: dict[str, Json], *, top: bool = False, name: str = "Item") -> Json:
    """Move the inner objects of a schema to `defs` and replace them with references."""
    if not isinstance(schema, dict) or "$ref" in schema:
        return schema
    for key, inner in schema.get("properties", {}).items():
        schema["properties"][key] = move_to_definitions(inner, defs, name=write_heading(key).replace(" ", ""))
    if "items" in schema:
        schema["items"] = move_to_definitions(schema["items"], defs, name=name)
    if top or "properties" not in schema or name in defs:
        return schema
    defs[name] = schema
    return {"$ref": f"#/$defs/{name}"}


def format_as_pydantic(schema: Json, title: str) -> Json:
    """Return a schema with sorted keys and a title at every property, as `model_json_schema` does."""
    if not isinstance(schema, dict) or "$ref" in schema:
        return schema
    found = {key: value for key, value in schema.items() if key not in ("properties", "items")}
    if "items" in schema:
        inner = schema["items"]
        found["items"] = format_as_pydantic(inner, "") if "properties" in (inner or {}) else inner
    if "properties" in schema:
        found["properties"] = {
            key: format_as_pydantic(inner, write_heading(key)) for key, inner in schema["properties"].items()
        }
    if title:
        found["title"] = title
    return dict(sorted(found.items()))


def add_descriptions(r: random.Random, schema: Json) -> None:
    """Add short descriptions to some properties, in place."""
    for key, inner in schema.get("properties", {}).items():
        if r.random() < 0.5 and isinstance(inner, dict):
            start = r.choice(("The {}", "{} of this record", "{}", "Its {}", "What the {} is"))
            inner["description"] = start.format(write_heading(key).lower())
