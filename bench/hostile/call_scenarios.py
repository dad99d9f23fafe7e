"""Hostile calls of what generates, scores, repairs and searches: huge, empty and odd arguments, and odd models.

Each ends in bounded time and memory, with an answer or a ConstrainError (or TypeError) whose message fits on a screen.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import constrain

from .answers import BYTES, Wrong
from .store_scenarios import Scenario

__all__ = ["CALLS"]

MILLION = 1_000_000
HUGE = 10**30
ORIGIN = "hostile calls"
LIBRARY = Path(constrain.__file__).parent
SECONDS = 20.0
ODD_NUMBERS: Mapping[str, Any] = {
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
    "10^400": 10**400,
    "1e-308": 1e-308,
    "1e308": 1e308,
    "-1": -1,
    "0": 0,
    "numpy nan": np.float32("nan"),
    "True": True,
}


class FlatModel:
    """A LanguageModel that gives every token the same probability. row: what it gives instead."""

    def __init__(self, row: Any = None) -> None:
        self.row = np.full(BYTES.size, -math.log(BYTES.size)) if row is None else np.asarray(row)

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.float64]:
        """Return a row for each prefix, float64 [len(prefixes), V]."""
        return np.broadcast_to(self.row, (len(prefixes), *self.row.shape)).astype(float)


def ends(call: Callable[[], Any], accepts: Callable[[Any], bool] = lambda answer: True) -> Scenario:
    """Build a scenario: a call whose answer `accepts` says is right, or that ends in a ConstrainError or in a TypeError
    that the library raises itself.
    """

    def scenario() -> None:
        try:
            answer = call()
        except (constrain.ConstrainError, TypeError) as error:
            if not isinstance(error, constrain.ConstrainError) and not is_deliberate(error):
                raise
            if len(str(error)) > 5_000:
                raise Wrong(f"a message of {len(str(error)):,} characters") from None
            return
        if not accepts(answer):
            raise Wrong(f"the answer is {str(answer)[:80]}")

    return scenario


def is_deliberate(error: BaseException) -> bool:
    """Return whether the last frame of a traceback is a `raise` statement of the library, with a message."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or not str(error):
        return False
    return Path(frames[-1].filename).is_relative_to(LIBRARY) and (frames[-1].line or "").startswith("raise ")


def each(calls: Mapping[str, Callable[[], Any]]) -> Scenario:
    """Build a scenario of several calls, of which each ends as in `ends`."""

    def scenario() -> None:
        for name, call in calls.items():
            try:
                ends(call)()
            except Exception as error:
                raise Wrong(f"{name}: {type(error).__name__}: {str(error)[:120]}") from None

    return scenario


def write(**options: Any) -> Any:
    """Generate a text with a flat model."""
    given = {"regex": "[ab]{1,9}", "max_tokens": 20, "seed": 1, **options}
    if any(name in options for name in ("schema", "grammar", "choices", "type")):
        given.pop("regex")
    return constrain.generate(FlatModel(), tokenizer=BYTES, **given)


def compare(options: Any, **more: Any) -> Any:
    """Choose among options with a flat model."""
    return constrain.choose(FlatModel(), None, options, tokenizer=BYTES, **more)


def rate(text: Any, constraint: Any = None, **more: Any) -> Any:
    """Score a text with a flat model."""
    return constrain.score(FlatModel(), None, text, constraint, tokenizer=BYTES, **more)


def check(spans: Any, pattern: str = "[ab]*", **more: Any) -> Any:
    """Ask whether a text with gaps can be completed."""
    return constrain.infill_check(spans, constrain.compile(BYTES, regex=pattern), **more)


def fill(spans: Any, **more: Any) -> Any:
    """Fill the gaps of a text from a flat model."""
    given = {"vocabulary": BYTES, "rng": np.random.default_rng(1), "max_tokens": 20, **more}
    return constrain.infill(FlatModel(), spans, None, **given)


