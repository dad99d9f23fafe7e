"""One schema through one engine: what it answers, and the nanoseconds it takes. The procedure of MaskBench.

For each instance, token by token: the mask (timed), is the token in it, the advance (timed). At the end the mask must
allow an end token. A valid instance must come through, an invalid one must not. The first mask is timed from the
schema's text, after the engine has freed the schema before. Only calls into the engine are timed; a step is a mask and
an advance (of a refused token, the mask). What an engine prepares between them is timed, too, and is no part of a step.
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
"""wall: what a user waits. cpu: what the process computes, for a machine that is busy with other things; reading it
costs 0.3 µs instead of 0.05, and a step has two pairs of readings."""


@dataclass(frozen=True, slots=True)
class Job:
    """A case with the tokens of its instances."""

    case: Case
    tokens: tuple[list[int], ...]


@dataclass(slots=True)
class Result:
    """What one engine did with one schema.

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
    """Return a case, its instances cut into tokens."""
    return Job(case, tuple(vocabulary.encode(test.text) for test in case.tests))


def measure_schema(engine: Engine, job: Job, clock: Callable[[], int] = perf_counter_ns) -> Result:
    """Take one schema through an engine. Nothing that the engine raises on purpose or by mistake gets out."""
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
    """Return whether the engine takes the whole instance; append the ns of every step, and of preparation to `idle`."""
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
"""Run once, uncounted, before anything is measured: imports, kernels and first pages are not a schema's cost."""
