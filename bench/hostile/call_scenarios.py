"""Hostile calls that generate, score, repair and search: huge, empty and unusual arguments, and unusual models.

Each must end in bounded time and memory, with an answer, or a ConstrainError or TypeError with a short message.
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

from .answers import BYTES, WrongAnswer
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
    """A LanguageModel whose rows are all equal. row: by default, the uniform distribution."""

    def __init__(self, row: Any = None) -> None:
        self.row = np.full(BYTES.size, -math.log(BYTES.size)) if row is None else np.asarray(row)

    def next_logprobs(self, prefixes: list[list[int]]) -> NDArray[np.float64]:
        """Return a row for each prefix, float64 [len(prefixes), V]."""
        return np.broadcast_to(self.row, (len(prefixes), *self.row.shape)).astype(float)


def build_call(call: Callable[[], Any], accepts: Callable[[Any], bool] = lambda answer: True) -> Scenario:
    """Return a scenario: a call must return an answer that `accepts` accepts, or raise a ConstrainError or a TypeError
    of the library itself.
    """

    def scenario() -> None:
        try:
            answer = call()
        except (constrain.ConstrainError, TypeError) as error:
            if not isinstance(error, constrain.ConstrainError) and not is_deliberate(error):
                raise
            if len(str(error)) > 5_000:
                raise WrongAnswer(f"a message of {len(str(error)):,} characters") from None
            return
        if not accepts(answer):
            raise WrongAnswer(f"the answer is {str(answer)[:80]}")

    return scenario


def is_deliberate(error: BaseException) -> bool:
    """Return whether the last frame of a traceback is a `raise` statement of the library, with a message."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or not str(error):
        return False
    return Path(frames[-1].filename).is_relative_to(LIBRARY) and (frames[-1].line or "").startswith("raise ")


def build_calls(calls: Mapping[str, Callable[[], Any]]) -> Scenario:
    """Return a scenario of several calls, each as in `build_call`."""

    def scenario() -> None:
        for name, call in calls.items():
            try:
                build_call(call)()
            except Exception as error:
                raise WrongAnswer(f"{name}: {type(error).__name__}: {str(error)[:120]}") from None

    return scenario


def generate_text(**options: Any) -> Any:
    """Generate a text with a flat model."""
    given = {"regex": "[ab]{1,9}", "max_tokens": 20, "seed": 1, **options}
    if any(name in options for name in ("schema", "grammar", "choices", "type")):
        given.pop("regex")
    return constrain.generate(FlatModel(), tokenizer=BYTES, **given)


def choose_option(options: Any, **more: Any) -> Any:
    """Choose among options with a flat model."""
    return constrain.choose(FlatModel(), None, options, tokenizer=BYTES, **more)


def score_text(text: Any, constraint: Any = None, **more: Any) -> Any:
    """Score a text with a flat model."""
    return constrain.score(FlatModel(), None, text, constraint, tokenizer=BYTES, **more)


def check_infill(spans: Any, pattern: str = "[ab]*", **more: Any) -> Any:
    """Ask whether a text with gaps can be completed."""
    return constrain.infill_check(spans, constrain.compile(BYTES, regex=pattern), **more)


def infill_gaps(spans: Any, **more: Any) -> Any:
    """Fill the gaps of a text from a flat model."""
    given = {"vocabulary": BYTES, "rng": np.random.default_rng(1), "max_tokens": 20, **more}
    return constrain.infill(FlatModel(), spans, None, **given)


