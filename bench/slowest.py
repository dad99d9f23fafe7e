"""Which steps of constrain are the slowest, and what is done in them? Over a sample of schemas.

    python -m bench slowest

Instances are matched as in MaskBench, warm. A step (mask and advance) is compiled code, which calls Python to compute
missing entries of the state cache (`StateCache._provide`): a hook there records each request and its time, the number
of sets and closures that are computed and of trie nodes that are visited. The kind of a step is the request with the
most time. Printed, and written as JSON: time by kind, the ten slowest steps, and the ten schemas with the most time.
Times are CPU times and include the hook; for times without it see `bench maskbench`.
"""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from time import thread_time_ns
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from constrain.engine.state_cache import StateCache, StateCacheEvicted
from constrain.kernels import layout as at

from .corpus import Llama3
from .engines import ENGINES, Constrain, Refused, is_allowed
from .measure import WARM, Job, tokenise_case
from .options import build_parser, read_cases
from .record import write_result
from .tables import print_rows
from .workers import Guard, run_guarded

MOST_PRINTED = 10
REQUESTS = {
    at.FULL: "array grown",
    at.NEED_RULES: "rules linked",
    at.NEED_START: "leaf started",
    at.NEED_LEAF: "leaf state expanded",
    at.NEED_ROW: "row made",
    at.NEED_SUFFIXES: "suffix trie made",
    at.NEED_BY_LENGTH: "tokens sorted by length",
    at.NEED_SCANNER: "lexemes read",
    at.NEED_READERS: "lexemes read",
    at.NEED_ROOT: "lexemes read",
}
"""Status of a kernel: what the state cache provides for it. Any other status is a query of the uniqueness guards."""
WALKS = ((100_000, "100,000 nodes and more"), (10_000, "10,000 nodes and more"), (1_000, "1,000 nodes and more"),
         (100, "100 nodes and more"), (1, "fewer than 100 nodes"))  # fmt: skip
COUNTED = {"sets": at.N_SETS, "closures": at.CLOSURES, "trie nodes": at.VISITED}


@dataclass(slots=True)
class Step:
    """One step of an instance.

    requests: ns by what the state cache provided; counts: sets and closures made, trie nodes visited, 0 if the state
    cache was evicted during the step.
    """

    schema: str
    test: int
    token: int
    nanoseconds: int
    requests: dict[str, int]
    counts: dict[str, int]

    @property
    def kind(self) -> str:
        """Return what took most of the time: a request, or else the compiled code, by what it did."""
        what, most = max(self.requests.items(), key=lambda item: item[1], default=("", 0))
        if most > self.nanoseconds - sum(self.requests.values()):
            return what
        for least, name in WALKS:
            if self.counts["trie nodes"] >= least:
                return f"walk of {name}"
        return "no walk, but new sets" if self.counts["sets"] else "all known"


@dataclass(slots=True)
class Trace:
    """Trace of one schema: its slowest steps, and the number and ns of all steps by kind."""

    slowest: list[Step] = field(default_factory=list)
    kinds: dict[str, tuple[int, int]] = field(default_factory=dict)


@contextmanager
def hook_requests(note: Callable[[str, int], None]) -> Iterator[None]:
    """Call `note` with the name and the nanoseconds of each request to a state cache while the context lasts."""
    original = StateCache._provide

    def provide(self: StateCache, rounds: int) -> None:
        what = REQUESTS.get(int(self.arrays[at.HEAD][at.STATUS]), "uniqueness query")
        begin = thread_time_ns()
        try:
            original(self, rounds)
        except StateCacheEvicted:
            what = "state cache evicted"
            raise
        finally:
            note(what, thread_time_ns() - begin)

    StateCache._provide = provide  # type: ignore[method-assign]
    try:
        yield
    finally:
        StateCache._provide = original  # type: ignore[method-assign]


