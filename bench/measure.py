"""Run one schema with one engine: verdicts and nanoseconds, by the procedure of MaskBench.

For each token of an instance: make the mask (timed), check that the token is in it, advance (timed). At the end the
mask must allow an end token. The first mask is timed from the text of the schema, after the engine has freed the
previous schema. Only calls of the engine are timed; a step is a mask and an advance (only a mask if the token is
refused). The preparation of an engine between them is timed separately and is not part of a step.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter_ns, process_time_ns

from .corpus import ENDS, Case, Instance, Llama3
from .engines import Engine, Refused, is_allowed

__all__ = ["CLOCKS", "WARM", "Job", "Result", "accepts_instance", "make_first_mask", "measure_schema", "tokenise_case"]


CLOCKS = {"wall": perf_counter_ns, "cpu": process_time_ns}
"""cpu: CPU time of the process, for a busy machine; reading it takes 0.3 µs instead of 0.05, four times in a step."""


@dataclass(frozen=True, slots=True)
class Job:
    """A case with the tokens of its instances."""

    case: Case
    tokens: tuple[list[int], ...]


@dataclass(slots=True)
class Result:
    """The outcome of one schema with one engine.

    refused: (kind, reason) or None. first: ns from the schema's text to the first mask. steps: int64 array of ns.
    idle: the same of preparation, for each step of an engine that prepares.
    rejected, accepted: indices of valid instances it rejected and of invalid ones it accepted.
    error: an exception that it raised while masking or advancing. why: per rejected instance, "key order" or else.
    """

    id: str
    refused: tuple[str, str] | None = None
    first: int = 0
    steps: array[int] = field(default_factory=lambda: array("q"))
    idle: array[int] = field(default_factory=lambda: array("q"))
    rejected: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    error: str | None = None
    why: list[str] = field(default_factory=list)


def tokenise_case(case: Case, vocabulary: Llama3) -> Job:
    """Return a case with its instances as tokens."""
    return Job(case, tuple(vocabulary.encode(test.text) for test in case.tests))


def measure_schema(engine: Engine, job: Job, clock: Callable[[], int] = perf_counter_ns) -> Result:
    """Run one schema with an engine. Exceptions of the engine are part of the result."""
    result = Result(job.case.id)
    engine.forget()
    try:
        begin = clock()
        engine.compile(job.case.schema)
        engine.start()
        engine.mask()
        result.first = clock() - begin
    except Refused as refusal:
        result.refused = (refusal.kind, refusal.reason[:400])
        return result
    except MemoryError:
        raise
    except Exception as error:
        result.error = f"while compiling: {type(error).__name__}: {str(error)[:300]}"
        return result
    for index, (test, tokens) in enumerate(zip(job.case.tests, job.tokens)):
        try:
            taken = accepts_instance(engine, tokens, result.steps, clock, result.idle)
        except MemoryError:
            raise
        except Exception as error:
            result.error = f"test {index}: {type(error).__name__}: {str(error)[:300]}"
            return result
        if taken != test.valid:
            (result.rejected if test.valid else result.accepted).append(index)
    return result


def make_first_mask(engine: Engine, text: str) -> None:
    """Compile the text of a schema and make the first mask. Raises Refused."""
    engine.compile(text)
    engine.start()
    engine.mask()


def accepts_instance(
    engine: Engine,
    tokens: list[int],
    steps: array[int],
    clock: Callable[[], int] = perf_counter_ns,
    idle: array[int] | None = None,
) -> bool:
    """Return whether the engine accepts an instance; append the ns of every step, and of preparation to `idle`."""
    engine.start()
    words = engine.words
    prepare = getattr(engine, "prepare", None)
    for token in tokens:
        begin = clock()
        engine.mask()
        masked = clock()
        if not is_allowed(words, token):
            steps.append(masked - begin)
            return False
        if prepare is not None and idle is not None:
            begin_idle = clock()
            prepare()
            idle.append(clock() - begin_idle)
        again = clock()
        engine.advance(token)
        done = clock()
        steps.append(masked - begin + done - again)
    engine.mask()
    return any(is_allowed(words, end) for end in ENDS)


WARM = Case(
    "warm",
    '{"type":"object","properties":{"name":{"type":"string","maxLength":9},"list":{"type":"array","items":{"type":"number"}}},'
    '"required":["name"]}',
    (Instance('{"name": "Łukasz", "list": [1, 2.5e3], "more": {"a": [true, null, "\\\\u00e9"]}}', True),),
)
"""Run before anything is measured: imports, kernels and first pages are not part of the cost of a schema."""