def list_calls_of_generate() -> Iterator[tuple[str, Scenario]]:
    """Calls of `generate` and `Engine`."""
    for sampler in ("masked", "exact", "awrs", "without_replacement", "smc"):
        yield f"n of a billion, {sampler}", ends(partial(write, n=10**9, sampler=sampler))
    yield "n of 10^30", ends(lambda: write(n=HUGE))
    yield "max_tokens of 10^30", ends(lambda: write(max_tokens=HUGE))
    yield "particles of a billion", ends(lambda: write(sampler="smc", particles=10**9))
    yield (
        "lists of no prompts and constraints",
        each(
            {
                "prompts": lambda: constrain.generate("demo", [], regex="a"),
                "regex": lambda: write(regex=[]),
                "choices": lambda: write(choices=[]),
                "empty choice": lambda: write(choices=[""]),
                "lists of choices": lambda: write(choices=[[]]),
                "seed": lambda: write(seed=[]),
                "stop": lambda: write(stop=[]),
                "eos_ids": lambda: write(eos_ids=[]),
                "logit_bias": lambda: write(logit_bias={}),
            }
        ),
    )
    yield "a prompt of 1 MB", ends(lambda: constrain.generate("demo", "a" * MILLION, regex="ab"))
    yield (
        "a prompt of 100,000 messages",
        ends(
            lambda: constrain.generate(
                "demo", [{"role": "user", "content": "a"}] * 100_000, regex="ab", chat="template"
            )
        ),
    )
    yield "a stop string of 1 MB", ends(lambda: write(stop="a" * MILLION))
    yield "10,000 stop strings", ends(lambda: write(stop=[f"b{i:05}" for i in range(10_000)]))
    yield (
        "stop strings of 1,000 letters that overlap",
        ends(lambda: write(regex="a{3000}", max_tokens=4000, stop=["a" * k + "b" for k in range(1, 1_000)])),
    )
    yield (
        "odd stop strings",
        each(
            {
                "empty": lambda: write(stop=""),
                "list of empty": lambda: write(stop=["", ""]),
                "surrogate": lambda: write(stop="\ud800"),
                "nul": lambda: write(stop="\0"),
                "bytes": lambda: write(stop=b"a"),
                "none": lambda: write(stop=[None]),
                "nested": lambda: write(stop=[["a"]]),
            }
        ),
    )
    yield (
        "odd biases",
        each(
            {
                **{f"a={name}": partial(write, logit_bias={97: one}) for name, one in ODD_NUMBERS.items()},
                "huge id": lambda: write(logit_bias={HUGE: 1.0}),
                "negative id": lambda: write(logit_bias={-1: 1.0}),
                "a text of 1 MB": lambda: write(logit_bias={"a" * MILLION: 1.0}),
                "empty": lambda: write(logit_bias={"": 1.0}),
                "surrogate": lambda: write(logit_bias={"\ud800": 1.0}),
                "digits": lambda: write(logit_bias={"9" * 5_000: 1.0}),
                "everything out": lambda: write(logit_bias=dict.fromkeys(range(257), -1e308)),
                "everything in": lambda: write(logit_bias=dict.fromkeys(range(257), 1e308)),
                "everything forbidden": lambda: write(logit_bias=dict.fromkeys(range(257), -math.inf)),
            }
        ),
    )
    names = ("temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")
    yield (
        "odd numbers that choose tokens",
        each(
            {
                f"{name}={which}": partial(write, **{name: one})
                for name in (*names, "top_k", "retries", "n", "seed", "max_tokens")
                for which, one in ODD_NUMBERS.items()
            }
        ),
    )
    yield (
        "several odd numbers at once",
        each(
            {
                f"{first} and {second}": partial(write, **{first: 1e308, second: 1e-308})
                for first in names
                for second in names
                if first != second
            }
        ),
    )
    rows = {
        "nan": np.full(257, np.nan),
        "inf": np.full(257, np.inf),
        "-inf": np.full(257, -np.inf),
        "1e308": np.full(257, 1e308),
        "one nan": np.where(np.arange(257) == 97, np.nan, -5.5),
        "narrow": np.zeros(3),
        "complex": np.zeros(257, complex),
        "objects": np.array([None] * 257),
    }
    for sampler in ("masked", "exact", "smc"):
        yield (
            f"models of odd rows, {sampler}",
            each(
                {
                    name: partial(
                        constrain.generate,
                        FlatModel(row),
                        tokenizer=BYTES,
                        regex="[ab]{3}",
                        max_tokens=9,
                        sampler=sampler,
                    )
                    for name, row in rows.items()
                }
            ),
        )
    yield (
        "models of odd rows, choose and score",
        each(
            {
                **{
                    f"choose {name}": partial(constrain.choose, FlatModel(row), None, ["a", "b"], tokenizer=BYTES)
                    for name, row in rows.items()
                },
                **{
                    f"score {name}": partial(constrain.score, FlatModel(row), None, "ab", tokenizer=BYTES)
                    for name, row in rows.items()
                },
            }
        ),
    )