def list_calls_of_generate() -> Iterator[tuple[str, Scenario]]:
    """Calls of `generate` and `Engine`."""
    for sampler in ("masked", "exact", "awrs", "without_replacement", "smc"):
        yield f"n of a billion, {sampler}", build_call(partial(generate_text, n=10**9, sampler=sampler))
    yield "n of 10^30", build_call(lambda: generate_text(n=HUGE))
    yield "max_tokens of 10^30", build_call(lambda: generate_text(max_tokens=HUGE))
    yield "particles of a billion", build_call(lambda: generate_text(sampler="smc", particles=10**9))
    yield (
        "lists of no prompts and constraints",
        build_calls(
            {
                "prompts": lambda: constrain.generate("demo", [], regex="a"),
                "regex": lambda: generate_text(regex=[]),
                "choices": lambda: generate_text(choices=[]),
                "empty choice": lambda: generate_text(choices=[""]),
                "lists of choices": lambda: generate_text(choices=[[]]),
                "seed": lambda: generate_text(seed=[]),
                "stop": lambda: generate_text(stop=[]),
                "eos_ids": lambda: generate_text(eos_ids=[]),
                "logit_bias": lambda: generate_text(logit_bias={}),
            }
        ),
    )
    yield "a prompt of 1 MB", build_call(lambda: constrain.generate("demo", "a" * MILLION, regex="ab"))
    yield (
        "a prompt of 100,000 messages",
        build_call(
            lambda: constrain.generate(
                "demo", [{"role": "user", "content": "a"}] * 100_000, regex="ab", chat="template"
            )
        ),
    )
    yield "a stop string of 1 MB", build_call(lambda: generate_text(stop="a" * MILLION))
    yield "10,000 stop strings", build_call(lambda: generate_text(stop=[f"b{i:05}" for i in range(10_000)]))
    yield (
        "stop strings of 1,000 letters that overlap",
        build_call(
            lambda: generate_text(regex="a{3000}", max_tokens=4000, stop=["a" * k + "b" for k in range(1, 1_000)])
        ),
    )
    yield (
        "odd stop strings",
        build_calls(
            {
                "empty": lambda: generate_text(stop=""),
                "list of empty": lambda: generate_text(stop=["", ""]),
                "surrogate": lambda: generate_text(stop="\ud800"),
                "nul": lambda: generate_text(stop="\0"),
                "bytes": lambda: generate_text(stop=b"a"),
                "none": lambda: generate_text(stop=[None]),
                "nested": lambda: generate_text(stop=[["a"]]),
            }
        ),
    )
    yield (
        "odd biases",
        build_calls(
            {
                **{f"a={name}": partial(generate_text, logit_bias={97: one}) for name, one in ODD_NUMBERS.items()},
                "huge id": lambda: generate_text(logit_bias={HUGE: 1.0}),
                "negative id": lambda: generate_text(logit_bias={-1: 1.0}),
                "a text of 1 MB": lambda: generate_text(logit_bias={"a" * MILLION: 1.0}),
                "empty": lambda: generate_text(logit_bias={"": 1.0}),
                "surrogate": lambda: generate_text(logit_bias={"\ud800": 1.0}),
                "digits": lambda: generate_text(logit_bias={"9" * 5_000: 1.0}),
                "everything out": lambda: generate_text(logit_bias=dict.fromkeys(range(257), -1e308)),
                "everything in": lambda: generate_text(logit_bias=dict.fromkeys(range(257), 1e308)),
                "everything forbidden": lambda: generate_text(logit_bias=dict.fromkeys(range(257), -math.inf)),
            }
        ),
    )
    names = ("temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")
    yield (
        "odd numbers that choose tokens",
        build_calls(
            {
                f"{name}={which}": partial(generate_text, **{name: one})
                for name in (*names, "top_k", "retries", "n", "seed", "max_tokens")
                for which, one in ODD_NUMBERS.items()
            }
        ),
    )
    yield (
        "several odd numbers at once",
        build_calls(
            {
                f"{first} and {second}": partial(generate_text, **{first: 1e308, second: 1e-308})
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
            build_calls(
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
        build_calls(
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
    yield "choose: an option of 1 MB", build_call(lambda: choose_option(["a" * MILLION, "b"]))
    yield "choose: two options of 1 MB", build_call(lambda: choose_option(["a" * MILLION, "a" * MILLION + "b"]))
    yield "choose: 100,000 options", build_call(lambda: choose_option(map(str, range(100_000))))
    yield (
        "choose: odd options",
        build_calls(
            {
                "none": lambda: choose_option([]),
                "empty": lambda: choose_option([""]),
                "surrogate": lambda: choose_option(["a", "\udfff"]),
                "nul": lambda: choose_option(["\0", "a"]),
                "bytes": lambda: choose_option([b"a"]),
                "nested": lambda: choose_option([["a"]]),
                "twice": lambda: choose_option(["a" * MILLION] * 2),
                "prefix": lambda: choose_option(["a", "ab"], ends="prefix"),
                "empty prefix": lambda: choose_option([""], ends="prefix"),
                **{
                    f"tolerance={name}": partial(choose_option, ["a", "b"], tolerance=one)
                    for name, one in ODD_NUMBERS.items()
                },
                **{
                    f"max_rows={name}": partial(choose_option, ["a", "b"], max_rows=one)
                    for name, one in ODD_NUMBERS.items()
                },
            }
        ),
    )
    for spellings in ("canonical", "all", "sampled"):
        yield (
            f"score: a text of 1 MB, {spellings}",
            build_call(partial(score_text, "a" * MILLION, spellings=spellings)),
        )
    yield "score: a billion draws", build_call(lambda: score_text("ab", spellings="sampled", n=10**9))
    yield (
        "score: a text of 1 MB under a constraint",
        build_call(lambda: score_text("a" * MILLION, constrain.regex("a*"))),
    )
    yield (
        "score: odd texts",
        build_calls(
            {
                "surrogate": lambda: score_text("\ud800"),
                "nul": lambda: score_text("\0"),
                "empty": lambda: score_text(""),
                "bytes": lambda: score_text(b"a"),
                "refused": lambda: score_text("b" * MILLION, constrain.regex("a*")),
            }
        ),
    )


def list_calls_of_repairs() -> Iterator[tuple[str, Scenario]]:
    """Calls of `repair`, `infill_check` and `infill`."""
    yield "repair: 1 MB of brackets", build_call(lambda: constrain.repair("[" * MILLION, schema={}))
    yield "repair: 1 MB of letters as digits", build_call(lambda: constrain.repair("a" * MILLION, regex="[0-9]*"))
    yield "repair: 10,000 letters into one", build_call(lambda: constrain.repair("a" * 10_000, choices=["b"]))
    yield "repair: a word into a million letters", build_call(lambda: constrain.repair("b", regex="a{1000000}"))
    yield (
        "repair: nodes without end",
        build_call(
            lambda: constrain.repair(
                "x" * 2_000, schema={"type": "array", "items": {"type": "integer"}}, most_nodes=HUGE
            )
        ),
    )
    yield (
        "repair: 2,000 keys that may not occur twice",
        build_call(lambda: constrain.repair("{" + '"a":1,' * 2_000 + "}", schema={"type": "object"})),
    )
    yield (
        "repair: odd texts",
        build_calls(
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
    yield (
        "infill_check: a gap of a billion tokens",
        build_call(lambda: check_infill(["a", gap(10**9, 10**9, "tokens"), "b"])),
    )
    yield (
        "infill_check: a gap of up to a billion characters",
        build_call(lambda: check_infill(["a", gap(0, 10**9), "b"])),
    )
    yield "infill_check: 10,000 gaps", build_call(lambda: check_infill(["a", gap()] * 10_000))
    yield "infill_check: 50,000 unknown tokens", build_call(lambda: check_infill([None] * 50_000))
    yield "infill_check: 1 MB of known text", build_call(lambda: check_infill(["a" * MILLION, None]))
    yield (
        "infill_check: unknown tokens of JSON",
        build_call(lambda: constrain.infill_check(["[", *[None] * 500, "]"], constrain.compile(BYTES, schema={}))),
    )
    yield (
        "infill: odd spans",
        build_calls(
            {
                "none": lambda: infill_gaps([]),
                "empty": lambda: infill_gaps([""]),
                "surrogate": lambda: infill_gaps(["\ud800", gap()]),
                "1 MB": lambda: infill_gaps(["a" * MILLION, gap()]),
                "n": lambda: infill_gaps(["a", gap(0, 2)], n=10**9),
                "no gap": lambda: infill_gaps(["abc"]),
                "check none": lambda: check_infill([]),
                "check surrogate": lambda: check_infill(["\ud800"]),
                "check id": lambda: check_infill([10**20]),
                "check negative": lambda: check_infill([-1]),
                "check empty": lambda: check_infill([[], None]),
                "check states": lambda: check_infill([None], most_states=HUGE),
            }
        ),
    )
    yield "infill: 10,000 gaps", build_call(lambda: infill_gaps(["a", gap(0, 1)] * 10_000))


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
            build_call(partial(search_many, make)),
        )
    yield (
        "search: a width of a billion",
        build_call(lambda: generate_text(search=constrain.BeamSearch(width=10**9), regex="[a-z]{1,9}")),
    )
    yield (
        "search: 10,000 phrases",
        build_call(
            lambda: generate_text(
                search=constrain.BeamSearch(phrases=constrain.PhraseBanks([f"a{i}" for i in range(10_000)]))
            )
        ),
    )
    yield (
        "session: odd calls",
        build_calls(
            {
                "text of 1 MB": lambda: use_session(lambda one: one.text("a" * MILLION)),
                "surrogate": lambda: use_session(lambda one: one.text("\ud800")),
                "empty": lambda: use_session(lambda one: one.text("")),
                "an option of 1 MB": lambda: use_session(lambda one: one.choose("x", ["a" * MILLION])),
                "no options": lambda: use_session(lambda one: one.choose("x", [])),
                "empty name": lambda: use_session(lambda one: one.write("", regex="a")),
                "stop of 1 MB": lambda: use_session(lambda one: one.write("x", regex="a+", stop="b" * MILLION)),
                "no tokens": lambda: use_session(lambda one: one.write("x", regex="a+", max_tokens=0)),
                **{f"temperature={name}": partial(write_at_temperature, one) for name, one in ODD_NUMBERS.items()},
            }
        ),
    )
    yield "session: 1,000 forks", build_call(lambda: use_session(lambda one: [one.fork(seed=k) for k in range(1_000)]))


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
        build_calls(
            {
                name: partial(use_engine, lambda engine, one: engine.generate(["a", one, "b"], regex="[ab]{2}"), one)
                for name, one in wrong.items()
            }
        ),
    )
    yield (
        "Engine: one wrong constraint of a list",
        build_calls(
            {
                name: partial(use_engine, lambda engine, one: engine.generate(["a", "b"], regex=["[ab]", one]), one)
                for name, one in {"number": 3, "open group": "(", "empty class": "[^\\s\\S]"}.items()
            }
        ),
    )
    yield (
        "Engine.session: odd prompts",
        build_calls(
            {name: partial(use_engine, lambda engine, one: engine.session(one), one) for name, one in wrong.items()}
        ),
    )
    yield (
        "Engine.session: odd numbers",
        build_calls({
            f"{option}={name}": partial(
                use_engine, lambda engine, option, one: engine.session(None, **{option: one}), option, one
            )
            for option in ("seed", "max_tokens") for name, one in ODD_NUMBERS.items()
        }),
    )  # fmt: skip


def use_engine(use: Callable[..., Any], *arguments: Any) -> Any:
    """Use an Engine; it must answer another call correctly afterwards."""
    with constrain.Engine("demo") as engine:
        try:
            return use(engine, *arguments)
        finally:
            if engine.generate("a", regex="ab").text != "ab":
                raise WrongAnswer("the engine gives a wrong answer to the next call")


def search_many(make: Callable[[], Any]) -> Any:
    """Search for a billion texts."""
    return generate_text(search=make(), n=10**9, regex="[a-z]{1,9}")


def write_at_temperature(temperature: Any) -> Any:
    """Write a field of a session at a temperature."""
    return use_session(lambda one: one.write("x", regex="a", temperature=temperature))


def use_session(use: Callable[[Any], Any]) -> Any:
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
