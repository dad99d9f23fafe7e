"""Writes the corpus of the demo model: prompts and answers, one JSON object a line, from a seed.

    python make_corpus.py --seed 1 --documents 200000 --out corpus.jsonl

A document is `{"prompt": ..., "answer": ...}`; the prompt is made by `constrain.demo.compose_prompt`, the very function
that `constrain.generate("demo", ...)` uses. The mix (`KINDS`): JSON for a schema that is shown, texts of a regular
expression, one of several choices, plain prose, JSON without a schema.
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
from families import dress, family
from fields import pattern
from tool_requests import call, extraction
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


def told(r: random.Random, value: Any) -> str:
    """Some of a record's plain values in words, for instructions that say what to write."""
    if not isinstance(value, dict):
        return ""
    inner = next((x for x in value.values() if isinstance(x, dict)), None) if "arguments" in value else value
    plain = [(k, x) for k, x in (inner or {}).items() if isinstance(x, str | int | float) and not isinstance(x, bool)]
    some = sorted(r.sample(range(len(plain)), min(len(plain), r.randint(1, 3))))
    join = r.choice((" ", " ", ": ", " = "))
    return ", ".join(f"{plain[i][0].replace('_', ' ')}{join}{str(plain[i][1]).rstrip('.')}" for i in some)


def written(r: random.Random, value: Any) -> tuple[str, str]:
    """The value as JSON text, and words that ask for that spelling (often none)."""
    roll = r.random()
    if roll < 0.86:
        return json.dumps(value, ensure_ascii=False), r.choice(("",) * 12 + (" On one line.",))
    if roll < 0.92:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")), r.choice((" Compact JSON.", " No spaces."))
    return json.dumps(value, ensure_ascii=False, indent=2), r.choice((" Pretty-print it.", " Indent the JSON."))


def schema_document(r: random.Random, facts: Facts) -> Document:
    title, node = family(r, facts)
    value = node.draw(facts)
    facts_told = told(r, value) if r.random() < 0.3 else ""
    ask = r.choice(TELL).format(t=title, d=facts_told) if facts_told else r.choice(ASK).format(t=title)
    text, wish = written(r, value)
    ask = "" if r.random() < 0.06 and not facts_told and not wish else ask + wish
    return compose_prompt(article(ask), dress(r, node.schema, title)), text


def request_document(r: random.Random, facts: Facts) -> Document:
    request, schema, value = (call if r.random() < 0.6 else extraction)(r, facts)
    text, wish = written(r, value)
    return compose_prompt(request + wish, dress(r, schema, "call")), text


def article(text: str) -> str:
    return re.sub(r"\b([Aa]) (?=[aeio])", r"\1n ", text)


def regex_document(r: random.Random, facts: Facts) -> Document:
    source, draw = r.choice(KNOWN_PATTERNS) if r.random() < 0.5 else pattern(r)
    ask = r.choice(("Write a text of this form.", "Give an example.", "Answer in this format.", "Make one up.", "", ""))
    ask = r.choice(("When is the meeting?", "Pick a date.")) if r"{4}-" in source and r.random() < 0.5 else ask
    return compose_prompt(ask, regex=source), draw(facts)


def choice_document(r: random.Random, facts: Facts) -> Document:
    """Questions that can be answered from what is said, and free picks."""
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


def prose_document(r: random.Random, facts: Facts) -> Document:
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


def bare_document(r: random.Random, facts: Facts) -> Document:
    """JSON with nothing shown, with and without any prompt: what a model does when only a grammar guides it."""
    title, node = family(r, facts)
    ask = "" if r.random() < 0.5 else r.choice(ASK).format(t=title)
    return compose_prompt(article(ask)), json.dumps(node.draw(facts), ensure_ascii=False)


def exercise_document(r: random.Random, facts: Facts) -> Document:
    text, form, answer = draw_exercise(r, facts)
    return compose_prompt(text, **form), answer


KINDS = ((schema_document, 72), (request_document, 12), (regex_document, 5), (choice_document, 4), (prose_document, 4),
         (bare_document, 3))  # fmt: skip
EXERCISE_KINDS = ((exercise_document, 65), (schema_document, 20), (request_document, 5), (regex_document, 3),
                  (choice_document, 2), (prose_document, 3), (bare_document, 2))  # fmt: skip
MIXES = {"records": KINDS, "exercises": EXERCISE_KINDS}
HELD_OUT = re.compile(rf"\b({'|'.join(list_held_out_words())})\b", re.IGNORECASE)
"""What the questions of `python -m bench embedded_model` are made of; no document of the second mix has any of it."""


def documents(seed: int, count: int, longest: int, mix: str = "records") -> Any:
    """`count` documents of at most `longest` characters, the same for the same seed."""
    r, pools = random.Random(seed), Pools(2025)
    makers, weights = zip(*MIXES[mix], strict=True)
    made = 0
    while made < count:
        text, answer = r.choices(makers, weights)[0](r, Facts(r, pools))
        # Long schemas are many tokens for little answer: keep them all when short, thin them out when long.
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
    parser.add_argument("--longest", type=int, default=3600, help="most characters of a document")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    start = time.time()
    with args.out.open("w", encoding="utf-8") as file:
        for index, document in enumerate(documents(args.seed, args.documents, args.longest, args.mix)):
            file.write(json.dumps(document, ensure_ascii=False) + "\n")
            if index % 20_000 == 0:
                print(f"{index} documents, {time.time() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