def list_calls_of_scores() -> Iterator[tuple[str, Scenario]]:
    """Calls of `choose` and `score`."""
    yield "choose: an option of 1 MB", ends(lambda: compare(["a" * MILLION, "b"]))
    yield "choose: two options of 1 MB", ends(lambda: compare(["a" * MILLION, "a" * MILLION + "b"]))
    yield "choose: 100,000 options", ends(lambda: compare(map(str, range(100_000))))
    yield (
        "choose: odd options",
        each(
            {
                "none": lambda: compare([]),
                "empty": lambda: compare([""]),
                "surrogate": lambda: compare(["a", "\udfff"]),
                "nul": lambda: compare(["\0", "a"]),
                "bytes": lambda: compare([b"a"]),
                "nested": lambda: compare([["a"]]),
                "twice": lambda: compare(["a" * MILLION] * 2),
                "prefix": lambda: compare(["a", "ab"], ends="prefix"),
                "empty prefix": lambda: compare([""], ends="prefix"),
                **{
                    f"tolerance={name}": partial(compare, ["a", "b"], tolerance=one)
                    for name, one in ODD_NUMBERS.items()
                },
                **{f"max_rows={name}": partial(compare, ["a", "b"], max_rows=one) for name, one in ODD_NUMBERS.items()},
            }
        ),
    )
    for spellings in ("canonical", "all", "sampled"):
        yield (
            f"score: a text of 1 MB, {spellings}",
            ends(partial(rate, "a" * MILLION, spellings=spellings)),
        )
    yield "score: a billion draws", ends(lambda: rate("ab", spellings="sampled", n=10**9))
    yield "score: a text of 1 MB under a constraint", ends(lambda: rate("a" * MILLION, constrain.regex("a*")))
    yield (
        "score: odd texts",
        each(
            {
                "surrogate": lambda: rate("\ud800"),
                "nul": lambda: rate("\0"),
                "empty": lambda: rate(""),
                "bytes": lambda: rate(b"a"),
                "refused": lambda: rate("b" * MILLION, constrain.regex("a*")),
            }
        ),
    )


def list_calls_of_repairs() -> Iterator[tuple[str, Scenario]]:
    """Calls of `repair`, `infill_check` and `infill`."""
    yield "repair: 1 MB of brackets", ends(lambda: constrain.repair("[" * MILLION, schema={}))
    yield "repair: 1 MB of letters as digits", ends(lambda: constrain.repair("a" * MILLION, regex="[0-9]*"))
    yield "repair: 10,000 letters into one", ends(lambda: constrain.repair("a" * 10_000, choices=["b"]))
    yield "repair: a word into a million letters", ends(lambda: constrain.repair("b", regex="a{1000000}"))
    yield (
        "repair: nodes without end",
        ends(
            lambda: constrain.repair(
                "x" * 2_000, schema={"type": "array", "items": {"type": "integer"}}, most_nodes=HUGE
            )
        ),
    )
    yield (
        "repair: 2,000 keys that may not occur twice",
        ends(lambda: constrain.repair("{" + '"a":1,' * 2_000 + "}", schema={"type": "object"})),
    )
    yield (
        "repair: odd texts",
        each(
            {
                "surrogate": lambda: constrain.repair("\ud800", regex="a"),
                "empty": lambda: constrain.repair("", regex="a"),
                "nul": lambda: constrain.repair("\0" * 99, regex="a+"),
                "no choice": lambda: constrain.repair("a", choices=[]),
                "bytes": lambda: constrain.repair(b"a", regex="a"),  # type: ignore[arg-type]
                "beyond the BMP": lambda: constrain.repair("\U0010ffff", regex="."),
            }
        ),
    )
    gap = constrain.Gap
    yield "infill_check: a gap of a billion tokens", ends(lambda: check(["a", gap(10**9, 10**9, "tokens"), "b"]))
    yield "infill_check: a gap of up to a billion characters", ends(lambda: check(["a", gap(0, 10**9), "b"]))
    yield "infill_check: 10,000 gaps", ends(lambda: check(["a", gap()] * 10_000))
    yield "infill_check: 50,000 unknown tokens", ends(lambda: check([None] * 50_000))
    yield "infill_check: 1 MB of known text", ends(lambda: check(["a" * MILLION, None]))
    yield (
        "infill_check: unknown tokens of JSON",
        ends(lambda: constrain.infill_check(["[", *[None] * 500, "]"], constrain.compile(BYTES, schema={}))),
    )
    yield (
        "infill: odd spans",
        each(
            {
                "none": lambda: fill([]),
                "empty": lambda: fill([""]),
                "surrogate": lambda: fill(["\ud800", gap()]),
                "1 MB": lambda: fill(["a" * MILLION, gap()]),
                "n": lambda: fill(["a", gap(0, 2)], n=10**9),
                "no gap": lambda: fill(["abc"]),
                "check none": lambda: check([]),
                "check surrogate": lambda: check(["\ud800"]),
                "check id": lambda: check([10**20]),
                "check negative": lambda: check([-1]),
                "check empty": lambda: check([[], None]),
                "check states": lambda: check([None], most_states=HUGE),
            }
        ),
    )
    yield "infill: 10,000 gaps", ends(lambda: fill(["a", gap(0, 1)] * 10_000))


