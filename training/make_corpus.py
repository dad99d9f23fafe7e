"""Write the corpus of the demo model from a seed: prompts and answers, one JSON object per line.

    python make_corpus.py --seed 1 --documents 200000 --out corpus.jsonl

A document is `{"prompt": ..., "answer": ...}`; prompts are made by `constrain.demo.compose_prompt`, as in
`constrain.generate("demo", ...)`. The mix (`KINDS`): JSON for a schema in the prompt, texts of a regular expression,
one of several choices, prose, JSON without a schema.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import values as v
from exercises import draw_exercise
from families import draw_family, vary_schema
from fields import draw_pattern
from tool_requests import make_call, make_extraction
from values import Facts, Pools

from bench.embedded_model.words import list_held_out_words
from constrain.demo import compose_prompt

Document = tuple[str, str]
KNOWN_PATTERNS: tuple[tuple[str, Callable[[Facts], str]], ...] = (
    (r"\d{4}-\d{2}-\d{2}", lambda f: f.day.isoformat()),
    (r"[0-9]{4}-[0-9]{2}-[0-9]{2}", lambda f: f.day.isoformat()),
    (r"\d{2}:\d{2}", lambda f: f.time()[:5]),
    (r"(\d{1,3}\.){3}\d{1,3}", Facts.ipv4),
    (r"[A-Z][a-z]+ [A-Z][a-z]+", lambda f: f"{f.first} {f.last}"),
    (r"[A-Z][a-z]+", lambda f: f.first),
    (r"[a-z]+", lambda f: f.word),
    (r"[a-z ]+", lambda f: f.words(3)),
    (r"[a-z]+@[a-z]+\.(com|org|net)", lambda f: f"{f.first.lower()}@example.{f.rng.choice(('com', 'org', 'net'))}"),
    (r"\w+", lambda f: f.word),
    (r"\d+", lambda f: str(f.rng.randrange(1000))),
    (r"[+-]?\d+", lambda f: str(f.rng.randrange(-100, 1000))),
    (r"\d+\.\d{2}", lambda f: f"{f.rng.uniform(1, 500):.2f}"),
    (r"\(\d{3}\) \d{3}-\d{4}", lambda f: f"({f.rng.randrange(200, 999)}) {f.phone[7:]}"),
    (r"#[0-9a-f]{6}", lambda f: f"#{f.rng.getrandbits(24):06x}"),
    (r"(yes|no)", lambda f: f.rng.choice(("yes", "no"))),
    (r".+", lambda f: f.sentence()),
)
ASK = (
    "Describe a {t}.|Write a {t}.|Make up a {t}.|Give me a {t}.|Create a {t} as JSON.|Generate a {t} record.|"
    "Return a {t} in JSON.|I need an example of a {t}.|Example {t}, please.|Invent a {t}.|Fill in the {t}.|"
    "Answer with a {t} as JSON.|Produce one {t}.|Write JSON for a {t}.|Show a {t}."
).split("|")
LIKES = ("{} likes {}. What does {} like?", "{} chose {}. What did {} choose?", "{}: {}. What about {}?")
TELL = ("Write a {t} with {d}.|Describe a {t} with {d}.|{d}. Write the {t} as JSON.|Extract the {t}: {d}.|"
        "Make a {t} ({d}).|Read this and fill in the {t}. {d}.").split("|")  # fmt: skip


def describe_values(r: random.Random, value: Any) -> str:
    """Return some of the plain values of a record in words, for the instruction."""
    if not isinstance(value, dict):
        return ""
    inner = next((x for x in value.values() if isinstance(x, dict)), None) if "arguments" in value else value
    plain = [(k, x) for k, x in (inner or {}).items() if isinstance(x, str | int | float) and not isinstance(x, bool)]
    some = sorted(r.sample(range(len(plain)), min(len(plain), r.randint(1, 3))))
    join = r.choice((" ", " ", ": ", " = "))
    return ", ".join(f"{plain[i][0].replace('_', ' ')}{join}{str(plain[i][1]).rstrip('.')}" for i in some)


def write_json(r: random.Random, value: Any) -> tuple[str, str]:
    """Return a value as JSON text, and words that request its spelling (often none)."""
    roll = r.random()
    if roll < 0.86:
        return json.dumps(value, ensure_ascii=False), r.choice(("",) * 12 + (" On one line.",))
    if roll < 0.92:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")), r.choice((" Compact JSON.", " No spaces."))
    return json.dumps(value, ensure_ascii=False, indent=2), r.choice((" Pretty-print it.", " Indent the JSON."))


def make_schema_document(r: random.Random, facts: Facts) -> Document:
    title, node = draw_family(r, facts)
    value = node.draw(facts)
    facts_told = describe_values(r, value) if r.random() < 0.3 else ""
    ask = r.choice(TELL).format(t=title, d=facts_told) if facts_told else r.choice(ASK).format(t=title)
    text, wish = write_json(r, value)
    ask = "" if r.random() < 0.06 and not facts_told and not wish else ask + wish
    return compose_prompt(fix_articles(ask), vary_schema(r, node.schema, title)), text


def make_request_document(r: random.Random, facts: Facts) -> Document:
    request, schema, value = (make_call if r.random() < 0.6 else make_extraction)(r, facts)
    text, wish = write_json(r, value)
    return compose_prompt(request + wish, vary_schema(r, schema, "call")), text


def fix_articles(text: str) -> str:
    return re.sub(r"\b([Aa]) (?=[aeio])", r"\1n ", text)


def make_regex_document(r: random.Random, facts: Facts) -> Document:
    source, draw = r.choice(KNOWN_PATTERNS) if r.random() < 0.5 else draw_pattern(r)
    ask = r.choice(("Write a text of this form.", "Give an example.", "Answer in this format.", "Make one up.", "", ""))
    ask = r.choice(("When is the meeting?", "Pick a date.")) if r"{4}-" in source and r.random() < 0.5 else ask
    return compose_prompt(ask, regex=source), draw(facts)


def make_choice_document(r: random.Random, facts: Facts) -> Document:
    """Make a question with choices that the prompt answers, or a free choice."""
    roll = r.random()
    if roll < 0.35:
        small, large = sorted(r.sample(range(2, 99), 2))
        right = r.random() < 0.5
        said = (large, small) if right else (small, large)
        return compose_prompt(f"Is {said[0]} more than {said[1]}?", choices=["yes", "no"]), "yes" if right else "no"
    pool = r.choice((v.COLORS, v.ANIMALS, v.TAGS, v.THINGS, v.LANGUAGES, facts.pools.city, facts.pools.words))
    options = r.sample(pool, r.randint(2, 5))
    pick = r.choice(options)
    if roll < 0.7:
        said = r.choice(LIKES)
        return compose_prompt(said.format(facts.first, pick, facts.first), choices=options), pick
    return compose_prompt(r.choice(("Pick one.", "Choose one of these.", "Which one?", "")), choices=options), pick


def make_prose_document(r: random.Random, facts: Facts) -> Document:
    kind = r.randrange(4)
    if kind == 0:
        return compose_prompt(r.choice(("Write a sentence.", "Tell me something.", "Say something."))), facts.sentence()
    if kind == 1:
        text = " ".join(Facts(r, facts.pools).sentence() for _ in range(r.randint(2, 5)))
        return compose_prompt(r.choice(("Write a short text.", "Tell me a story.", "Write a paragraph."))), text
    if kind == 2:
        text = f"{facts.name} is {facts.age} years old and works "
        text += f"as a {facts.pick(facts.pools.job).lower()} in {facts.city}."
        return compose_prompt(r.choice(("Who is {}?", "Describe {}.", "Tell me about {}.")).format(facts.name)), text
    steps = "\n".join(f"{i + 1}. {facts.step()}" for i in range(r.randint(2, 5)))
    return compose_prompt(r.choice(("How do I make {}?", "Write the steps for {}.")).format(facts.dish)), steps


def make_bare_document(r: random.Random, facts: Facts) -> Document:
    """Make JSON without a schema in the prompt, as a model writes it if only a mask constrains it."""
    title, node = draw_family(r, facts)
    ask = "" if r.random() < 0.5 else r.choice(ASK).format(t=title)
    return compose_prompt(fix_articles(ask)), json.dumps(node.draw(facts), ensure_ascii=False)


def make_exercise_document(r: random.Random, facts: Facts) -> Document:
    text, form, answer = draw_exercise(r, facts)
    return compose_prompt(text, **form), answer


KINDS = (
    (make_schema_document, 72),
    (make_request_document, 12),
    (make_regex_document, 5),
    (make_choice_document, 4),
    (make_prose_document, 4),
    (make_bare_document, 3),
)
EXERCISE_KINDS = (
    (make_exercise_document, 65),
    (make_schema_document, 20),
    (make_request_document, 5),
    (make_regex_document, 3),
    (make_choice_document, 2),
    (make_prose_document, 3),
    (make_bare_document, 2),
)
MIXES = {"records": KINDS, "exercises": EXERCISE_KINDS}
HELD_OUT = re.compile(rf"\b({'|'.join(list_held_out_words())})\b", re.IGNORECASE)
"""Words of the questions of `python -m bench embedded_model`, which no document of the second mix contains."""


def draw_documents(seed: int, count: int, longest: int, mix: str = "records") -> Any:
    """Yield `count` documents of at most `longest` characters, the same for the same seed."""
    r, pools = random.Random(seed), Pools(2025)
    makers, weights = zip(*MIXES[mix], strict=True)
    made = 0
    while made < count:
        text, answer = r.choices(makers, weights)[0](r, Facts(r, pools))
        # Long schemas have many tokens and short answers, so long documents are left out with a probability.
        if len(text) + len(answer) > longest * (0.25 + 0.75 * r.random() ** 2):
            continue
        if mix != "records" and (HELD_OUT.search(text) or HELD_OUT.search(answer)):
            continue
        made += 1
        yield {"prompt": text, "answer": answer}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--documents", type=int, default=500_000)
    parser.add_argument("--mix", choices=list(MIXES), default="records", help="exercises: the second run")
    parser.add_argument("--longest", type=int, default=3600, help="maximum number of characters of a document")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    start = time.time()
    with args.out.open("w", encoding="utf-8") as file:
        for index, document in enumerate(draw_documents(args.seed, args.documents, args.longest, args.mix)):
            file.write(json.dumps(document, ensure_ascii=False) + "\n")
            if index % 20_000 == 0:
                print(f"{index} documents, {time.time() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