def trace_schema(engine: Constrain, job: Job) -> Trace | None:
    """Walk through all instances of one schema. Return None if the engine refuses it."""
    requests: Counter[str] = Counter()
    steps: list[Step] = []
    try:
        engine.compile(job.case.schema)
    except Refused:
        return None
    engine.start()
    engine.mask()

    def counts() -> tuple[int, np.ndarray[Any, Any]]:
        state_cache = engine.constraint.state_cache()
        return state_cache.epoch, np.array([state_cache.arrays[at.HEAD][place] for place in COUNTED.values()], np.int64)

    with hook_requests(lambda what, ns: requests.update({what: ns})):
        for test, tokens in enumerate(job.tokens):
            engine.start()
            for place, token in enumerate(tokens):
                requests.clear()
                epoch, before = counts()
                begin = thread_time_ns()
                engine.mask()
                masked = thread_time_ns()
                if not (taken := is_allowed(engine.words, token)):
                    again = done = 0
                else:
                    again = thread_time_ns()
                    engine.advance(token)
                    done = thread_time_ns()
                later, after = counts()
                made = dict(zip(COUNTED, ((after - before) * (later == epoch)).tolist()))
                steps.append(Step(job.case.id, test, place, masked - begin + done - again, dict(requests), made))
                if not taken:
                    break
    kinds: dict[str, tuple[int, int]] = {}
    for step in steps:
        number, time = kinds.get(step.kind, (0, 0))
        kinds[step.kind] = number + 1, time + step.nanoseconds
    return Trace(sorted(steps, key=lambda step: -step.nanoseconds)[:MOST_PRINTED], kinds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench. Return the exit code."""
    shared = ("data", "vocabulary", "sample", "all", "ids", "seed", "seconds", "core", "results")
    parser = build_parser("slowest", __doc__, *shared, sample=1_000)
    parser.add_argument("--engine", choices=("constrain", "constrain-any"), default="constrain-any", help="the style")
    options = parser.parse_args(arguments)
    vocabulary = Llama3(options.vocabulary)
    jobs = [tokenise_case(case, vocabulary) for case in read_cases(options)]
    os.sched_setaffinity(0, {options.core})
    engine = ENGINES[options.engine](vocabulary)
    assert isinstance(engine, Constrain)
    warm = partial(trace_schema, engine, tokenise_case(WARM, vocabulary))
    guard = Guard(options.seconds, 2 << 30, "cpu")
    outcomes = run_guarded(partial(trace_schema, engine), jobs, limits=guard, fresh=False, begin=warm)
    traces = {
        jobs[index].case.id: outcome
        for index, outcome in track(outcomes, options.engine, len(jobs), console=Console(stderr=True))
        if isinstance(outcome, Trace)
    }
    facts = {"engine": options.engine, "schemas": len(jobs), "traced": len(traces), **summarise_traces(traces)}
    print_slowest(facts, Console())
    write_result(options, facts)
    return 0


def summarise_traces(traces: dict[str, Trace]) -> dict[str, list[dict[str, Any]]]:
    """Build the rows of the three tables: times in µs, shares of the time of all steps."""
    kinds: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for one in traces.values():
        for kind, (number, time) in one.kinds.items():
            kinds[kind][0] += number
            kinds[kind][1] += time
    total, steps = max(1, sum(time for _, time in kinds.values())), max(1, sum(number for number, _ in kinds.values()))
    by_kind = [
        {"kind": kind, "steps": number, "of steps, %": 100 * number / steps, "of time, %": 100 * time / total,
         "mean, µs": time / number / 1_000}
        for kind, (number, time) in sorted(kinds.items(), key=lambda item: -item[1][1])
    ]  # fmt: skip
    slowest = sorted((step for one in traces.values() for step in one.slowest), key=lambda step: -step.nanoseconds)
    single = [
        {"schema": step.schema, "test": step.test, "token": step.token, "µs": step.nanoseconds / 1_000,
         "kind": step.kind, "requests, µs": {what: ns / 1_000 for what, ns in step.requests.items()}, **step.counts}
        for step in slowest[:MOST_PRINTED]
    ]  # fmt: skip
    heavy = sorted(traces.items(), key=lambda item: -sum(time for _, time in item[1].kinds.values()))[:MOST_PRINTED]
    by_schema = []
    for name, one in heavy:
        if not one.kinds:  # a schema without instances
            continue
        number, time = (sum(pair[part] for pair in one.kinds.values()) for part in (0, 1))
        kind, (count, most) = max(one.kinds.items(), key=lambda item: item[1][1])
        by_schema.append({"schema": name, "steps": number, "of time, %": 100 * time / total,
                          "mean, µs": time / number / 1_000, "mostly": kind, "in steps": count,
                          "of its time, %": 100 * most / time})  # fmt: skip
    return {"kinds": by_kind, "slowest": single, "schemas with the most time": by_schema}


def print_slowest(facts: dict[str, Any], console: Console) -> None:
    """Print the three tables."""
    console.width = max(console.width, 150)
    title = f"{facts['engine']}, {facts['traced']:,} of {facts['schemas']:,} schemas: "
    print_rows(title + "time by kind of step", facts["kinds"], 1, console)
    steps = [
        {**row, "requests, µs": ", ".join(f"{what} {us:,.0f}" for what, us in row["requests, µs"].items())}
        for row in facts["slowest"]
    ]
    print_rows(title + "the slowest steps", steps, 1, console)
    print_rows(title + "those with the most time", facts["schemas with the most time"], 1, console)


if __name__ == "__main__":
    sys.exit(main())