def list_calls_of_searches() -> Iterator[tuple[str, Scenario]]:
    """Calls of `generate(search=…)` and `session`."""
    searches: dict[str, Callable[[], Any]] = {
        "beams": lambda: constrain.BeamSearch(width=10**9),
        "stochastic": constrain.StochasticBeams,
        "best first": constrain.BestFirst,
    }
    for name, make in searches.items():
        yield (
            f"search: {name}, n of a billion",
            ends(partial(search_many, make)),
        )
    yield (
        "search: a width of a billion",
        ends(lambda: write(search=constrain.BeamSearch(width=10**9), regex="[a-z]{1,9}")),
    )
    yield (
        "search: 10,000 phrases",
        ends(
            lambda: write(search=constrain.BeamSearch(phrases=constrain.PhraseBanks([f"a{i}" for i in range(10_000)])))
        ),
    )
    yield (
        "session: odd calls",
        each(
            {
                "text of 1 MB": lambda: play(lambda one: one.text("a" * MILLION)),
                "surrogate": lambda: play(lambda one: one.text("\ud800")),
                "empty": lambda: play(lambda one: one.text("")),
                "an option of 1 MB": lambda: play(lambda one: one.choose("x", ["a" * MILLION])),
                "no options": lambda: play(lambda one: one.choose("x", [])),
                "empty name": lambda: play(lambda one: one.write("", regex="a")),
                "stop of 1 MB": lambda: play(lambda one: one.write("x", regex="a+", stop="b" * MILLION)),
                "no tokens": lambda: play(lambda one: one.write("x", regex="a+", max_tokens=0)),
                **{f"temperature={name}": partial(write_hot, one) for name, one in ODD_NUMBERS.items()},
            }
        ),
    )
    yield "session: 1,000 forks", ends(lambda: play(lambda one: [one.fork(seed=k) for k in range(1_000)]))


def list_calls_of_engines() -> Iterator[tuple[str, Scenario]]:
    """Calls of an Engine: lists with one wrong prompt, and sessions."""
    wrong = {
        "number": 3,
        "bytes": b"a",
        "object": object(),
        "surrogate": "\ud800",
        "huge id": [10**30],
        "mixed": ["a", 1],
    }
    yield (
        "Engine: one wrong prompt of a list",
        each({name: partial(ask_engine, lambda engine, one: engine.generate(["a", one, "b"], regex="[ab]{2}"), one)
              for name, one in wrong.items()}),
    )  # fmt: skip
    yield (
        "Engine: one wrong constraint of a list",
        each({name: partial(ask_engine, lambda engine, one: engine.generate(["a", "b"], regex=["[ab]", one]), one)
              for name, one in {"number": 3, "open group": "(", "empty class": "[^\\s\\S]"}.items()}),
    )  # fmt: skip
    yield (
        "Engine.session: odd prompts",
        each({name: partial(ask_engine, lambda engine, one: engine.session(one), one) for name, one in wrong.items()}),
    )
    yield (
        "Engine.session: odd numbers",
        each({
            f"{option}={name}": partial(
                ask_engine, lambda engine, option, one: engine.session(None, **{option: one}), option, one
            )
            for option in ("seed", "max_tokens") for name, one in ODD_NUMBERS.items()
        }),
    )  # fmt: skip


def ask_engine(use: Callable[..., Any], *arguments: Any) -> Any:
    """Use an Engine, which must then answer other calls as if nothing had been asked before."""
    with constrain.Engine("demo") as engine:
        try:
            return use(engine, *arguments)
        finally:
            if engine.generate("a", regex="ab").text != "ab":
                raise Wrong("the engine answers no more")


def search_many(make: Callable[[], Any]) -> Any:
    """Search for a billion texts."""
    return write(search=make(), n=10**9, regex="[a-z]{1,9}")


def write_hot(temperature: Any) -> Any:
    """Write a field of a session at a temperature."""
    return play(lambda one: one.write("x", regex="a", temperature=temperature))


def play(use: Callable[[Any], Any]) -> Any:
    """Use a session of a flat model."""
    with constrain.session(FlatModel(), tokenizer=BYTES, seed=1, max_tokens=50) as one:
        return use(one)


CALLS: tuple[tuple[str, str, Scenario, float], ...] = tuple(
    (name, ORIGIN, scenario, SECONDS)
    for made in (
        list_calls_of_generate,
        list_calls_of_scores,
        list_calls_of_repairs,
        list_calls_of_searches,
        list_calls_of_engines,
    )
    for name, scenario in made()
)
